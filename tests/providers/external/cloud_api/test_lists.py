"""Lists compared with observations, and searched for predecessors; answers without tags leave what is known."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from providers.external.cloud_api.listed import ListedObject, ListedObjects, digest_of, owner_in, tags_digest
from providers.external.cloud_api.lists import RECENT, AccountLists
from providers.external.cloud_api.tags import owner_tags
from providers.external.observation import Predecessor
from providers.external.ownership import Owner
from runtime.errors import Transient

OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "db")
VOLATILE = frozenset({"asOf"})


@dataclass
class Cloud:
    """Objects by name, with their tags; None for an answer that holds none."""

    objects: dict[str, tuple[dict[str, Any], Mapping[str, str] | None]] = field(default_factory=dict)
    now: float = 0.0
    complete: bool = True
    lists: int = 0
    tags_read: list[str] = field(default_factory=list)

    async def read(self) -> ListedObjects:
        self.lists += 1
        await asyncio.sleep(0)
        return ListedObjects(tuple(map(self._listed, self.objects)), complete=self.complete)

    def _listed(self, name: str) -> ListedObject:
        answer, tags = self.objects[name]
        digest = digest_of(answer, VOLATILE)
        return ListedObject(name, f"id-{name}", digest, tags_digest(tags), owner_in(tags), f"/{name}")

    async def owner_of(self, listed: ListedObject) -> Owner | None:
        self.tags_read.append(listed.reference)
        return OWNER

    def account_lists(self) -> AccountLists:
        return AccountLists(self.read, self.owner_of, monotonic=lambda: self.now)


async def test_an_object_that_two_resources_name_was_seen_when_both_saw_it() -> None:
    cloud = Cloud({"a": ({"size": 2}, {})})
    lists = cloud.account_lists()
    lists.record_observed("a", "uid-1", digest_of({"size": 2}, VOLATILE), {})
    lists.record_observed("a", "uid-2", digest_of({"size": 1}, VOLATILE), {})

    listed = await lists.list()
    assert listed.items != listed.last_seen

    lists.record_observed("a", "uid-2", digest_of({"size": 2}, VOLATILE), {})
    listed = await lists.list()
    assert listed.items == listed.last_seen

    lists.record_absent("a")
    assert (await lists.list()).last_seen == {}


async def test_an_answer_without_tags_leaves_digest_and_owner_as_they_were() -> None:
    cloud = Cloud({"a": ({}, owner_tags(OWNER)), "b": ({}, {})})
    lists = cloud.account_lists()
    with_tags = await lists.list()
    assert with_tags.owners == {"a": OWNER}

    cloud.objects = {"a": ({}, None), "b": ({}, None)}
    assert await lists.list() == with_tags

    # An answer that says that it has no tags is another one.
    cloud.objects["a"] = ({}, {})
    without = await lists.list()
    assert without.owners == {}
    assert without.items["a"] != with_tags.items["a"]


async def test_searches_share_a_recent_list() -> None:
    former = replace(OWNER, identity="uid-0")
    cloud = Cloud({"a": ({}, owner_tags(former)), "b": ({}, owner_tags(OWNER)), "c": ({}, {"team": "x"})})
    lists = cloud.account_lists()

    searched = await asyncio.gather(*(lists.find_predecessors(OWNER) for _ in range(100)))
    assert searched == [(Predecessor("a", "id-a", former),)] * 100
    assert (cloud.lists, cloud.tags_read) == (1, [])

    cloud.now += RECENT.total_seconds()
    await lists.find_predecessors(OWNER)
    assert cloud.lists == 1

    cloud.now += 1
    cloud.objects = {"d": ({}, None)}
    assert await lists.find_predecessors(replace(OWNER, identity="uid-2")) == (Predecessor("d", "id-d", OWNER),)
    assert (cloud.lists, cloud.tags_read) == (2, ["/d"])


async def test_a_list_in_part_forgets_nothing_and_proves_nothing() -> None:
    cloud = Cloud({"a": ({}, owner_tags(OWNER)), "b": ({}, {})})
    lists = cloud.account_lists()
    lists.record_observed("a", "uid-1", digest_of({}, VOLATILE), owner_tags(OWNER))
    whole = await lists.list()

    cloud.objects, cloud.complete = {"b": ({}, {})}, False
    partial = await lists.list()
    assert not partial.complete
    assert set(partial.items) == {"b"}
    assert partial.last_seen == whole.last_seen
    with pytest.raises(Transient, match="did not answer its list"):
        await lists.find_predecessors(replace(OWNER, identity="uid-2"))

    cloud.objects, cloud.complete = {"a": ({}, owner_tags(OWNER))}, True
    former = (Predecessor("a", "id-a", OWNER),)
    assert await lists.find_predecessors(replace(OWNER, identity="uid-2")) == former
