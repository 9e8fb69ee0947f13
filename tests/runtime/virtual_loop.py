"""An event loop whose time passes only while everybody waits: hours of sleeps in milliseconds, the same every time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from fairlead.simulation.virtual_time import VirtualLoop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the event loop of a test: the one that its module names as LOOP, else the usual one."""
    module = item.getparent(pytest.Module)
    return {"loop": getattr(module.obj if module else None, "LOOP", asyncio.new_event_loop)}
