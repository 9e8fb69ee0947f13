"""A cloud whose every change is an operation: each is followed, none meets another, a failed one is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from providers.external.client import Operation
from runtime.errors import Failure, Terminal, Transient
from tests.providers.toy import ToyCloud, provider_of
from tests.providers.world import World, settled

REFUSED = Terminal("InvalidValue", "the quota of this project is used up")


@dataclass
class OperatedToys(ToyCloud):
    """Changes take effect at once and are done after so many `polls`; kinds in `failing` have no effect, and fail."""

    polls: int = 2
    failing: dict[str, Failure] = field(default_factory=dict)
    unanswered: bool = False
    opened: dict[str, int] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)

    def _takes_effect(self, kind: str) -> bool:
        return kind not in self.failing

    def _changed(self, kind: str, name: str) -> Operation:
        open_ones = [handle for handle in self.opened if handle.split("/")[1] == name]
        assert not open_ones, f"{kind} of {name} beside {open_ones}"
        handle = f"{kind}/{name}/{len(self.begun)}"
        self.opened[handle] = self.polls
        self.begun.append(kind)
        return Operation(handle, kind)

    async def poll(self, operation: Operation) -> bool:
        if self.unanswered:
            raise Transient("no answer")
        if operation.id not in self.opened:
            return True
        self.opened[operation.id] -= 1
        if self.opened[operation.id] > 0:
            return False
        del self.opened[operation.id]
        if operation.kind in self.failing:
            raise self.failing[operation.kind]
        return True


async def _ready(cloud: OperatedToys, **kind: Any) -> World:
    world = await settled(cloud, provider_of(cloud, **kind))
    assert world.reason("Ready") == "Available"
    return world


async def test_operation_that_failed_is_sent_again_once_the_spec_changes() -> None:
    cloud = OperatedToys()
    world = await _ready(cloud)
    cloud.failing["Update"] = REFUSED
    world.ask(size=20)
    await _until(world, "InvalidValue")
    cloud.failing.clear()

    world.ask(size=30)
    await world.settle()
    assert cloud.begun == ["Create", "Update", "Update"]
    assert world.reason() == "InSync"


async def _until(world: World, reason: str) -> None:
    for _ in range(20):
        result = await world.step()
        if world.reason() == reason:
            return
        world.now += getattr(result, "requeue_after", None) or timedelta(seconds=5)
    raise AssertionError(f"never {reason}: {world.reason()}")
