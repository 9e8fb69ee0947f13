"""Passes of one resource at the times at which runtime.controller makes them, by a clock that is moved on."""

from __future__ import annotations

from datetime import datetime, timedelta

from runtime import metrics
from runtime.controller import Controller, ControllerSettings, Source
from runtime.objects import Key, Object
from runtime.results import Result
from tests.providers.world import World


class Paced:
    """A controller whose waits are no waits: `until` makes every pass that falls due, and moves the clock between them.

    `conditions` are all conditions that were ever seen after a pass, as texts; `passes` how many were made.
    """

    def __init__(self, world: World, name: str = "db") -> None:
        self.world, self.key, self.began = world, Key("team", name), world.now
        self.keys = {self.key}
        self.passes = 0
        self.conditions: list[tuple[str, ...]] = []
        resource = world.kind.resource
        self.controller = Controller(
            f"paced {resource.plural}",
            self._reconcile,
            settings=ControllerSettings(monotonic=self._seconds, resync=world.resync),
        )
        self.controller.source(Source(world.cache.informer(resource), primary=True))
        self._panics = metrics.INTERNAL_ERRORS.labels(self.controller.name)
        self._panics_before = float(self._panics._value.get())
        self.controller.enqueue(self.key)

    def _seconds(self) -> float:
        return (self.world.now - self.began).total_seconds()

    async def _reconcile(self, key: Key) -> Result:
        self.world.feed()
        return await self.world.reconcile(key)

    async def step(self) -> bool:
        """Make the next pass, the clock moved on to when it is due; return whether there was one."""
        queue = self.controller._queue._state
        due = queue.next_due()
        if not len(queue) and due is None:
            return False
        if not len(queue) and due is not None:
            # A clock of whole microseconds: one more, so that it is due by all means.
            self.move_on(timedelta(seconds=due, microseconds=1) - (self.world.now - self.began))
        key = await self.controller._queue.get()
        assert key in self.keys
        try:
            await self.controller._pass(key)
        finally:
            self.controller._queue.done(key)
        self.passes += 1
        obj = self.world.get(self.key.name)
        if obj is not None:
            conditions = (obj.get("status") or {}).get("conditions") or ()
            self.conditions.append(
                tuple(f"{condition['type']}={condition['status']} {condition['reason']}" for condition in conditions)
            )
        return obj is not None

    def move_on(self, by: timedelta) -> None:
        """Let time pass for everybody."""
        self.world.pass_time(max(by, timedelta()))

    async def until(self, end: datetime) -> None:
        """Make all passes that are due before `end`."""
        while (due := self._next_at()) is not None and due < end:
            await self.step()
        self.move_on(end - self.world.now)

    def _next_at(self) -> datetime | None:
        return self.passes_at()

    def passes_at(self) -> datetime | None:
        """Return when the next pass is due, whatever else is."""
        queue = self.controller._queue._state
        if len(queue):
            return self.world.now
        due = queue.next_due()
        return None if due is None else self.began + timedelta(seconds=due)

    def wake(self) -> None:
        """Enqueue the resource, as an edit or a list that shows a change does."""
        self.controller.enqueue(self.key)

    async def settle(self, *, most: int = 500) -> None:
        """Make passes until the resource is Ready, converged and its next pass minutes away, or gone."""
        for _ in range(most):
            if not await self.step():
                return
            next_at = self.passes_at()
            calm = next_at is None or next_at - self.world.now > timedelta(minutes=4)
            if calm and (self.world.reason("Ready"), self.world.reason()) == ("Available", "InSync"):
                return
        raise AssertionError(f"not settled after {most} passes: {self.world.reason()}: {self.world.get(self.key.name)}")

    @property
    def crashes(self) -> float:
        """How many passes ended in a defect of ours."""
        return float(self._panics._value.get()) - self._panics_before

    def reported(self, since: int = 0) -> set[str]:
        """Return every condition that was seen after the pass of that number."""
        return {condition for conditions in self.conditions[since:] for condition in conditions}


def texts(obj: Object | None) -> tuple[str, ...]:
    """Return the messages of an object's conditions."""
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    return tuple(str(condition["message"]) for condition in conditions)
