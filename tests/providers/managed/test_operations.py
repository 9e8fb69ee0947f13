"""A cloud whose every change is an operation: each is followed, none meets another, a failed one is remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from providers.accounts.turns import Holder, Turns
from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential
from providers.external.provider import LoginRules
from runtime.errors import Failure, Terminal, Transient
from runtime.objects import Key
from runtime.results import Result
from tests.providers.paced import Paced
from tests.providers.toy import START, Seen, ToyCloud, ToyParameters, provider_of
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


@dataclass
class LatePasswords(OperatedToys):
    """A password of the one login counts from its operation's end, and the former one until then."""

    coming: tuple[str, Credential] | None = None

    async def set(
        self, target: Target[ToyParameters], observed: Seen, credential: Credential, fence: Fence
    ) -> Operation:
        del observed, fence
        self.coming = target.name, credential
        return self._changed("SetPassword", target.name)

    async def poll(self, operation: Operation) -> bool:
        ended = await super().poll(operation)
        if ended and self.coming is not None:
            name, credential = self.coming
            self.toys[name].passwords[credential.username], self.coming = credential.password, None
        return ended


async def test_password_of_one_login_is_followed_closely_while_its_operation_is_open() -> None:
    cloud = LatePasswords(polls=12)
    rules: LoginRules[ToyParameters, Any] = LoginRules(
        names=lambda _target: ("boss", "boss"), versions=lambda observed: dict(cloud.toys[observed.name].passwords)
    )
    world = await _ready(cloud, logins=rules, asynchronous=True)
    former = world.status["connection"]["passwordRef"]
    world.ask(passwordRotation={"token": "1"})
    waits = []
    while world.status["connection"]["passwordRef"] == former:
        result = await world.step()
        assert isinstance(result, Result)
        assert result.requeue_after is not None or not cloud.opened
        waits.append(result.requeue_after)
        world.now += result.requeue_after or timedelta()
    # From its end on nobody is let in until the next one is published.
    assert waits[1:-1] == [timedelta(seconds=1)] * (len(waits) - 2)
    assert cloud.begun == ["Create", "SetPassword"]


async def test_password_whose_operation_fails_for_ever_is_sent_three_times_in_six_hours_and_says_one_thing() -> None:
    cloud = OperatedToys()
    world = await _ready(cloud)
    cloud.failing["SetPassword"] = REFUSED
    cloud.begun.clear()
    paced = Paced(world)
    world.ask(passwordRotation={"token": "1"})
    paced.wake()
    await paced.until(world.now + timedelta(minutes=5))
    paced.conditions.clear()
    await paced.until(world.now + timedelta(hours=6))

    assert len(cloud.begun) <= 3
    assert set(cloud.begun) == {"SetPassword"}
    settled = {conditions for conditions in paced.conditions if "CloudBusy" not in str(conditions)}
    assert len(settled) == 1
    assert "Synced=False InvalidValue" in str(settled)
    assert "the quota of this project is used up" in world.condition()["message"]


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


async def test_operation_of_a_deletion_that_failed_is_sent_again_more_rarely() -> None:
    cloud = OperatedToys()
    world = await _ready(cloud)
    cloud.failing["Delete"] = REFUSED
    world.delete()
    end = world.now + timedelta(hours=1)
    while world.now < end:
        result = await world.step()
        world.now += getattr(result, "requeue_after", None) or timedelta(seconds=5)
    assert 2 <= cloud.begun.count("Delete") <= 6

    cloud.failing.clear()
    world.now += timedelta(minutes=15)
    await world.settle()
    assert world.get() is None


async def test_operation_that_never_answers_is_over_after_a_day() -> None:
    cloud = OperatedToys()
    world = await _ready(cloud)
    world.ask(size=20)
    await world.step()
    cloud.unanswered = True
    world.now = START + timedelta(hours=23)
    await world.step()
    assert world.status["operation"]["kind"] == "Update"

    world.now = START + timedelta(hours=25)
    await world.settle()
    assert cloud.begun == ["Create", "Update"]
    assert world.reason() == "InSync"


async def _until(world: World, reason: str) -> None:
    for _ in range(20):
        result = await world.step()
        if world.reason() == reason:
            return
        world.now += getattr(result, "requeue_after", None) or timedelta(seconds=5)
    raise AssertionError(f"never {reason}: {world.reason()}")


def test_turn_is_free_for_the_next_after_a_refused_call() -> None:
    turns, first, second = Turns(), Holder("Toy", Key("team", "a")), Holder("Toy", Key("team", "b"))

    def refused() -> None:
        with turns.turn("account", "server", first) as holder:
            assert holder is None
            with turns.turn("account", "server", second) as other:
                assert other == first
            assert turns.holder("account", "server", second) == first
            assert turns.holder("another", "server", second) is None
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused()
    with turns.turn("account", "server", second) as holder:
        assert holder is None
