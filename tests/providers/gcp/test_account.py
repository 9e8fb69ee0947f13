"""The calls over the wire: each is one of the API's document, its refusal a failure; the shipped roles hold them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions as sdk
from google.cloud import sqladmin_v1
from google.cloud.sqladmin_v1.services.sql_instances_service.transports import (
    SqlInstancesServiceGrpcAsyncIOTransport as Transport,
)
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

from devcloud.gcp.iam.permissions import PERMISSIONS
from providers.external.client import Operation
from providers.gcp import methods
from providers.gcp.account import GcpAccount, operation_of
from providers.gcp.channel import by_size, path_of
from providers.gcp.methods import METHODS, by_rpc
from runtime.errors import Terminal, Throttled, Transient
from tests.providers.gates import OPEN
from tests.providers.gcp.wire import PROJECT, Wire, operation, refused


async def test_a_call_is_the_request_that_its_method_names(wire: Wire, account: GcpAccount) -> None:
    wire.answer("PATCH instances/fl-a", operation())
    body = {
        "settings": {
            "dataDiskSizeGb": "30",
            "storageAutoResize": False,
            "databaseFlags": [],
            "userLabels": {"team": "shop", "old": None},
            "settingsVersion": "7",
        }
    }
    answer = await account.call("instances.patch", "change it", fence=OPEN, body=body, instance="fl-a")
    (request,) = wire.requests
    assert request.body == body
    assert request.query == {}
    assert request.authorization == "Bearer token-of-the-test"
    assert operation_of(answer, "Update").id == "op-1"


async def test_query_parameters_are_written_as_the_api_has_them(wire: Wire, account: GcpAccount) -> None:
    wire.answer("DELETE instances/fl-a", operation())
    await account.call(
        "instances.delete",
        "delete it",
        instance="fl-a",
        enable_final_backup=True,
        final_backup_ttl_days=365,
    )
    assert wire.requests[0].query == {"enableFinalBackup": "true", "finalBackupTtlDays": "365"}


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_change_whose_connection_breaks_is_sent_once(wire: Wire, account: GcpAccount, verb: str) -> None:
    """Also where the connection was used before, and aiohttp would send it again by itself."""
    wire.answer("GET instances/fl-a", {"name": "fl-a"})
    wire.answer(f"{verb.upper()} instances/fl-a", None)
    body: dict[str, Any] = {"body": {"settings": {}}} if verb == "patch" else {}
    await account.call("instances.get", "look at it", instance="fl-a")
    with pytest.raises(Transient):
        await account.call(f"instances.{verb}", "change it", fence=OPEN, instance="fl-a", **body)
    assert wire.changes == [f"{verb.upper()} instances/fl-a"]


async def test_what_the_package_raises_has_the_class_of_its_reason(wire: Wire, account: GcpAccount) -> None:
    wire.answer("POST instances", refused(409, "instanceAlreadyExists"), refused(409, "operationInProgress"))
    client = sqladmin_v1.SqlInstancesServiceAsyncClient(transport=Transport(channel=account.channel))
    request = sqladmin_v1.SqlInstancesInsertRequest(project=PROJECT, body={"name": "fl-a"})
    with pytest.raises(sdk.AlreadyExists):
        await client.insert(request=request)
    with pytest.raises(sdk.Aborted):
        await client.insert(request=request)


async def test_a_read_is_sent_again_after_a_server_error_and_a_change_is_not(wire: Wire, account: GcpAccount) -> None:
    wire.answer("GET instances/fl-a", refused(503, "serverException"), {"name": "fl-a"})
    wire.answer("PATCH instances/fl-a", refused(503, "serverException"), operation())
    assert (await account.call("instances.get", "look", instance="fl-a"))["name"] == "fl-a"
    with pytest.raises(Transient):
        await account.call("instances.patch", "change", body={"settings": {"tier": "t"}}, instance="fl-a")
    assert [request.verb for request in wire.requests] == ["GET", "GET", "PATCH"]


async def test_a_throttle_is_one_whatever_its_status(wire: Wire, account: GcpAccount) -> None:
    wire.answer("POST instances", refused(403, "rateLimitExceeded"))
    with pytest.raises(Throttled):
        await account.call("instances.insert", "create it", body={"name": "fl-a"})


async def test_a_list_is_read_to_its_end_and_a_warning_makes_it_incomplete(wire: Wire, account: GcpAccount) -> None:
    wire.answer(
        "GET instances",
        {"items": [{"name": "fl-a"}], "nextPageToken": "2"},
        {"items": [{"name": "fl-b"}], "warnings": [{"code": "REGION_UNREACHABLE", "message": "us-east4"}]},
    )
    pages = [page async for page in account.pages("instances.list", "list")]
    assert [(item["name"], page.is_whole) for page in pages for item in page.items] == [("fl-a", True), ("fl-b", False)]
    assert [request.query.get("pageToken") for request in wire.requests] == [None, "2"]


POLLS = [
    ({"name": "op-1", "status": "PENDING"}, False),
    ({"name": "op-1", "status": "RUNNING"}, False),
    ({"name": "op-1", "status": "DONE"}, True),
    (refused(404, "operationDoesNotExist"), True),
]


@pytest.mark.parametrize(("answer", "ended"), POLLS)
async def test_an_operation_has_ended_or_not(wire: Wire, account: GcpAccount, answer: object, *, ended: bool) -> None:
    wire.answer("GET operations/op-1", answer)
    assert await account.poll(_operation()) is ended


async def test_an_operation_that_is_done_with_an_error_failed(wire: Wire, account: GcpAccount) -> None:
    errors = [{"code": "INVALID_FLAG", "message": "No such flag."}]
    wire.answer("GET operations/op-1", {"name": "op-1", "status": "DONE", "error": {"errors": errors}})
    with pytest.raises(Terminal) as failed:
        await account.poll(_operation())
    assert "No such flag" in str(failed.value)


def _operation() -> Operation:
    return operation_of(operation(), "Update")


async def test_an_unknown_field_is_refused_here_and_nothing_is_sent(wire: Wire, account: GcpAccount) -> None:
    with pytest.raises(Terminal):
        await account.call("instances.insert", "create it", body={"name": "fl-a", "noSuchField": 1})
    assert wire.requests == []


async def test_the_project_is_known_once_it_answered(wire: Wire, account: GcpAccount) -> None:
    wire.answer("GET instances", {})
    assert account.id == ""
    assert await account.whoami() == PROJECT


@pytest.mark.parametrize("name", ["..", ".", "", "a/../b", "a//b"])
def test_a_name_never_makes_another_path(name: str) -> None:
    with pytest.raises(ValueError, match="is no name in a path"):
        path_of("v1/{+name}", {"name": name})


def test_a_name_in_a_path_is_quoted() -> None:
    assert path_of("v1/instances/{instance}", {"instance": "a/../b?c"}) == "v1/instances/a%2F..%2Fb%3Fc"
    assert path_of("v1/{+name}", {"name": "projects/p/backups/b"}) == "v1/projects/p/backups/b"


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_is_one_of_the_package(name: str) -> None:
    method = methods.METHODS[name]
    assert hasattr(sqladmin_v1, method.request)
    assert hasattr(sqladmin_v1, f"{method.service}ServiceAsyncClient")


async def test_an_answer_that_comes_in_many_pieces_is_read_whole(wire: Wire, account: GcpAccount) -> None:
    items = [{"name": f"fl-{number}", "region": "x" * 1000} for number in range(500)]
    wire.answer("GET instances", {"items": items})
    pages = [page async for page in account.pages("instances.list", "list the instances")]
    assert [item["name"] for page in pages for item in page.items] == [item["name"] for item in items]


async def test_an_answer_that_is_no_json_teaches_nothing_and_is_not_the_specs_fault(
    wire: Wire, account: GcpAccount
) -> None:
    wire.answer("GET instances/fl-a", b"<html>")
    with pytest.raises(Transient, match="no JSON"):
        await account.call("instances.get", "look at instance fl-a", instance="fl-a")


async def test_large_answer_is_read_beside_the_loop_and_a_small_one_at_once() -> None:
    def thread(text: str) -> int:
        assert text
        return threading.get_ident()

    assert await by_size(100, thread, "{}") == threading.get_ident()
    assert await by_size(1_000_000, thread, "{}") != threading.get_ident()


DOCUMENT = json.loads((Path(DISCOVERY_DOC_DIR) / "sqladmin.v1.json").read_text(encoding="utf-8"))


def _calls(resources: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for resource in resources.values():
        for method in resource.get("methods", {}).values():
            yield method["httpMethod"], method["path"]
        yield from _calls(resource.get("resources", {}))


CALLS = frozenset(_calls(DOCUMENT["resources"]))


@pytest.mark.parametrize("name", METHODS)
def test_method_is_one_of_the_discovery_document(name: str) -> None:
    method = METHODS[name]
    assert (method.verb, method.path) in CALLS


def test_no_two_methods_are_one_call_of_the_package() -> None:
    assert len(by_rpc()) == len(METHODS)


ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "gcp"


def _held(name: str) -> list[str]:
    role = json.loads((ROLES / f"{name}.json").read_text(encoding="utf-8"))
    return list(role["includedPermissions"])


def test_shipped_roles_hold_the_permissions_of_the_calls_that_are_made() -> None:
    usual, deleting = _held("fairlead-provider-gcp"), _held("fairlead-provider-gcp-delete")

    assert sorted({*usual, *deleting}) == sorted({PERMISSIONS[method] for method in METHODS})
    assert deleting == [permission for permission in sorted({*usual, *deleting}) if permission.endswith(".delete")]
    assert not set(usual) & set(deleting)
