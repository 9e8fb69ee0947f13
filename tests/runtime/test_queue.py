"""Workers that wait for keys: a key that is due is taken at once by a worker that is free, and wakes no others."""

from __future__ import annotations

import asyncio
import random
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


def test_a_key_wakes_a_few_workers_and_not_all_of_them() -> None:
    async def main() -> int:
        free = Workers()
        await asyncio.sleep(1)
        before = free.reads
        free.queue.add(key(1))
        await asyncio.sleep(1)
        assert len(free.taken) == 1
        reads = free.reads - before
        await free.end()
        return reads

    assert run(main()) < COUNT / 2


def test_every_key_is_taken_when_it_is_due_while_workers_are_free() -> None:
    async def main(chance: random.Random) -> None:
        free, due = Workers(), []
        for number in range(300):
            pause = chance.choice((0.0, 0.0, 1.0, chance.uniform(0, 20)))
            due.append((asyncio.get_running_loop().time() + pause, key(number)))
            free.queue.add(key(number), after=timedelta(seconds=pause))
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.3, 5.0)))
        await asyncio.sleep(30)
        assert sorted((round(at, 3), name) for at, name in free.taken) == sorted(
            (round(at, 3), name) for at, name in due
        )
        await free.end()

    for seed in range(5):
        run(main(random.Random(seed)))  # noqa: S311  # a seed


def test_keys_that_are_due_together_are_worked_on_side_by_side() -> None:
    async def main() -> None:
        free = Workers(work_s=10)
        for number in range(COUNT + 4):
            free.queue.add(key(number), after=timedelta(seconds=5))
        await asyncio.sleep(30)
        assert [at for at, _ in free.taken] == [5.0] * COUNT + [15.0] * 4
        await free.end()

    run(main())


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


def test_an_earlier_time_is_kept_though_a_later_one_was_waited_for() -> None:
    async def main() -> None:
        free = Workers()
        free.queue.add(key(1), after=timedelta(seconds=100))
        await asyncio.sleep(1)
        free.queue.add(key(2), after=timedelta(seconds=5))
        free.queue.add(key(1), after=timedelta(seconds=20))
        await asyncio.sleep(200)
        assert free.taken == [(6.0, key(2)), (21.0, key(1))]
        await free.end()

    run(main())
