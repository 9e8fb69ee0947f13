"""What a list of the subscription answers is not asked again: calls on ARM's wire, counted by one clock."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from providers.azure.listed import FRESH, ListedServers, ServerState
from providers.azure.names import ServerName, server_in_path
from providers.azure.servers.client import clients
from providers.external.provider import Kind
from runtime.objects import Object
from tests.providers.azure.arm_world import CHILDREN, KIND_IDS, ArmWorld, inside_of, server_at_rest
from tests.providers.azure.simulated_arm import Arm
from tests.providers.listed_paced import ListedPaced

pytestmark = pytest.mark.slow
HOUR, SWEEP = timedelta(hours=1), timedelta(minutes=1)
LIST, LOOK = "flexibleServers.listBySubscription", "flexibleServers.get"


class ListedArm(ListedPaced):
    """Passes of one resource with the lists of its subscription, at the simulated ARM."""

    world: ArmWorld

    def counts(self) -> Counter[str]:
        """Return how often each action was called since the last `forget`, tokens apart."""
        return Counter(str(call["action"]) for call in self.world.arm.calls())


async def _ready(arm: Arm) -> tuple[ArmWorld, ListedArm]:
    """Return a world with a server that has been Ready for an hour, its calls forgotten."""
    world = ArmWorld(arm)
    world.ask(parameters={"backupRetentionDays": 7})
    paced = ListedArm(world)
    await paced.when(lambda: (world.reason("Ready"), world.reason()) == ("Available", "InSync"))
    await paced.until(world.now + HOUR)
    arm.forget()
    return world, paced


async def test_server_at_rest_is_never_read_by_itself(arm: Arm) -> None:
    world, paced = await _ready(arm)
    passes, writes = paced.passes, len(world.kube.writes)
    await paced.until(world.now + 2 * HOUR)
    assert paced.passes > passes
    assert paced.counts() == {LIST: 120}
    assert len(world.kube.writes) == writes


async def test_list_that_is_left_out_makes_nobody_look(arm: Arm) -> None:
    world, paced = await _ready(arm)
    entry: Any = await world.accounts.connect("default")
    # Few reads are left, by ARM's last answer.
    entry.clients.external._account.reads_left = 1
    for _ in range(10):
        paced.wake()
        await paced.until(world.now + SWEEP)
    assert paced.counts() == {LIST: 9}


each_kind = pytest.mark.parametrize(("kind", "spec", "word"), CHILDREN, ids=KIND_IDS)


async def _child(arm: Arm, kind: Kind[Any, Any], spec: Object) -> tuple[ArmWorld, ArmWorld, Any]:
    """Return a server, a child of it at rest, and the subscription as the provider has it, its servers just listed."""
    server = await server_at_rest(arm)
    world = inside_of(server, kind, spec)
    world.ask()
    await world.rest()
    entry: Any = await world.accounts.connect("default")
    account = entry.clients.external._account
    await clients(account).account.list()
    arm.forget()
    return server, world, account


def _reads(arm: Arm) -> list[str]:
    return [str(call["action"]) for call in arm.calls() if not call["mutating"]]


@each_kind
async def test_child_at_rest_in_a_listed_server_takes_one_call(
    arm: Arm, kind: Kind[Any, Any], spec: Object, word: str
) -> None:
    _, world, account = await _child(arm, kind, spec)
    writes = len(world.kube.writes)
    await world.step()
    assert _reads(arm) == [f"{word}.get"]

    time = account.listed.now() + FRESH.total_seconds() + 1
    account.listed._monotonic = lambda: time
    arm.forget()
    await world.step()
    assert _reads(arm) == [LOOK, f"{word}.get"]
    assert (arm.changes(), len(world.kube.writes)) == ([], writes)


READY = ServerState("Ready", "1", None)


def test_list_counts_while_it_is_fresh_and_began_after_the_last_call() -> None:
    now = 0.0
    servers, orders = ListedServers(lambda: now), ServerName("Databases", "orders")
    assert servers.ready(orders) is None
    servers.record({"databases/orders": READY, "databases/two": READY._replace(state="Updating")}, 0.0)
    assert (servers.ready(orders), servers.ready(ServerName("databases", "two"))) == (READY, None)

    now = 5.0
    servers.record_call(orders)
    assert servers.ready(orders) is None
    # It began before the call, and ended after it.
    servers.record({"databases/orders": READY}, 4.0)
    assert servers.ready(orders) is None
    servers.record({"databases/orders": READY._replace(incarnation="3")}, 6.0)
    # An older one, which ended later.
    servers.record({"databases/orders": READY}, 5.5)
    assert servers.ready(orders) == READY._replace(incarnation="3")
    now = 6.0 + FRESH.total_seconds()
    assert servers.ready(orders) is not None
    now += 1
    assert servers.ready(orders) is None


def test_path_of_a_request_names_its_server() -> None:
    group = "/subscriptions/s/resourceGroups/A%20Group/providers/Microsoft.DBforPostgreSQL/flexibleServers"
    assert server_in_path(f"{group}/one") == ServerName("a group", "one")
    assert server_in_path(f"{group}/one/databases/orders") == ServerName("a group", "one")
    assert server_in_path("/subscriptions/s/providers/Microsoft.DBforPostgreSQL/checkNameAvailability") is None
