"""ARM accepts before it decides: operations that are lost, fail, or meet those of others, at the simulated ARM."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from providers.azure.children.kinds import FIREWALL_RULES
from providers.external.provider import Kind
from runtime.objects import Object
from tests.providers.azure.arm_world import INSIDE, KIND_IDS, ArmWorld, inside_of, server_at_rest
from tests.providers.azure.simulated_arm import Arm, path_of
from tests.providers.gates import Calls, Gate
from tests.providers.paced import Paced

pytestmark = pytest.mark.slow
PUT, PATCH = "flexibleServers.put", "flexibleServers.patch"
each_kind = pytest.mark.parametrize(("kind", "spec"), INSIDE, ids=KIND_IDS)


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("moment", ["under way", "over"])
async def test_operation_whose_url_is_gone_leaves_it_to_the_state(arm: Arm, moment: str, status: int) -> None:
    arm.behave(lost_status=status)
    world = ArmWorld(arm)
    world.ask()
    await world.until(lambda: "operation" in world.status_of())
    (handle,) = arm.operations()
    arm.control("DELETE", f"operations/{handle}")
    if moment == "over":
        world.pass_time(timedelta(hours=1))
    await world.rest()

    assert (arm.changes(), world.reason("Ready")) == ([PUT], "Available")


async def test_creation_that_azure_accepts_and_cannot_carry_out_is_said_and_made_once_it_can(arm: Arm) -> None:
    arm.behave(no_capacity=["Standard_D2ds_v5"])
    world = ArmWorld(arm)
    world.ask()
    paced = Paced(world)
    await paced.until(world.now + timedelta(hours=6))
    assert (world.reason(), arm.servers()) == ("QuotaExceeded", {})
    assert "SkuNotAvailable" in str(world.condition()["message"])
    assert 1 <= len(arm.changes()) <= 20
    assert paced.crashes == 0

    arm.behave(no_capacity=[])
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.rest()
    assert len(arm.servers()) == 1


@pytest.mark.parametrize("code", ["ServerIsBusy", "ServerBusy", "AnotherOperationInProgress", "OperationFailed"])
async def test_operation_that_others_pushed_aside_is_sent_again(arm: Arm, code: str) -> None:
    world = await server_at_rest(arm)
    arm.control("POST", "operations", {"code": code, "message": "Try again later."})
    world.ask(parameters={"backupRetentionDays": 9})
    await world.rest()

    assert world.shown()["properties"]["backup"]["backupRetentionDays"] == 9
    assert arm.changes() == [PATCH, PATCH]


@each_kind
@pytest.mark.parametrize("answered", ["fail", "refuse"])
async def test_busy_server_of_somebody_else_is_met_and_heals(
    arm: Arm, kind: Kind[Any, Any], spec: Object, answered: str
) -> None:
    """Somebody begins a change of the server between our look and our PUT: we are refused at once, or out of a poll."""
    arm.behave(busy=answered)
    server = await server_at_rest(arm)
    calls = Calls(Gate())
    world = inside_of(server, kind, spec, calls)
    body = {"properties": {"backup": {"backupRetentionDays": 21}}}
    calls.before_create = lambda: arm.person("PATCH", path_of(server.name_of()), body)
    world.ask()
    await world.rest()

    assert arm.met_busy() != []
    assert (world.reason("Ready"), len(arm.changes())) == ("Available", 2)
    assert server.shown()["properties"]["backup"]["backupRetentionDays"] == 21


async def test_change_of_a_server_that_somebody_else_changes_waits_and_provokes_nothing(arm: Arm) -> None:
    world = await server_at_rest(arm)
    arm.person("PATCH", path_of(world.name_of()), {"properties": {"backup": {"backupRetentionDays": 21}}})
    world.ask(parameters={"autoGrow": "Enabled"})
    await world.until("CloudBusy")
    assert (arm.changes(), world.shown()["properties"]["state"]) == ([], "Updating")
    await world.rest()

    assert (arm.changes(), arm.met_busy()) == ([PATCH], [])


@pytest.mark.parametrize("honours_precondition", [True, False])
async def test_foreign_server_raced_in_between_look_and_put_stays_untouched(
    arm: Arm, *, honours_precondition: bool
) -> None:
    arm.behave(honours_if_none_match=honours_precondition)
    calls = Calls(Gate())
    world = ArmWorld(arm, calls=calls)
    world.ask()
    raced: list[str] = []

    def race() -> None:
        raced.append(world.name_of())
        arm.make(raced[0])

    calls.before_create = race
    await world.until("NotOwned")
    before = {name: server["systemData"] for name, server in arm.servers().items()}
    assert await world.for_hours(2) == {"NotOwned"}
    world.delete()
    await world.rest()

    assert {name: server["systemData"] for name, server in arm.servers().items()} == before
    assert (world.get(), list(before), arm.changes()) == (None, raced, [PUT])
    assert "fairlead-identity" not in (arm.servers()[raced[0]].get("tags") or {})


_AZURE = "0.0.0.0"  # noqa: S104 - an address of a rule


@pytest.mark.parametrize("spec", [{"cidr": f"{_AZURE}/32"}, {"startIpAddress": _AZURE, "endIpAddress": _AZURE}])
async def test_rule_that_lets_all_customers_of_azure_in_is_refused(arm: Arm, spec: Object) -> None:
    server = await server_at_rest(arm)
    world = inside_of(server, FIREWALL_RULES, {"cidr": "203.0.113.0/24"})
    world.ask()
    await world.rest()
    sent = len(arm.changes())
    world.ask(parameters={"cidr": None, **spec})
    await world.until(lambda: world.reason() == "InvalidValue")
    assert len(arm.changes()) == sent
    assert "every service of Azure" in str(world.condition()["message"])
