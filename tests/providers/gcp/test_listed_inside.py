"""Databases and users are looked at when an operation touched their instance: calls on the wire, by one clock."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from devcloud.gcp.server import Served
from providers.external.provider import Kind
from providers.gcp import DATABASES, USERS
from providers.gcp.names import owner_labels
from tests.providers.gcp.simulated_sql import SimulatedSql
from tests.providers.gcp.sql_world import ListedSql, SqlWorld
from tests.providers.world import SERVER_OWNER
from tests.support.simulator_control import control

pytestmark = pytest.mark.slow

SERVER = "of-the-platform"
_HOUR_OF_DAY = 12
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LOOKS = {"databases.get", "users.list", "instances.get"}


class PacedInside(ListedSql):
    """Passes and lists of what is inside an instance."""

    def methods(self) -> Counter[str]:
        """Return how often the provider called each method."""
        counts: Counter[str] = Counter()
        for (action, _), number in self.calls().items():
            counts[action] += number
        return counts


async def _at_rest(served: Served, kind: Kind[Any, Any], **spec: object) -> tuple[SimulatedSql, SqlWorld, PacedInside]:
    """Return a resource inside an instance that is Ready for a quarter of an hour."""
    sql = SimulatedSql(served)
    sql.create(SERVER, owner_labels(SERVER_OWNER))
    now = datetime.fromisoformat(control(served, "POST", "clock", {"advance_s": 600.0})["now"])
    # An object's own look comes at a time of day that its name gives: every run begins at the same time of day.
    begin = now.replace(hour=_HOUR_OF_DAY, minute=0, second=0, microsecond=0)
    begin += timedelta(days=1) if begin < now else timedelta()
    clock = control(served, "POST", "clock", {"advance_s": (begin - now).total_seconds()})
    world = SqlWorld(served, kind=kind, spec={"instance": SERVER, "name": "app", **spec})
    # One clock: operations have the simulator's time.
    world.now = datetime.fromisoformat(clock["now"])
    world.ask()
    paced = PacedInside(world)
    await paced.when(lambda: world.reason("Ready") == "Available")
    await paced.until(world.now + 30 * MINUTE)
    world.forget()
    return sql, world, paced


@pytest.mark.parametrize(("kind", "look"), [(DATABASES, "databases.get"), (USERS, "users.list")])
async def test_six_hours_cost_one_look_and_the_lists(served: Served, kind: Kind[Any, Any], look: str) -> None:
    _, world, paced = await _at_rest(served, kind)
    passes = paced.passes
    await paced.until(world.now + 6 * HOUR)
    calls = paced.methods()
    assert calls["operations.list"] in range(358, 363)
    # The list of instances lasts, as no minute passes for whoever counts its age here.
    assert calls["instances.list"] <= 1
    assert {name: number for name, number in calls.items() if name in LOOKS} == {look: 1}
    assert calls["instances.listServerCas"] <= 1
    assert paced.passes >= passes + 33
    assert world.changes() == []
    assert world.reason() == "InSync"


async def test_database_that_somebody_deletes_is_missed_within_a_sweep(served: Served) -> None:
    sql, world, paced = await _at_rest(served, DATABASES)
    began = world.now
    sql.call("DELETE", f"instances/{SERVER}/databases/app", None)
    await paced.when(lambda: paced.methods()["databases.get"] > 0)
    assert world.now - began <= timedelta(seconds=61)
    await paced.when(lambda: world.reason() == "DatabaseLost")
    assert [name for name in world.changes() if name != "databases.delete"] == []
