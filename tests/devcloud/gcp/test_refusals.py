"""What Cloud SQL refuses, each row with where that is known from; an answer that is too lenient fails here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.devcloud.gcp.conftest import Cloud, Json


class Case(msgspec.Struct, frozen=True):
    """A call that is refused.

    Attributes:
        name: What is wrong.
        source: Where the refusal is known from.
        refusal: Status and reason.
        says: A part of the sentence.
        body: Of the call.
        before: Settings of the instance.
    """

    name: str
    source: str
    refusal: tuple[int, str]
    says: str
    body: Json
    before: Json = {}


REFERENCE = "reference of the Cloud SQL Admin API, DatabaseInstance"
INSERTS = (
    Case("a name with a capital", REFERENCE, (400, "invalid"), "Invalid instance name", {"name": "Db"}),
    Case("a tier of the other edition", "terraform-provider-google, edition and tier", (400, "invalid"), "Edition",
         {"settings": {"tier": "db-f1-micro", "edition": "ENTERPRISE_PLUS"}}),
    Case("an unknown field", "Google's HTTP layer", (400, "badRequest"), "Unknown name \"teir\" at 'settings'",
         {"settings": {"teir": "x"}}),
    Case("an unknown version", "Google's HTTP layer", (400, "badRequest"), "POSTGRES_99",
         {"databaseVersion": "POSTGRES_99"}),
    Case("no edition, which is ENTERPRISE_PLUS then", "terraform-provider-google, thread 20498", (400, "invalid"),
         "(ENTERPRISE_PLUS) Edition", {"settings": {"tier": "db-custom-1-3840", "edition": None}}),
    Case("a label with a dot", "Label instances", (400, "invalid"), "label",
         {"settings": {"tier": "db-f1-micro", "userLabels": {"fairlead.dev/claim": "a"}}}),
    Case("an unknown flag", "Configure database flags", (400, "invalid"), "flag name",
         {"settings": {"tier": "db-f1-micro", "databaseFlags": [{"name": "fsync", "value": "off"}]}}),
)  # fmt: skip
CHANGES = (
    Case("a smaller disk", "terraform-provider-google, thread 1612", (400, "invalid"), "decreased",
         {"settings": {"dataDiskSizeGb": "10"}}, {"dataDiskSizeGb": "20"}),
    Case("another kind of disk", REFERENCE, (400, "invalid"), "Disk type", {"settings": {"dataDiskType": "PD_HDD"}}),
    Case("an older version", "Upgrade the database major version", (400, "invalid"), "older",
         {"databaseVersion": "POSTGRES_15"}),
    Case("an edition beside something else", "Config Connector sends it with the tier alone", (400, "invalid"),
         "together", {"settings": {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2",
                                   "dataDiskSizeGb": "30"}}),
    Case("a former settingsVersion", "terraform-provider-google, threads 12324 and 25246", (412, "staleData"),
         "Condition does not match.", {"settings": {"settingsVersion": "7", "dataDiskSizeGb": "30"}}),
)  # fmt: skip


@pytest.mark.parametrize("case", INSERTS, ids=lambda case: case.name)
def test_instance_is_refused(case: Case, cloud: Cloud) -> None:
    usual = {"name": "db-1", "databaseVersion": "POSTGRES_16", "region": "europe-west1"}
    settings = {"edition": "ENTERPRISE", **case.body.get("settings", {"tier": "db-f1-micro"})}

    reply = cloud.call("POST", "instances", {**usual, **case.body, "settings": settings})

    assert reply.refusal == case.refusal
    assert case.says in reply.message
    assert "items" not in cloud.call("GET", "instances").body
    assert "items" not in cloud.call("GET", "operations").body


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_change_is_refused(case: Case, cloud: Cloud) -> None:
    before = cloud.created(**case.before)

    reply = cloud.patch(case.body)

    assert reply.refusal == case.refusal
    assert case.says in reply.message
    assert cloud.look() == before


def test_absent_instance_and_a_method_that_is_not_simulated_are_refused_in_words(
    cloud: Cloud,
) -> None:
    reply = cloud.call("GET", "instances/none")

    assert reply.body == {
        "error": {
            "code": 404,
            "errors": [
                {
                    "domain": "global",
                    "message": "The Cloud SQL instance does not exist.",
                    "reason": "instanceDoesNotExist",
                }
            ],
            "message": "The Cloud SQL instance does not exist.",
        }
    }
    for method, path in (("PATCH", "instances/none"), ("DELETE", "instances/none"), ("GET", "instances/none/users")):
        assert cloud.call(method, path, {} if method == "PATCH" else None).refusal == (404, "instanceDoesNotExist")

    reply = cloud.call("POST", "instances/db-1/promoteReplica", {})

    assert reply.refusal == (400, "notSimulated")
    assert "instances/db-1/promoteReplica" in reply.message
    assert cloud.send("GET", "nothing").refusal == (404, "notFound")


def test_name_in_use_and_name_of_a_deleted_instance_are_refused_apart(cloud: Cloud) -> None:
    cloud.created()
    in_use = cloud.insert()
    cloud.done(cloud.call("DELETE", "instances/db-1"))
    reserved = cloud.insert()

    assert (in_use.refusal, reserved.refusal) == ((409, "instanceAlreadyExists"),) * 2
    assert in_use.message == "The Cloud SQL instance already exists."
    assert "until one week from the deletion date" in reserved.message
    cloud.advance(8 * 86_400)
    assert cloud.insert().status == 200


def test_put_needs_the_present_settings_version_and_an_open_operation_refuses_every_change(cloud: Cloud) -> None:
    shown = cloud.created()
    settings = {"tier": "db-custom-2-7680"}

    assert cloud.call("PUT", "instances/db-1", {"settings": settings}).refusal == (400, "required")
    stale = {**settings, "settingsVersion": "9"}
    assert cloud.call("PUT", "instances/db-1", {"settings": stale}).refusal == (412, "staleData")
    present = {**settings, "settingsVersion": shown["settings"]["settingsVersion"]}
    cloud.done(cloud.call("PUT", "instances/db-1", {"settings": present}))
    assert cloud.call("PUT", "instances/db-1", {"settings": present}).refusal == (412, "staleData")

    cloud.at_real_length()
    assert cloud.patch({"settings": {"dataDiskSizeGb": "20"}}).status == 200

    refused: list[tuple[str, str, Any]] = [
        ("PATCH", "instances/db-1", {"settings": {"dataDiskSizeGb": "30"}}),
        ("PUT", "instances/db-1", {"settings": {"settingsVersion": "9"}}),
        ("DELETE", "instances/db-1", None),
        ("POST", "instances/db-1/restart", None),
        ("POST", "instances/db-1/users", {"name": "app", "password": "p"}),
        ("PUT", "instances/db-1/users?name=postgres", {"password": "p"}),
        ("DELETE", "instances/db-1/users?name=postgres", None),
        ("POST", "instances/db-1/databases", {"name": "app"}),
        ("POST", "instances/db-1/backupRuns", {}),
    ]
    for method, path, body in refused:
        assert cloud.call(method, path, body).refusal == (409, "operationInProgress"), (method, path)
    assert cloud.call("GET", "instances/db-1/users").status == 200
    cloud.control("POST", "behaviour", {"in_progress_status": 403})
    assert cloud.call("DELETE", "instances/db-1").refusal == (403, "operationInProgress")


@pytest.mark.parametrize("state", ["SUSPENDED", "MAINTENANCE", "FAILED"])
def test_state_that_allows_no_change_refuses(state: str, cloud: Cloud) -> None:
    cloud.created()
    cloud.control("POST", f"instances/{cloud.served.project}/db-1", {"state": state})

    assert cloud.look()["state"] == state
    assert cloud.patch({"settings": {"dataDiskSizeGb": "20"}}).refusal == (409, "invalidState")
    assert cloud.call("POST", "instances/db-1/databases", {"name": "app"}).refusal == (409, "invalidState")
    assert cloud.call("GET", "instances/db-1/users").refusal == (400, "invalid")
    cloud.done(cloud.call("DELETE", "instances/db-1"))


def test_protected_instance_is_not_deleted(cloud: Cloud) -> None:
    cloud.created(deletionProtectionEnabled=True)

    reply = cloud.call("DELETE", "instances/db-1")

    assert reply.refusal == (400, "invalid")
    assert "deletion protection" in reply.message
    cloud.done(cloud.patch({"settings": {"deletionProtectionEnabled": False}}))
    cloud.done(cloud.call("DELETE", "instances/db-1"))


@pytest.mark.parametrize("before", [{"activationPolicy": "NEVER"}, None], ids=["stopped", "pending"])
def test_users_and_databases_of_an_instance_that_does_not_run_are_not_shown(before: Json | None, cloud: Cloud) -> None:
    # Both states are reported with this sentence: terraform-google-sql-db 408, steampipe-plugin-gcp 243.
    if before is None:
        cloud.at_real_length()
        assert cloud.insert().status == 200
    else:
        cloud.created(**before)

    for path in ("users", "databases"):
        reply = cloud.call("GET", f"instances/db-1/{path}")
        assert reply.refusal == (400, "invalid")
        assert reply.message == "Invalid request: Invalid request since instance is not running."
