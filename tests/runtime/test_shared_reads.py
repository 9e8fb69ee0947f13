"""Live reads that many share: each answer is of a read that began after it was asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from runtime.errors import Forbidden, NotFound
from runtime.kube import Page, Selection
from runtime.objects import Key, Object, Resource
from runtime.shared_reads import SharedReads
from tests.runtime import virtual_loop
from tests.support.memory_kube import WIDGETS, MemoryKube

KEY = Key("ns", "a")


@dataclass
class _SlowKube(MemoryKube):
    """Answers a read when it is allowed to, with what was there when the read began; counts and queues them."""

    begun: int = 0
    looked: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    running: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        assert not self.running, "two reads of one object at once"
        self.begun += 1
        self.running += 1
        try:
            answer = await super().get(resource, key, metadata_only=metadata_only)
            self.looked.put_nowait(self.begun)
            await self.may_answer.wait()
        finally:
            self.running -= 1
        return answer


def _color(obj: Object) -> str:
    return str(obj["metadata"]["labels"]["color"])


async def test_who_asks_while_a_read_runs_gets_the_answer_of_the_next_one() -> None:
    kube = _SlowKube()
    reads = SharedReads(kube)
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "red"}})
    early = asyncio.create_task(reads.get(WIDGETS, KEY))
    assert await kube.looked.get() == 1
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "blue"}})
    late = [asyncio.create_task(reads.get(WIDGETS, KEY)) for _ in range(5)]
    await asyncio.sleep(0)
    kube.may_answer.set()

    assert _color(await early) == "red"
    assert {_color(obj) for obj in await asyncio.gather(*late)} == {"blue"}
    assert kube.begun == 2


async def test_who_asks_before_a_read_begins_shares_it() -> None:
    kube = _SlowKube()
    reads = SharedReads(kube)
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "red"}})
    kube.may_answer.set()

    await asyncio.gather(*(reads.get(WIDGETS, KEY) for _ in range(5)))
    assert kube.begun == 1
    await reads.get(WIDGETS, KEY)
    assert kube.begun == 2


async def test_one_who_is_cancelled_leaves_the_read_to_the_others() -> None:
    kube = _SlowKube()
    reads = SharedReads(kube)
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "red"}})
    first, second = (asyncio.create_task(reads.get(WIDGETS, KEY)) for _ in range(2))
    assert await kube.looked.get() == 1
    first.cancel()
    kube.may_answer.set()

    assert _color(await second) == "red"
    assert first.cancelled()
    assert kube.begun == 1


@pytest.mark.parametrize("is_there", [True, False])
async def test_an_error_is_everybodys_and_not_kept(*, is_there: bool) -> None:
    kube = MemoryKube()
    reads = SharedReads(kube)
    if is_there:
        kube.put(WIDGETS, "a", spec={})
        kube.forbidden.add(f"get {WIDGETS.plural}")
    answers = await asyncio.gather(*(reads.get(WIDGETS, KEY) for _ in range(2)), return_exceptions=True)
    assert all(isinstance(answer, Exception) for answer in answers)
    assert all(isinstance(answer, NotFound) for answer in answers) is not is_there

    kube.forbidden.clear()
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "red"}})
    assert _color(await reads.get(WIDGETS, KEY)) == "red"


@dataclass
class _CountingKube(MemoryKube):
    """Counts reads of one object and lists; answers a list, with what was there before, while `may_answer` is set."""

    gets: list[str] = field(default_factory=list)
    lists: list[Selection] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        assert metadata_only
        self.gets.append(key.name)
        return await super().get(resource, key, metadata_only=metadata_only)

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        self.lists.append(selection)
        page = await super().list_page(resource, selection, limit=limit, next_page=next_page)
        self.looked.set()
        await self.may_answer.wait()
        return page


def _named(kube: MemoryKube, *names: str) -> list[Key]:
    for name in names:
        kube.put(WIDGETS, name, metadata={"labels": {"color": name}})
    return [Key("ns", name) for name in names]


@pytest.mark.parametrize(
    ("wanted", "there", "gets", "lists"),
    [
        (1, 1, 1, 0),
        (2, 20, 0, 1),
        (2, 21, 2, 0),
        (3, 40, 0, 1),
        (5, 1000, 5, 0),
    ],
)
async def test_a_crowd_is_answered_by_one_list_where_that_is_cheaper(
    wanted: int, there: int, gets: int, lists: int
) -> None:
    kube = _CountingKube()
    kube.may_answer.set()
    keys = _named(kube, *(f"w-{number}" for number in range(wanted)))
    reads = SharedReads(kube, size=lambda _resource: there)
    answers = await asyncio.gather(*(reads.get(WIDGETS, key) for key in [*keys, *keys]))
    assert [obj["metadata"]["name"] for obj in answers] == [key.name for key in [*keys, *keys]]
    assert (len(kube.gets), len(kube.lists)) == (gets, lists)


async def test_what_a_list_lacks_is_not_found_and_the_others_are_answered() -> None:
    kube = _CountingKube()
    kube.may_answer.set()
    (there,) = _named(kube, "there")
    reads = SharedReads(kube, size=lambda _resource: 1)
    answers = await asyncio.gather(
        reads.get(WIDGETS, there), reads.get(WIDGETS, Key("ns", "gone")), return_exceptions=True
    )
    assert isinstance(answers[0], dict)
    assert isinstance(answers[1], NotFound)


async def test_a_list_that_fails_is_everybodys_error() -> None:
    kube = _CountingKube()
    kube.forbidden.add(f"list {WIDGETS.plural}")
    keys = _named(kube, "a", "b")
    reads = SharedReads(kube, size=lambda _resource: 1)
    answers = await asyncio.gather(*(reads.get(WIDGETS, key) for key in keys), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Forbidden, Forbidden]


async def test_who_asks_while_a_list_runs_gets_the_answer_of_the_next_read() -> None:
    kube = _CountingKube()
    first, second = _named(kube, "a", "b")
    reads = SharedReads(kube, size=lambda _resource: 1)
    early = [asyncio.create_task(reads.get(WIDGETS, key)) for key in (first, second)]
    await kube.looked.wait()
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "new"}})
    late = asyncio.create_task(reads.get(WIDGETS, first))
    await asyncio.sleep(0)
    kube.may_answer.set()

    assert [_color(obj) for obj in await asyncio.gather(*early)] == ["a", "b"]
    assert _color(await late) == "new"


async def test_an_unforeseen_error_leaves_nobody_waiting() -> None:
    kube = MemoryKube()
    (key, other) = _named(kube, "a", "b")

    def size(_resource: Resource) -> int:
        raise ValueError("a defect")

    reads = SharedReads(kube, size=size)
    waiting = [asyncio.create_task(reads.get(WIDGETS, place)) for place in (key, other)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError, ValueError]


@dataclass
class _TimedKube(MemoryKube):
    """Notes when each read began, and answers with that instant, after 10 ms."""

    begun: list[float] = field(default_factory=list)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        del resource, key, metadata_only
        began = asyncio.get_running_loop().time()
        self.begun.append(began)
        await asyncio.sleep(0.01)
        return {"began": began}


def test_reads_of_one_object_keep_their_distance_and_no_answer_is_older_than_its_question() -> None:
    kube = _TimedKube()

    async def ask(reads: SharedReads, at: float) -> tuple[float, float]:
        await asyncio.sleep(at)
        answer = await reads.get(WIDGETS, KEY)
        return at, float(answer["began"])

    async def crowd() -> list[tuple[float, float]]:
        reads = SharedReads(kube, spacing=timedelta(seconds=0.2))
        answers = await asyncio.gather(*(ask(reads, number / 50) for number in range(50)))
        await asyncio.sleep(1.0)
        assert reads._turns == {}
        return answers

    answers = virtual_loop.run(crowd())
    assert all(began >= at for at, began in answers)
    assert kube.begun == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_read_after_a_rest_begins_at_once() -> None:
    kube = _TimedKube()

    async def twice() -> None:
        reads = SharedReads(kube, spacing=timedelta(seconds=0.2))
        await reads.get(WIDGETS, KEY)
        await asyncio.sleep(0.3)
        await reads.get(WIDGETS, KEY)

    virtual_loop.run(twice())
    assert kube.begun == pytest.approx([0.0, 0.31])
