"""The controllers of one process: they come and go while it leads, and all stop when it no longer does."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

from runtime.controller import Controller


class Manager(Collection[Controller]):
    """Runs its controllers; one that is added meanwhile begins at once, one that is removed drains first."""

    def __init__(self) -> None:
        self._controllers: list[Controller] = []
        self._tasks: dict[Controller, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def add(self, controller: Controller) -> None:
        """Add a controller."""
        self._controllers.append(controller)
        self._start(controller)

    async def remove(self, controller: Controller) -> None:
        """Remove a controller and wait until its passes in flight have ended; an unknown one is ignored."""
        if controller in self._controllers:
            self._controllers.remove(controller)
        task = self._tasks.pop(controller, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    def passes(self) -> tuple[str, ...]:
        """Return the passes in flight of all controllers, as `Controller.passes` names them."""
        return tuple(name for controller in self._controllers for name in controller.passes())

    async def run(self) -> None:
        """Run until cancelled; a controller that fails ends all."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for controller in self._controllers:
                    self._start(controller)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def __contains__(self, controller: object) -> bool:
        return controller in self._controllers

    def __iter__(self) -> Iterator[Controller]:
        return iter(tuple(self._controllers))

    def __len__(self) -> int:
        return len(self._controllers)

    def _start(self, controller: Controller) -> None:
        if self._group is not None and controller not in self._tasks:
            self._tasks[controller] = self._group.create_task(controller.run(), name=controller.name)
