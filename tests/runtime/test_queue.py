"""Workers that wait for keys: a key that is due is taken at once by a worker that is free, and wakes no others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from runtime.objects import Key
from runtime.queue import WorkQueue
from runtime.queue_state import QueueSettings
from runtime.ready import Grouping
from tests.runtime.virtual_loop import run

COUNT = 16
QUICK = QueueSettings(burst=1_000_000)


@dataclass
class Workers:
    """Workers at a queue, each of whom notes when it took a key."""

    settings: QueueSettings = QUICK
    work_s: float = 0.0
    reads: int = 0
    taken: list[tuple[float, Key]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = WorkQueue("test", self.settings, monotonic=self._now, chance=lambda: 0.5)
        self.tasks = [asyncio.create_task(self._work()) for _ in range(COUNT)]

    def _now(self) -> float:
        self.reads += 1
        return asyncio.get_running_loop().time()

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            self.taken.append((asyncio.get_running_loop().time(), key))
            await asyncio.sleep(self.work_s)
            self.queue.done(key)

    async def end(self) -> None:
        self.queue.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def key(number: int) -> Key:
    return Key("n", f"k{number}")


def test_keys_of_a_group_follow_each_other_as_soon_as_a_place_is_free() -> None:
    async def main() -> None:
        free = Workers(QueueSettings(burst=1_000_000, grouping=Grouping(lambda key: key.namespace, 2)), work_s=10)
        for number in range(6):
            free.queue.add(key(number))
        await asyncio.sleep(50)
        assert [at for at, _ in free.taken] == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]
        await free.end()

    run(main())


@pytest.mark.parametrize("ticks", [0, 1])
def test_a_worker_that_ends_as_it_is_woken_leaves_the_key_to_another(ticks: int) -> None:
    async def main() -> None:
        free = Workers()
        await asyncio.sleep(1)
        free.queue.add(key(1))
        for _ in range(ticks):
            await asyncio.sleep(0)
        for worker in free.tasks[: COUNT - 1]:
            worker.cancel()
        await asyncio.sleep(1)
        assert [taken for _, taken in free.taken] == [key(1)]
        free.queue.add(key(2))
        free.queue.add(key(3), after=timedelta(seconds=1))
        await asyncio.sleep(5)
        assert {taken for _, taken in free.taken} == {key(1), key(2), key(3)}
        await free.end()

    run(main())
