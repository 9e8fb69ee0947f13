"""ARM's wire: api-versions with shapes of their own, headers, pages, lag, token buckets, locks, faults."""

from __future__ import annotations

import http.client
from typing import Any

import pytest

from devcloud.azure.behaviour import ArmThrottle
from devcloud.azure.refusals import Throttled
from devcloud.azure.throttling import Buckets
from tests.devcloud.azure.conftest import SERVER, Arm, send

LOCK = "providers/Microsoft.Authorization/locks/keep"
# Recorded: all of 2021-06-01, then what 2022-12-01 has beyond it. The others as the two packages' models have them.
FIRST = {
    "administratorLogin",
    "availabilityZone",
    "backup",
    "fullyQualifiedDomainName",
    "highAvailability",
    "maintenanceWindow",
    "minorVersion",
    "network",
    "state",
    "storage",
    "version",
}
SECOND = FIRST | {"authConfig", "dataEncryption", "replicationRole", "replicaCapacity"}
THIRD = SECOND | {"replica", "privateEndpointConnections"}


@pytest.mark.parametrize(
    ("version", "properties", "storage", "has_system_data"),
    [
        ("2021-06-01", FIRST, {"storageSizeGB"}, False),
        ("2022-12-01", SECOND, {"storageSizeGB"}, True),
        ("2024-08-01", THIRD, {"autoGrow", "iops", "storageSizeGB", "tier", "type"}, True),
        ("2026-10-01", THIRD, {"autoGrow", "iops", "storageSizeGB", "tier", "type"}, True),
    ],
)
def test_api_version_has_its_own_shape(
    *, version: str, properties: set[str], storage: set[str], has_system_data: bool, arm: Arm
) -> None:
    arm.created()

    shown = arm.get(version=version)

    assert shown["properties"].keys() == properties
    assert shown["properties"]["storage"].keys() == storage
    assert ("systemData" in shown) is has_system_data


@pytest.mark.parametrize(("version", "state"), [("2022-12-01", "Starting"), ("2025-08-01", "Provisioning")])
def test_states_of_later_have_earlier_names(version: str, state: str, arm: Arm) -> None:
    """Enum ServerState: Provisioning, Restarting and Inaccessible came with 2025-08-01."""
    arm.put()

    assert arm.get(version=version)["properties"]["state"] == state


@pytest.mark.parametrize(
    ("version", "changes"),
    [
        ("2021-06-01", {"storage": {"storageSizeGB": 128, "autoGrow": "Enabled"}}),
        ("2022-12-01", {"storage": {"tier": "P30"}}),
        ("2022-12-01", {"network": {"publicNetworkAccess": "Disabled"}}),
        ("2021-06-01", {"authConfig": {"passwordAuth": "Disabled"}}),
    ],
)
def test_property_of_later_is_dropped_without_a_word(version: str, changes: dict[str, Any], arm: Arm) -> None:
    before = arm.created()

    accepted = arm.call("PATCH", arm.path(), {"properties": changes}, version=version)

    assert arm.until_done(accepted)["status"] == "Succeeded"
    assert arm.get() == before


@pytest.mark.parametrize(
    ("version", "path", "code"),
    [
        ("", "server", "MissingApiVersionParameter"),
        ("2019-01-01", "server", "NoRegisteredProviderFound"),
        ("2025-08-01", "group", "InvalidApiVersionParameter"),
        ("2021-06-01", "backups", "NoRegisteredProviderFound"),
    ],
)
def test_unknown_api_version_is_refused_with_those_that_there_are(version: str, path: str, code: str, arm: Arm) -> None:
    paths = {"server": arm.path(), "group": arm.group_path, "backups": arm.path("pg1/backups")}

    reply = arm.call("GET", paths[path], version=version)

    assert reply.refusal == (400, code)
    if version:
        assert "The supported " in reply.body["error"]["message"]


def test_answers_carry_ids_and_what_is_left_of_the_buckets(arm: Arm) -> None:
    headers = {"x-ms-correlation-request-id": "3f0c7d1e-0000-4000-8000-000000000001"}
    read = arm.call("GET", arm.group_path, version="2020-06-01", headers=headers).headers
    write = arm.call("PUT", arm.path(), SERVER).headers
    refused = arm.call("GET", arm.path("none")).headers

    assert read["x-ms-correlation-request-id"] == headers["x-ms-correlation-request-id"]
    assert len({read["x-ms-request-id"], write["x-ms-request-id"], refused["x-ms-request-id"]}) == 3
    assert 200 < int(read["x-ms-ratelimit-remaining-subscription-reads"]) < 250
    assert 16_400 < int(read["x-ms-ratelimit-remaining-subscription-global-reads"]) < 16_500
    assert 190 < int(write["x-ms-ratelimit-remaining-subscription-writes"]) < 200
    assert refused["x-ms-failure-cause"] == "gateway"


def test_lists_come_in_pages(arm: Arm) -> None:
    for name in ("pg-a", "pg-b", "pg-c"):
        arm.put(name)
    arm.behave(page_size=2)

    for path in (
        arm.path("").rstrip("/"),
        f"/subscriptions/{arm.served.subscription}/providers/Microsoft.DBforPostgreSQL/flexibleServers",
    ):
        first = arm.call("GET", path).body
        second = arm.call("GET", first["nextLink"]).body
        assert [server["name"] for server in first["value"] + second["value"]] == ["pg-a", "pg-b", "pg-c"]
        assert "nextLink" not in second
    assert arm.call("GET", f"{arm.path('').rstrip('/')}?$skiptoken=x").refusal == (400, "InvalidSkipToken")


def test_lists_lag_behind_reads(arm: Arm) -> None:
    arm.created()
    arm.behave(list_lag_s=1000)
    servers = arm.path("").rstrip("/")

    assert arm.call("GET", servers).body == {"value": []}
    arm.advance(1001)
    arm.until_done(arm.call("DELETE", arm.path()))
    (shown,) = arm.call("GET", servers).body["value"]
    assert shown["properties"]["state"] == "Ready"
    assert arm.call("GET", arm.path()).refusal == (404, "ResourceNotFound")
    arm.advance(1001)
    assert arm.call("GET", servers).body == {"value": []}


def test_requests_beyond_the_bucket_are_refused_reads_writes_and_deletes_apart(arm: Arm) -> None:
    slow = {"read_per_s": 0.01, "write_per_s": 0.01, "delete_per_s": 0.01, "burst": 1, "read_burst": 2}
    arm.control("POST", "reset")
    arm.behave(throttle=slow)
    groups = f"/subscriptions/{arm.served.subscription}/resourceGroups"

    assert [arm.call("GET", groups, version="2020-06-01").status for _ in range(3)] == [200, 200, 429]
    refused = arm.call("GET", groups, version="2020-06-01")
    assert refused.refusal == (429, "SubscriptionRequestsThrottled")
    assert 90 < int(refused.headers["retry-after"]) <= 100
    body = {"location": "uksouth"}
    assert [arm.call("PUT", arm.group_path, body, version="2020-06-01").status for _ in range(2)] == [201, 429]
    assert arm.call("DELETE", arm.path("none")).status == 204
    assert [entry["outcome"] for entry in arm.control("GET", "audit")].count("SubscriptionRequestsThrottled") == 3


def test_bucket_fills_with_time() -> None:
    """ "Understand how Azure Resource Manager throttles requests": reads 250 and 25 a second, writes 200 and 10."""
    seconds = 0.0
    buckets = Buckets(lambda: seconds)
    left = [buckets.take(ArmThrottle(), "s", "p", "write") for _ in range(200)]

    assert left[0]["x-ms-ratelimit-remaining-subscription-writes"] == "199"
    assert left[-1]["x-ms-ratelimit-remaining-subscription-writes"] == "0"
    with pytest.raises(Throttled) as error:
        buckets.take(ArmThrottle(), "s", "p", "write")
    assert error.value.retry_after_s == 1
    buckets.take(ArmThrottle(), "s", "other", "write")
    buckets.take(ArmThrottle(), "s", "p", "read")
    seconds = 0.5
    for _ in range(5):
        buckets.take(ArmThrottle(), "s", "p", "write")
    with pytest.raises(Throttled):
        buckets.take(ArmThrottle(), "s", "p", "write")
    buckets.take(None, "s", "p", "write")


@pytest.mark.parametrize("at_group", [True, False])
def test_lock_keeps_what_is_below_it_from_deletion(*, at_group: bool, arm: Arm) -> None:
    """ "Lock your Azure resources": a lock holds for its scope and what is below."""
    arm.created()
    arm.until_done(arm.child("pg1/databases/app"))
    scope = arm.group_path if at_group else arm.path()
    made = arm.call("PUT", f"{scope}/{LOCK}", {"properties": {"level": "cannotdelete"}}, version="2020-05-01")

    assert (made.status, made.body["properties"]) == (201, {"level": "CanNotDelete"})
    for path, version in (
        (arm.path(), "2025-08-01"),
        (arm.path("pg1/databases/app"), "2025-08-01"),
        (arm.group_path, "2020-06-01"),
    ):
        reply = arm.call("DELETE", path, version=version)
        assert reply.refusal == (409, "ScopeLocked")
        assert scope in reply.body["error"]["message"]
    arm.until_done(arm.patch({"backup": {"backupRetentionDays": 8}}))
    assert arm.call("DELETE", f"{scope}/{LOCK}", version="2020-05-01").status == 200
    assert arm.call("DELETE", arm.path()).status == 202


def test_read_only_lock_keeps_everything_as_it_is(arm: Arm) -> None:
    arm.created()
    arm.call("PUT", f"{arm.path()}/{LOCK}", {"properties": {"level": "ReadOnly"}}, version="2020-05-01")

    assert arm.patch({}).refusal == (409, "ScopeLocked")
    assert arm.call("POST", arm.path("pg1/stop")).refusal == (409, "ScopeLocked")
    assert arm.child("pg1/databases/app").refusal == (409, "ScopeLocked")
    assert arm.get()["properties"]["state"] == "Ready"
    assert arm.call("GET", f"{arm.path()}/{LOCK}", version="2020-05-01").body["name"] == "keep"
    assert arm.call("PUT", f"{arm.path()}/{LOCK}", {}, version="2020-05-01").refusal == (400, "InvalidLockLevel")


def test_fault_before_and_after_the_effect(arm: Arm) -> None:
    arm.control("POST", "faults", {"action": "flexibleServers.put", "status": 503, "code": "ServiceUnavailable"})
    assert arm.put().refusal == (503, "ServiceUnavailable")
    assert arm.control("GET", "servers") == {}

    arm.control("POST", "faults", {"action": "flexibleServers.put", "kind": "drop", "identifier": "pg*"})
    with pytest.raises((http.client.HTTPException, OSError)):
        arm.put()
    assert arm.control("GET", "servers") == {"pg1": "Provisioning"}


def test_log_says_who_changed_something_and_no_secret(arm: Arm) -> None:
    arm.control("DELETE", "audit")
    arm.put()

    (entry,) = arm.control("GET", "audit")

    assert (entry["action"], entry["identifier"], entry["mutating"]) == ("flexibleServers.put", "pg1", True)
    assert entry["account"] == arm.served.subscription
    assert entry["params"]["properties"]["administratorLoginPassword"] == "****"
    assert entry["params"]["api-version"] == "2025-08-01"


def test_path_that_leads_nowhere_and_content_that_is_none_are_refused(arm: Arm) -> None:
    assert arm.call("GET", f"{arm.group_path}/providers/Microsoft.Nothing/things/x").refusal == (
        404,
        "InvalidResourceType",
    )
    headers = {"Authorization": f"Bearer {arm.token}"}
    url = f"{arm.served.url}{arm.path()}?api-version=2025-08-01"
    assert send(url, "PUT", data=b"no json", headers=headers).refusal == (400, "InvalidRequestContent")
    assert arm.call("PUT", arm.path(), {**SERVER, "colour": "red"}).refusal == (400, "InvalidRequestContent")
