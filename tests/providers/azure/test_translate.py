"""Answers of ARM as recorded, in the model of the spec; what differs, and the PATCH or PUT that it takes."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from providers.azure.models import FlexibleServerParameters
from providers.azure.servers import changes, create
from providers.azure.servers.facts import Facts
from providers.azure.servers.server_list import digest_of
from providers.azure.servers.translate import incarnation_of, invariants, observed
from providers.external.client import Target
from providers.external.cloud_api.tags import owner_tags
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Change, Class, Observed, Phase
from providers.external.ownership import Owner

OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "server")
# As recorded on 2026-01-13 at API version 2022-12-01, with tags.
RECORDED: dict[str, Any] = json.loads(
    '{"sku":{"name":"Standard_D4s_v3","tier":"GeneralPurpose"},'
    '"systemData":{"createdAt":"2026-01-13T05:56:18.1234567Z"},'
    '"properties":{"authConfig":{"activeDirectoryAuth":"Disabled","passwordAuth":"Enabled"},"dataEncryption":{"type":'
    '"SystemManaged"},"fullyQualifiedDomainName":"pg.postgres.database.azure.com","version":"13","minorVersion":"23",'
    '"administratorLogin":"myadmin","state":"Ready","availabilityZone":"1","storage":{"storageSizeGB":128},"backup":'
    '{"backupRetentionDays":7,"geoRedundantBackup":"Disabled"},"network":{"publicNetworkAccess":"Enabled"},'
    '"highAvailability":{"mode":"Disabled","state":"NotEnabled"},"maintenanceWindow":{"customWindow":"Disabled",'
    '"dayOfWeek":0,"startHour":0,"startMinute":0},"replicationRole":"Primary","replicaCapacity":5},'
    '"location":"UK South",'
    '"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.DBforPostgreSQL/flexibleServers/pg","name":"pg",'
    '"type":"Microsoft.DBforPostgreSQL/flexibleServers"}'
)
SPEC = FlexibleServerParameters(
    resource_group_name="RG",
    location="uksouth",
    administrator_login="myadmin",
    sku_name="standard_d4s_v3",
    sku_tier="GeneralPurpose",
    version="13",
    storage_size_gb=128,
)


def target_of(**fields: Any) -> Target[FlexibleServerParameters]:
    return Target("rg/pg", msgspec.structs.replace(SPEC, **fields), OWNER, "hash")


def answer_of(**properties: Any) -> dict[str, Any]:
    answer = deepcopy(RECORDED)
    answer["tags"] = owner_tags(OWNER)
    for name, value in properties.items():
        known = answer["properties"].get(name)
        answer["properties"][name] = {**known, **value} if isinstance(known, dict) and value else value
    return answer


def _changes(answer: Any, **fields: Any) -> tuple[tuple[Change, ...], Observed[FlexibleServerParameters, Facts]]:
    target = target_of(**fields)
    seen = observed(answer, target)
    differences = tuple(changes.classify(change, seen) for change in diff(target.spec, seen.spec))
    return (*differences, *invariants(target, seen)), seen


def test_recorded_answer_is_what_was_asked_for_in_azures_own_letter_case() -> None:
    differences, seen = _changes(answer_of())

    assert differences == ()
    assert (seen.phase, seen.incarnation) == (Phase.READY, "2026-01-13T05:56:18.123456+00:00")
    assert (seen.endpoint.host, seen.endpoint.database, seen.endpoint.sslmode) == (
        "pg.postgres.database.azure.com",
        "postgres",
        "verify-full",
    )
    assert seen.endpoint.is_verified
    assert seen.endpoint.ca == ""


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        ({"storage": {"storageSizeGB": 256}}, {"auto_grow": None}),
        ({"storage": {"storageSizeGB": 256, "autoGrow": "enabled"}}, {"auto_grow": "Enabled"}),
        ({"version": "13.4"}, {}),
        ({"maintenanceWindow": {"customWindow": "enabled"}}, {"custom_window": "Enabled"}),
        ({"highAvailability": {"mode": "zoneRedundant"}}, {"high_availability_mode": "ZoneRedundant"}),
        ({"highAvailability": None}, {"high_availability_mode": "Disabled"}),
        ({}, {"standby_availability_zone": "2", "high_availability_mode": "Disabled"}),
        ({}, {"password_auth": "Enabled", "active_directory_auth": "Disabled"}),
        ({}, {"storage_tier": "P10"}),
        ({"storage": {"storageSizeGB": 256, "tier": "P15"}}, {"auto_grow": None, "storage_tier": "P10"}),
        ({"network": {"delegatedSubnetResourceId": "/x"}}, {"public_network_access": "Disabled"}),
        ({"availabilityZone": "3"}, {"availability_zone": "1"}),
        ({}, {"tags": {}}),
    ],
)
def test_no_difference(properties: Any, fields: Any) -> None:
    assert _changes(answer_of(**properties), **fields)[0] == ()


def test_grown_storage_is_tolerated_and_said() -> None:
    _, seen = _changes(answer_of(storage={"storageSizeGB": 256, "tier": "P15"}), storage_tier="P10")

    shown = [(change.shown, change.want, change.have) for change in seen.tolerated]
    assert shown == [("storageSizeGB", 128, 256), ("storageTier", "P10", "P15")]


def test_tier_is_never_set_below_that_of_the_storage() -> None:
    answer = answer_of(storage={"storageSizeGB": 256, "tier": "P50"})
    differences, seen = _changes(answer, storage_tier="P10", auto_grow=None)
    body = changes.request(target_of(storage_tier="P10").spec, seen, differences) or {}

    assert body["properties"]["storage"]["tier"] == "P15"


def test_tag_of_ours_that_is_gone_is_put_back_and_letter_case_is_none() -> None:
    answer = answer_of()
    answer["tags"] = {key.upper(): value for key, value in owner_tags(OWNER).items() if key != "fairlead-claim"}

    differences, seen = _changes(answer)

    assert [change.path for change in differences] == [("tags", "fairlead-claim")]
    assert seen.owner is None


_PLAIN_AUTH = {"activeDirectoryAuth": "Disabled", "passwordAuth": "Disabled"}
_ENTRA_AUTH = {"activeDirectoryAuth": "Enabled", "passwordAuth": "Enabled", "tenantId": "t"}
_HIGH = {"mode": "ZoneRedundant", "standbyAvailabilityZone": "2"}
_WINDOW = {"customWindow": "Enabled", "dayOfWeek": 2, "startHour": 3, "startMinute": 0}
_ZONES = {"high_availability_mode": "ZoneRedundant", "standby_availability_zone": "2"}
_TUESDAY = {"custom_window": "Enabled", "day_of_week": 2, "start_hour": 3}


@pytest.mark.parametrize(
    ("fields", "kind", "properties"),
    [
        ({"storage_size_gb": 256}, Class.ONLINE, {"storage": {"storageSizeGB": 256}}),
        ({"version": "16"}, Class.LOSS, {"version": "16"}),
        ({"backup_retention_days": 14}, Class.ONLINE, {"backup": {"backupRetentionDays": 14}}),
        (_ZONES, Class.ONLINE, {"highAvailability": _HIGH}),
        ({"public_network_access": "Disabled"}, Class.LOCKOUT, {"network": {"publicNetworkAccess": "Disabled"}}),
        ({"active_directory_auth": "Enabled", "tenant_id": "t"}, Class.RESTART, {"authConfig": _ENTRA_AUTH}),
        ({"password_auth": "Disabled"}, Class.LOCKOUT, {"authConfig": _PLAIN_AUTH}),
        (_TUESDAY, Class.ONLINE, {"maintenanceWindow": _WINDOW}),
        ({"sku_name": "Standard_D8s_v3"}, Class.RESTART, None),
    ],
)
def test_difference_has_its_class_and_its_patch(fields: Any, kind: Class, properties: Any) -> None:
    differences, seen = _changes(answer_of(), **fields)

    assert differences[0].kind is kind
    assert all(change.veto is None for change in differences)
    size = {"sku": {"name": "Standard_D8s_v3", "tier": "GeneralPurpose"}}
    body = size if properties is None else {"properties": properties}
    assert changes.request(target_of(**fields).spec, seen, differences) == body


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        ({"version": "16"}, {"version": "13"}),
        ({"version": "13"}, {"version": "1"}),
        ({}, {"primary_key_uri": "https://vault.example/keys/k"}),
    ],
)
def test_change_that_azure_never_makes_is_not_sent(properties: Any, fields: Any) -> None:
    (change, *_), _ = _changes(answer_of(**properties), **fields)

    assert change.veto is not None
    assert change.veto[0] == "InvalidValue"


def test_upgrade_travels_alone() -> None:
    differences, _ = _changes(answer_of(), version="16", storage_size_gb=256)

    assert {change.path[0]: change.alone for change in differences} == {"version": True, "storageSizeGB": False}


@pytest.mark.parametrize(("tier", "along"), [("Burstable", ("skuTier",)), ("MemoryOptimized", ())])
def test_standby_of_a_burstable_server_goes_with_its_size(tier: str, along: tuple[str, ...]) -> None:
    answer = {**answer_of(highAvailability={"mode": "Disabled"}), "sku": {"name": "Standard_D4s_v3", "tier": tier}}
    differences, _ = _changes(answer, high_availability_mode="ZoneRedundant")

    assert {change.path[0]: change.along for change in differences} == {"skuTier": (), "highAvailabilityMode": along}


def test_patch_of_a_tag_carries_all_of_them() -> None:
    answer = answer_of()
    answer["tags"] |= {"Team": "a", "other": "b"}
    target = target_of(tags={"team": "c"})
    seen = observed(answer, target)

    body = changes.request(target.spec, seen, diff(target.spec, seen.spec))

    assert body == {"tags": {**owner_tags(OWNER), "other": "b", "team": "c"}}


def test_create_sends_mode_and_password_and_a_patch_never_does() -> None:
    target = target_of(tags={"team": "a"}, availability_zone="2", geo_redundant_backup="Enabled")

    body = create.body_of(target, Credential("myadmin", "Pa55"), source="", now=datetime(2026, 1, 1, tzinfo=UTC))

    assert body["location"] == "uksouth"
    assert body["tags"] == {"team": "a", **owner_tags(OWNER)}
    assert body["sku"] == {"name": "standard_d4s_v3", "tier": "GeneralPurpose"}
    assert body["properties"] == {
        "createMode": "Create",
        "version": "13",
        "storage": {"storageSizeGB": 128},
        "backup": {"geoRedundantBackup": "Enabled"},
        "availabilityZone": "2",
        "administratorLogin": "myadmin",
        "administratorLoginPassword": "Pa55",
    }


def test_restore_has_source_and_instant_and_the_logins_of_its_source() -> None:
    target = target_of(create_mode="PointInTimeRestore", source_server_resource_id="/typed")
    now = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)

    body = create.body_of(target, Credential("myadmin", "Pa55"), source="/subscriptions/s", now=now)

    assert body["properties"] == {
        "createMode": "PointInTimeRestore",
        "sourceServerResourceId": "/subscriptions/s",
        "pointInTimeUTC": "2026-01-01T12:30:00Z",
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-01-13T05:56:18.1234567Z", "2026-01-13T05:56:18.123456+00:00"),
        ("2026-01-13T05:56:18Z", "2026-01-13T06:56:18+01:00"),
    ],
)
def test_one_incarnation_in_two_spellings(first: str, second: str) -> None:
    spelled = [incarnation_of({"systemData": {"createdAt": text}}) for text in (first, second)]

    assert spelled[0] == spelled[1]


def test_server_without_a_date_of_creation_is_busy() -> None:
    answer = answer_of()
    del answer["systemData"]

    assert observed(answer, target_of()).phase is Phase.BUSY


def test_digest_is_blind_to_what_changes_by_itself() -> None:
    later = answer_of(backup={"earliestRestoreDate": "2026-02-01"}, replicaCapacity=4)

    assert digest_of(later) == digest_of(answer_of())
    assert digest_of(answer_of(version="14")) != digest_of(answer_of())
