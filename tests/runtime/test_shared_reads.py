"""Live reads that many share: each answer is of a read that began after it was asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from runtime.errors import Forbidden, NotFound
from runtime.kube import Page, Selection
from runtime.objects import Key, Object, Resource
from runtime.shared_reads import SharedReads
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


async def test_who_asks_before_a_read_begins_shares_it() -> None:
    kube = _SlowKube()
    reads = SharedReads(kube)
    kube.put(WIDGETS, "a", metadata={"labels": {"color": "red"}})
    kube.may_answer.set()

    await asyncio.gather(*(reads.get(WIDGETS, KEY) for _ in range(5)))
    assert kube.begun == 1
    await reads.get(WIDGETS, KEY)
    assert kube.begun == 2


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


async def test_an_unforeseen_error_leaves_nobody_waiting() -> None:
    kube = MemoryKube()
    (key, other) = _named(kube, "a", "b")

    def size(_resource: Resource) -> int:
        raise ValueError("a defect")

    reads = SharedReads(kube, size=size)
    waiting = [asyncio.create_task(reads.get(WIDGETS, place)) for place in (key, other)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError, ValueError]
