"""A cloud on the frame, over HTTPS: callers, operations, faults, limits, lagging lists, the log, a restart."""

from __future__ import annotations

import http.client
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from devcloud.errors import DevcloudError
from devcloud.simulator.server import running
from tests.devcloud.simulator.conftest import Client, client_of
from tests.devcloud.simulator.toy_cloud import serving


def test_call_without_a_valid_token_is_refused(client: Client) -> None:
    grant = {"principal": "late@p", "account": "p", "expires_at": "2020-01-01T00:00:00Z"}
    expired = client.control("POST", "tokens", grant)["token"]

    for token in ("", "another", expired):
        assert client.refusal("GET", "servers", token=token) == (401, "unauthenticated")
    assert client.call("GET", "servers") == {"items": []}


def test_call_of_nothing_is_refused(client: Client) -> None:
    assert client.refusal("GET", "nothing") == (404, "notFound")
    assert client.refusal("GET", "servers/none") == (404, "serverDoesNotExist")
    assert client.refusal("GET", "operations/none") == (404, "operationDoesNotExist")


def test_create_is_an_operation_that_ends_with_an_address_and_an_authority(client: Client) -> None:
    operation = client.call("POST", "servers", {"name": "db-1", "password": "first-pass"})

    assert (operation["status"], operation["kind"], operation["target"]) == ("PENDING", "CREATE", "db-1")
    assert client.call("GET", "servers/db-1")["state"] == "CREATING"
    assert client.refusal("POST", "servers", {"name": "db-1"}) == (409, "alreadyExists")
    ended = client.until_done(operation)
    assert ended["error"] is None
    shown = client.call("GET", "servers/db-1")
    assert (shown["state"], shown["host"]) == ("RUNNABLE", "192.0.2.1")
    assert shown["authority"].startswith("-----BEGIN CERTIFICATE-----")


def test_each_server_has_an_authority_of_its_own(client: Client) -> None:
    assert client.created("db-1")["authority"] != client.created("db-2")["authority"]


def test_second_change_of_a_server_is_refused_while_one_is_in_progress(client: Client) -> None:
    client.created()
    operation = client.call("PATCH", "servers/db-1", {"tier": "large"})

    assert client.refusal("PATCH", "servers/db-1", {"tier": "huge"}) == (409, "operationInProgress")
    assert client.refusal("PUT", "servers/db-1/users/app", {"password": "p"}) == (409, "operationInProgress")
    assert client.call("GET", "servers/db-1")["tier"] == "small"
    client.until_done(operation)
    assert client.call("GET", "servers/db-1")["tier"] == "large"


def test_operation_fails_after_it_was_accepted(client: Client) -> None:
    client.created()
    client.control("POST", "operations", {"kind": "UPDATE", "code": "invalidTier", "message": "No such tier."})

    ended = client.until_done(client.call("PATCH", "servers/db-1", {"tier": "large"}))

    assert ended["error"] == {"code": "invalidTier", "message": "No such tier."}
    assert client.call("GET", "servers/db-1")["tier"] == "small"
    assert client.until_done(client.call("PATCH", "servers/db-1", {"tier": "large"}))["error"] is None


def test_lost_operation_is_not_there_and_has_its_effect(client: Client) -> None:
    client.created()
    operation = client.call("PATCH", "servers/db-1", {"tier": "large"})

    client.control("DELETE", f"operations/{operation['id']}")

    assert client.refusal("GET", f"operations/{operation['id']}") == (404, "operationDoesNotExist")
    client.advance(100)
    assert client.call("GET", "servers/db-1")["tier"] == "large"


def test_fault_before_and_after_the_effect(client: Client) -> None:
    client.control("POST", "faults", {"action": "servers.insert", "code": "backendError", "status": 503})
    body = {"name": "db-1", "password": "first-pass"}

    assert client.refusal("POST", "servers", body) == (503, "backendError")
    assert client.call("GET", "servers") == {"items": []}
    client.control("POST", "faults", {"action": "servers.*", "kind": "drop", "identifier": "db-*"})
    with pytest.raises((http.client.HTTPException, OSError)):
        client.call("POST", "servers", body)
    assert [server["name"] for server in client.call("GET", "servers")["items"]] == ["db-1"]
    outcomes = [(entry["action"], entry["outcome"]) for entry in client.control("GET", "audit")]
    assert outcomes == [
        ("servers.insert", "backendError"),
        ("servers.list", "ok"),
        ("servers.insert", "dropped"),
        ("servers.list", "ok"),
    ]


def test_list_lags_behind_gets(client: Client) -> None:
    client.created()
    client.control("POST", "behaviour", {"list_lag_s": 1000})

    assert client.call("GET", "servers") == {"items": []}
    assert client.call("GET", "servers/db-1")["name"] == "db-1"
    client.advance(1001)
    assert len(client.call("GET", "servers")["items"]) == 1


def test_calls_beyond_the_rate_are_refused_reads_and_writes_apart(client: Client) -> None:
    client.control("POST", "behaviour", {"throttle": {"read_per_s": 0.001, "write_per_s": 0.001, "burst": 2}})

    for _ in range(2):
        client.call("GET", "servers")
    assert client.refusal("GET", "servers") == (429, "rateLimitExceeded")
    client.call("POST", "servers", {"name": "db-1", "password": "first-pass"})


def test_log_says_who_changed_something_and_no_password(client: Client) -> None:
    client.created()

    (entry, *others) = client.control("GET", "audit")
    assert (entry["action"], entry["principal"], entry["mutating"]) == ("servers.insert", "provider@p", True)
    assert entry["params"] == {"name": "db-1", "password": "****", "project": "p"}
    assert client.control("GET", f"audit?since={entry['seq']}") == others


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "faults", {"kind": "explode"}),
        ("POST", "behaviour", {"quota": {}}),
        ("POST", "operations", {"colour": "red"}),
        ("DELETE", "operations/none", None),
        ("PATCH", "faults", {}),
        ("POST", "nothing", {}),
    ],
)
def test_control_call_that_makes_no_sense_is_refused(method: str, path: str, body: Any, client: Client) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        client.control(method, path, body)

    assert error.value.code == 400
    assert path.split("/", 1)[0] in error.value.read().decode()


def test_reset_drops_servers_operations_and_conduct(client: Client) -> None:
    client.call("POST", "servers", {"name": "db-1", "password": "first-pass"})
    client.control("POST", "behaviour", {"list_lag_s": 60})

    client.control("POST", "reset")

    assert client.refusal("GET", "servers/db-1") == (404, "serverDoesNotExist")
    assert client.control("GET", "operations") == []
    assert client.control("GET", "behaviour")["list_lag_s"] == 0


def test_restarted_cloud_goes_on_with_its_operations(tmp_path: Path) -> None:
    with running(lambda: serving(tmp_path), name="toy cloud") as served:
        client = client_of(served)
        client.created()
        operation = client.call("PATCH", "servers/db-1", {"tier": "large"})

    with running(lambda: serving(tmp_path), name="toy cloud") as served:
        client = client_of(served)
        assert client.refusal("PATCH", "servers/db-1", {"tier": "huge"}) == (409, "operationInProgress")
        assert client.until_done(operation)["error"] is None
        assert client.call("GET", "servers/db-1")["tier"] == "large"


def test_file_that_is_no_state_is_named(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")

    with (
        pytest.raises(DevcloudError, match="no state of a simulated toy cloud"),
        running(lambda: serving(tmp_path), name="toy cloud"),
    ):
        pass
