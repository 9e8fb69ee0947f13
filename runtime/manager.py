"""The controllers of one process: they come and go while it leads, and all stop when it no longer does."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

from runtime.controller import Controller


class Crew(Collection[Controller]):
    """Runs its members; one that joins while the crew works begins at once, one that leaves drains first."""

    def __init__(self) -> None:
        self._members: list[Controller] = []
        self._tasks: dict[Controller, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def join(self, controller: Controller) -> None:
        """Add a member."""
        self._members.append(controller)
        self._start(controller)

    async def leave(self, controller: Controller) -> None:
        """Take a member out and wait until its passes in flight have ended; a stranger is ignored."""
        if controller in self._members:
            self._members.remove(controller)
        task = self._tasks.pop(controller, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def run(self) -> None:
        """Work until cancelled; a member that fails ends all."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for controller in self._members:
                    self._start(controller)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def __contains__(self, controller: object) -> bool:
        return controller in self._members

    def __iter__(self) -> Iterator[Controller]:
        return iter(tuple(self._members))

    def __len__(self) -> int:
        return len(self._members)

    def _start(self, controller: Controller) -> None:
        if self._group is not None and controller not in self._tasks:
            self._tasks[controller] = self._group.create_task(controller.run(), name=controller.name)
