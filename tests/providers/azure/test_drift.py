"""Every mutable field of Azure's kinds, changed by somebody else: put back, reported, or left, by its rule.

The clause `foreign_change_is_put_back_or_held_by_its_class` shows what the reconciler makes of each class.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from devcloud.azure.entra.directory import SUBSCRIPTION
from providers.azure.models import FlexibleServerParameters
from providers.azure.servers import create
from providers.azure.servers.changes import classify
from providers.azure.servers.translate import observed
from providers.external.client import Target
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Change
from runtime.objects import Object
from tests.providers.azure.arm_world import server_at_rest
from tests.providers.azure.azure_world import SERVER
from tests.providers.azure.simulated_arm import Arm
from tests.providers.azure.test_translate import OWNER, answer_of
from tests.providers.drifted import Answer, Row, answer_to, merged, mutable_fields

# Not in ARM: what is inside a server has a kind of its own, and its server is found by name or by reference.
_NOT_IN_ARM = {"databaseName", "server", "serverRef"}
_GROWS_ONLY = {"storageSizeGB", "version"}
_IDENTITY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
_KEY: Object = {"primaryKeyURI": "https://v.vault/keys/k/1", "primaryUserAssignedIdentityId": f"{_IDENTITY}/one"}
_WINDOW: Object = {"customWindow": "Enabled", "dayOfWeek": 3, "startHour": 4, "startMinute": 30}
_ENTRA: Object = {"activeDirectoryAuth": "Enabled", "tenantId": "11111111-0000-4000-8000-000000000001"}
_ZONES: Object = {"highAvailabilityMode": "ZoneRedundant", "standbyAvailabilityZone": "2"}
_SWEEPS = 100


def _row(path: str, spec: Any, group: str, value: Any, answer: Answer = Answer.CORRECTED, **needs: Any) -> Row:
    """Return the row of a field that ARM has in a group of its properties by the same name."""
    return Row(path, spec, {"properties": {group: {path: value}}}, answer, needs)


ROWS = (
    Row("skuName", "Standard_D2ds_v5", {"sku": {"name": "Standard_D4ds_v5", "tier": "GeneralPurpose"}}, Answer.HELD),
    Row("skuTier", "GeneralPurpose", {"sku": {"name": "Standard_D2ds_v5", "tier": "MemoryOptimized"}}, Answer.HELD),
    Row("version", "16", {"properties": {"version": "17"}}, Answer.IMPOSSIBLE),
    Row("storageSizeGB", 64, {"properties": {"storage": {"storageSizeGB": 128}}}, Answer.LEFT),
    _row("autoGrow", "Enabled", "storage", "Disabled"),
    Row("storageTier", "P10", {"properties": {"storage": {"tier": "P50"}}}),
    _row("iops", 3000, "storage", 4000),
    _row("throughput", 250, "storage", 125),
    _row("backupRetentionDays", 14, "backup", 7),
    Row("highAvailabilityMode", "Disabled", {"properties": {"highAvailability": {"mode": "SameZone"}}}),
    _row("standbyAvailabilityZone", "2", "highAvailability", "3", **_ZONES),
    _row("publicNetworkAccess", "Enabled", "network", "Disabled"),
    _row("publicNetworkAccess", "Disabled", "network", "Enabled", Answer.HELD),
    _row("passwordAuth", "Enabled", "authConfig", "Disabled", Answer.HELD),
    _row("activeDirectoryAuth", "Disabled", "authConfig", "Enabled", Answer.HELD),
    _row("tenantId", _ENTRA["tenantId"], "authConfig", "22222222-0000-4000-8000-000000000002", Answer.HELD, **_ENTRA),
    _row("primaryKeyURI", _KEY["primaryKeyURI"], "dataEncryption", "https://v.vault/keys/k/2", Answer.LOSS, **_KEY),
    _row(
        "primaryUserAssignedIdentityId",
        _KEY["primaryUserAssignedIdentityId"],
        "dataEncryption",
        f"{_IDENTITY}/two",
        Answer.LOSS,
        **_KEY,
    ),
    _row("customWindow", "Enabled", "maintenanceWindow", "Disabled", **_WINDOW),
    _row("dayOfWeek", 3, "maintenanceWindow", 5, **_WINDOW),
    _row("startHour", 4, "maintenanceWindow", 12, **_WINDOW),
    _row("startMinute", 30, "maintenanceWindow", 0, **_WINDOW),
    Row("tags", {"team": "orders"}, {"tags": {"team": "somebody"}}),
)


def _mutable(kind: str) -> set[str]:
    return mutable_fields(f"azure.fairlead.dev_flexibleserver{kind}", unfixed=_GROWS_ONLY, elsewhere=_NOT_IN_ARM)


def test_every_mutable_field_has_its_row() -> None:
    assert {row.path for row in ROWS} == _mutable("s")
    assert {"cidr", "startIpAddress", "endIpAddress"} == _mutable("firewallrules")
    assert {"value"} == _mutable("configurations")
    assert _mutable("databases") == set()


def _changes(target: Target[FlexibleServerParameters], answer: dict[str, Any]) -> tuple[Change, ...]:
    seen = observed(answer, target)
    return tuple(classify(change, seen) for change in diff(target.spec, seen.spec))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_field_changed_by_somebody_else_is_put_back_reported_or_left(row: Row) -> None:
    desired = msgspec.convert({**SERVER, **row.needs, row.path: row.spec}, FlexibleServerParameters)
    target = Target("databases/pg", desired, OWNER, "hash")
    made = create.body_of(target, Credential("app", "Pa55"), source="", now=datetime(2026, 1, 1, tzinfo=UTC))
    answer = merged(answer_of(), made)
    assert _changes(target, answer) == ()

    merged(answer, row.theirs)
    assert answer_to(row.path, _changes(target, answer), observed(answer, target).tolerated) is row.answer


@pytest.mark.slow
async def test_100_sweeps_in_azures_own_spelling_write_nothing(arm: Arm) -> None:
    """What is sent in one letter case is answered in another one, with defaults and grown by itself."""
    spelled: Object = {
        "location": "UK South",
        "resourceGroupName": "DATABASES",
        "skuName": "standard_d2DS_v5",
        "primaryKeyURI": "https://V.vault/keys/k/1",
        "primaryUserAssignedIdentityId": f"{_IDENTITY}/ONE",
        "standbyAvailabilityZone": "2",
        "tags": {"Team": "Orders"},
    }
    world = await server_at_rest(arm, parameters=spelled)
    name = world.name_of()
    tags = {key.upper(): value for key, value in world.shown()["tags"].items()}
    arm.steer(name, tags=tags)
    arm.steer(name, properties={"dataEncryption": {"primaryUserAssignedIdentityId": f"{_IDENTITY}/one"}})
    arm.steer(name, autogrow=True)
    arm.steer(name, minor="99")
    await world.rest()
    shown = world.shown()
    assert (shown["location"], shown["sku"]["name"]) == ("UK South", "Standard_D2ds_v5")
    await world.for_hours(1)

    account: Any = (await world.accounts.connect("default")).clients.account
    writes = len(world.kube.writes)
    for _ in range(_SWEEPS):
        assert (await account.list()).complete
        await world.step()
    assert world.reason() == "InSync"
    assert (arm.changes(), len(world.kube.writes)) == ([], writes)
    assert len(arm.calls("flexibleServers.listBySubscription")) >= _SWEEPS
