"""An account is listed where a resource could be enqueued by it, and enqueues what its list shows to have changed."""

from __future__ import annotations

import pytest

from providers.accounts.lister import ExternalStore, Lister
from providers.external.client import ExternalList
from runtime.objects import Key
from tests.providers.toy import TOYS, ToyCloud
from tests.providers.world import SWEEP, World


async def test_account_without_a_resource_of_the_kind_is_not_listed() -> None:
    cloud, enqueued = ToyCloud(), list[Key]()
    world = World(cloud)
    lister = Lister(world.accounts, world.cache.informer(TOYS), enqueued.append, world.gatherer.answers)
    world.feed()
    await world.accounts.connect("default")
    assert (await lister(Key("", "default"))).requeue_after == SWEEP
    assert cloud.lists == 0

    world.ask()
    await world.settle()
    await lister(Key("", "default"))
    await lister(Key("", "default"))
    assert (cloud.lists, enqueued) == (2, [Key("team", "db")])


async def test_what_vanished_between_a_look_and_the_first_list_is_enqueued() -> None:
    cloud, enqueued = ToyCloud(), list[Key]()
    world = World(cloud)
    answers = world.gatherer.answers
    lister = Lister(world.accounts, world.cache.informer(TOYS), enqueued.append, answers)
    world.ask()
    await world.settle()
    account = await world.accounts.connect("default")
    # A pass looks at what is being deleted, and makes the account's first list when it is gone.
    answers.of(account).record(next(iter(cloud.toys)), b"being deleted", answers.now())
    cloud.toys.clear()
    world.now += SWEEP
    await answers.list(account)

    await lister(Key("", "default"))
    await lister(Key("", "default"))
    assert enqueued == [Key("team", "db")]


Lists = list[tuple[dict[str, str], bool, float, tuple[str, ...]]]
LISTS: dict[str, Lists] = {
    # All of the first: what it shows may have changed after the observation at a start.
    "what changed, appeared and vanished": [
        ({"a": "1", "b": "1"}, True, 1.0, ("a", "b")),
        ({"a": "2", "b": "1", "c": "1"}, True, 2.0, ("a", "c")),
        ({"a": "2"}, True, 3.0, ("b", "c")),
        ({"a": "2"}, True, 4.0, ()),
    ],
    "nothing by an older list": [
        ({"a": "2"}, True, 2.0, ("a",)),
        ({"a": "1"}, True, 1.0, ()),
        ({"a": "2"}, True, 3.0, ()),
    ],
    "no absence by an incomplete list": [
        ({"a": "1", "b": "1"}, True, 1.0, ("a", "b")),
        ({"a": "1"}, False, 2.0, ()),
        ({"a": "1", "b": "1"}, True, 3.0, ()),
    ],
}


@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS)
def test_list_enqueues(lists: Lists) -> None:
    store = ExternalStore()
    for items, complete, as_of, enqueued in lists:
        assert store.changed(ExternalList(items, complete=complete), as_of) == enqueued


def test_list_enqueues_by_what_was_last_seen() -> None:
    store = ExternalStore()

    def enqueued(listed: str, last_seen: str | None, as_of: float) -> bool:
        seen = {} if last_seen is None else {"a": last_seen}
        return store.changed(ExternalList({"a": listed}, complete=True, last_seen=seen), as_of) == ("a",)

    # The first list after a start shows what the observation at the start saw.
    assert not enqueued("1", "1", 1.0)
    # Changed and observed between two lists, and undone again before the second.
    assert enqueued("1", "2", 2.0)
    assert not enqueued("1", "1", 3.0)
    assert enqueued("3", "1", 4.0)
    # A list that never shows what an observation does enqueues once, not for ever.
    assert not enqueued("3", "1", 5.0)
    assert enqueued("3", None, 6.0)
