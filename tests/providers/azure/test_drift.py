"""Every mutable field of Azure's kinds, changed by somebody else: put back, reported, or left, by its rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from devcloud.azure.entra.directory import SUBSCRIPTION
from providers.azure.children.kinds import CONFIGURATIONS, FIREWALL_RULES
from providers.external.provider import Kind
from runtime.objects import Object
from tests.architecture.tree import CRDS
from tests.providers.azure.arm_world import ArmWorld, inside_of, server_at_rest
from tests.providers.azure.simulated_arm import Arm
from tests.support import yaml_texts

pytestmark = pytest.mark.slow
# Not in ARM: what is inside a server has a kind of its own, and its server is found by name or by reference.
_NOT_IN_ARM = {"databaseName", "server", "serverRef"}
_GROWS_ONLY = {"storageSizeGB", "version"}
_IDENTITY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
_KEY: Object = {"primaryKeyURI": "https://v.vault/keys/k/1", "primaryUserAssignedIdentityId": f"{_IDENTITY}/one"}
_WINDOW: Object = {"customWindow": "Enabled", "dayOfWeek": 3, "startHour": 4, "startMinute": 30}
_ENTRA: Object = {"activeDirectoryAuth": "Enabled", "tenantId": "11111111-0000-4000-8000-000000000001"}
_ZONES: Object = {"highAvailabilityMode": "ZoneRedundant", "standbyAvailabilityZone": "2"}
_THEIR_RANGE = {"startIpAddress": "192.0.2.1", "endIpAddress": "192.0.2.9"}
_SWEEPS = 100


class Answer(Enum):
    """What becomes of a change of somebody else's, as the reason of Synced."""

    CORRECTED = "InSync"
    """Put back at once, for it interrupts nobody."""
    HELD = "DriftHeld"
    """Reported; put back in the window, or now under `driftPolicy: Correct`."""
    LOSS = "HeldChange"
    """Reported; to put it back wants a consent."""
    IMPOSSIBLE = "InvalidValue"
    """Reported; Azure does not take it back."""
    LEFT = "InSync, as Azure may do it by itself"


@dataclass(frozen=True, slots=True)
class Row:
    """A field of the spec with its value, what somebody makes of it in ARM, and what becomes of that."""

    path: str
    spec: Any
    theirs: Mapping[str, Any]
    answer: Answer = Answer.CORRECTED
    needs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.path}={self.spec}"


def _row(path: str, spec: Any, group: str, value: Any, answer: Answer = Answer.CORRECTED, **needs: Any) -> Row:
    """Return the row of a field that ARM has in a group of its properties by the same name."""
    return Row(path, spec, {"properties": {group: {path: value}}}, answer, needs)


ROWS = (
    Row("skuName", "Standard_D2ds_v5", {"sku": {"name": "Standard_D4ds_v5", "tier": "GeneralPurpose"}}, Answer.HELD),
    Row("skuTier", "GeneralPurpose", {"sku": {"name": "Standard_D2ds_v5", "tier": "MemoryOptimized"}}, Answer.HELD),
    Row("version", "16", {"properties": {"version": "17"}}, Answer.IMPOSSIBLE),
    Row("storageSizeGB", 64, {"autogrow": True}, Answer.LEFT),
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
    """Return the fields of `forProvider` that the CRD's rules let an edit change."""
    crd = yaml_texts.load(CRDS / f"azure.fairlead.dev_{kind}.yaml")
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = " ".join(rule["rule"] for rule in spec["x-kubernetes-validations"])
    fixed = set(re.findall(r"self\.forProvider\.\w+ == oldSelf\.forProvider\.(\w+)", rules)) - _GROWS_ONLY
    return set(spec["properties"]["forProvider"]["properties"]) - fixed - _NOT_IN_ARM


def test_every_mutable_field_has_its_row() -> None:
    assert {row.path for row in ROWS} == _mutable("flexibleservers")
    assert {"cidr", "startIpAddress", "endIpAddress"} == _mutable("flexibleserverfirewallrules")
    assert {"value"} == _mutable("flexibleserverconfigurations")
    assert _mutable("flexibleserverdatabases") == set()


def _leaves(tree: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return what is in an answer by its path: `properties.storage.tier`."""
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        place = f"{path}.{name}" if path else name
        leaves |= _leaves(value, place) if isinstance(value, Mapping) else {place: value}
    return leaves


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_field_changed_by_somebody_else_is_put_back_reported_or_left(arm: Arm, row: Row) -> None:
    world = await server_at_rest(arm, parameters={**row.needs, row.path: row.spec})
    before = _leaves(world.shown())
    whole = {"tags": {**world.shown()["tags"], **row.theirs["tags"]}} if "tags" in row.theirs else row.theirs
    arm.steer(world.name_of(), **whole)
    struck = {name: value for name, value in _leaves(world.shown()).items() if before.get(name) != value}
    assert struck, "nobody changed anything"

    match row.answer:
        case Answer.CORRECTED:
            await world.until(lambda: _is_back(world, before, struck))
            await world.rest()
            assert arm.changes() == ["flexibleServers.patch"]
        case Answer.HELD:
            await _is_reported(world, row)
            world.ask(parameters={**row.needs, row.path: row.spec}, driftPolicy="Correct")
            await world.rest()
            assert _is_back(world, before, struck)
            assert arm.changes() == ["flexibleServers.patch"]
        case Answer.LOSS | Answer.IMPOSSIBLE:
            await _is_reported(world, row)
            world.ask(parameters={**row.needs, row.path: row.spec}, driftPolicy="Correct")
            assert await world.for_hours(2) == {row.answer.value}
            assert arm.changes() == []
        case Answer.LEFT:
            assert await world.for_hours(2) == {"InSync"}
            assert arm.changes() == []
            assert [entry["action"] for entry in world.status_of()["drift"]] == ["Tolerated"]


def _is_back(world: ArmWorld, before: Mapping[str, Any], struck: Mapping[str, Any]) -> bool:
    now = _leaves(world.shown())
    return all(now.get(name) == before.get(name) for name in struck)


async def _is_reported(world: ArmWorld, row: Row) -> None:
    """It is said which field differs, for hours, and nothing is sent."""
    await world.until(row.answer.value)
    assert await world.for_hours(1) == {row.answer.value}
    assert row.path in {entry["path"].partition(".")[0] for entry in world.status_of()["drift"]}
    assert world.arm.changes() == []


INSIDE: tuple[tuple[Kind[Any, Any], Object, str, Mapping[str, Any]], ...] = (
    (FIREWALL_RULES, {"cidr": "203.0.113.0/24"}, "firewallRules", _THEIR_RANGE),
    (
        FIREWALL_RULES,
        {"startIpAddress": "203.0.113.1", "endIpAddress": "203.0.113.9"},
        "firewallRules",
        {**_THEIR_RANGE, "endIpAddress": "203.0.113.9"},
    ),
    (CONFIGURATIONS, {"name": "work_mem", "value": "64MB"}, "configurations", {"value": "8192"}),
)


@pytest.mark.parametrize(("kind", "spec", "word", "theirs"), INSIDE, ids=lambda value: str(value)[:30])
async def test_what_is_inside_a_server_is_put_back(
    arm: Arm, kind: Kind[Any, Any], spec: Object, word: str, theirs: Mapping[str, Any]
) -> None:
    server = await server_at_rest(arm)
    world = inside_of(server, kind, spec)
    world.ask()
    await world.rest()
    before = server.shown()["children"][word]
    arm.forget()
    arm.control("POST", f"servers/{server.name_of().split('/')[1]}/{word}/{next(iter(before))}", theirs)
    assert server.shown()["children"][word] != before

    await world.until(lambda: bool(server.shown()["children"][word] == before))
    await world.rest()
    assert arm.changes() == [f"{word}.put"]


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
