"""A database that is gone is lost also where the resource has forgotten it: what the cloud remembers counts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from providers.external.client import Target
from providers.external.observation import Absent, Present
from runtime.objects import Key
from tests.providers.toy import TOYS, ToyCloud, ToyParameters
from tests.providers.world import OWN, World, settled


@dataclass
class RecordingCloud(ToyCloud):
    """Keeps a record of the newest database under each name, as the on-prem server's table of ownership does."""

    records: dict[str, str] = field(default_factory=dict)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        seen = await super().observe(target)
        if isinstance(seen, Present):
            self.records[target.name] = seen.observed.incarnation
            return seen
        recorded = self.records.get(target.name, "")
        return replace(seen, recorded="" if recorded == target.incarnation else recorded)


def _forget(world: World, *, status: bool = True) -> None:
    """Take our annotations and the status away, as a backup that restores neither does."""
    obj = deepcopy(world.kube.objects[TOYS, Key("team", "db")])
    obj["metadata"]["annotations"] = {
        name: text for name, text in obj["metadata"].get("annotations", {}).items() if name not in OWN
    }
    if status:
        obj.pop("status", None)
    world.kube.store(TOYS, obj)


async def test_forgotten_database_that_is_gone_is_not_replaced() -> None:
    world = await settled(cloud := RecordingCloud())
    (lost,) = [toy.incarnation for toy in cloud.toys.values()]
    cloud.toys.clear()
    _forget(world)

    await world.passes(4, timedelta(minutes=1))

    assert cloud.toys == {}
    assert world.reason("Stalled") == "DatabaseLost"
    assert f"recreate={lost}" in str(world.get())
    world.annotate(consent=f"recreate={lost}")
    await world.settle()
    assert world.reason("Ready") == "Available"


async def test_consent_that_was_used_does_not_count_again_once_its_use_is_forgotten() -> None:
    world = await settled(cloud := RecordingCloud())
    (first,) = [toy.incarnation for toy in cloud.toys.values()]
    cloud.toys.clear()
    await world.passes(4, timedelta(minutes=1))
    before = deepcopy(world.kube.objects[TOYS, Key("team", "db")])
    world.annotate(consent=f"recreate={first}")
    await world.settle()
    (second,) = [toy.incarnation for toy in cloud.toys.values()]

    # A backup of the moment in which the first one was lost comes back, the person's consent with it.
    before["metadata"]["annotations"]["fairlead.dev/consent"] = f"recreate={first}"
    before.pop("status")
    world.kube.store(TOYS, before)
    cloud.toys.clear()
    await world.passes(4, timedelta(minutes=1))

    assert cloud.toys == {}
    assert world.reason("Stalled") == "DatabaseLost"
    assert f"recreate={second}" in str(world.get())
