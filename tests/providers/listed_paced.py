"""Passes of resources with the lists that their provider makes of the account, by one clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from providers.accounts.lister import Lister
from runtime.objects import Key
from tests.providers.paced import Paced
from tests.providers.world import World

_CONFIG = "default"


class ListedPaced(Paced):
    """Passes, and lists: each sweep, and sooner where one is asked for."""

    def __init__(self, world: World, name: str = "db") -> None:
        super().__init__(world, name)
        self._list_at = world.now
        answers = world.gatherer.answers
        answers.enqueue_list = self._enqueue_list
        resources = world.cache.informer(world.kind.resource)
        self._lister = Lister(world.accounts, resources, self.controller.enqueue, answers, world.gatherer.limiter)

    def add(self, name: str) -> None:
        """Make passes of another resource, too."""
        key = Key(self.key.namespace, name)
        self.keys.add(key)
        self.controller.enqueue(key)

    def _enqueue_list(self, _config: str, after: timedelta) -> None:
        self._list_at = min(self._list_at, self.world.now + after)

    async def step(self) -> bool:
        """Make the next pass or the next list, the clock moved on to when it is due; return whether there was a pass.

        A list that is due ends the waiting of passes that are due later.
        """
        passes_at = self.passes_at()
        if passes_at is not None and passes_at <= self._list_at:
            return await super().step()
        self.move_on(self._list_at - self.world.now)
        self.world.feed()
        # What is asked for meanwhile is sooner than the next sweep.
        self._list_at = datetime.max.replace(tzinfo=self.world.now.tzinfo)
        result = await self._lister(Key("", _CONFIG))
        if result.requeue_after is not None:
            self._enqueue_list(_CONFIG, result.requeue_after)
        return True

    def _next_at(self) -> datetime | None:
        passes_at = self.passes_at()
        return self._list_at if passes_at is None else min(passes_at, self._list_at)

    async def when(self, is_over: Callable[[], bool], *, most: int = 500) -> None:
        """Make passes and lists until something is true."""
        for _ in range(most):
            if is_over():
                return
            await self.step()
        raise AssertionError(f"not so after {most} steps: {self.world.reason()}: {self.world.get(self.key.name)}")
