"""What lists and looks answered last, when to list again, and whom a list enqueues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.accounts.answers import AccountAnswers, list_after
from providers.accounts.lister import ExternalStore, Lister
from providers.external.client import ExternalList
from runtime.objects import Key
from tests.providers.toy import TOYS, ToyCloud
from tests.providers.world import SWEEP, World

DB = Key("team", "db")
PACES = {
    "half of ten minutes is waited for at first": (600, 0, 300),
    "half of what is left": (600, 300, 150),
    "never more often than every eighth": (600, 590, 75),
    "what takes twice as long is listed more rarely": (600, 1200, 150),
    "and ever more rarely": (600, 6600, 1500),
    "what takes a moment is listed every ten seconds": (20, 15, 10),
}


@pytest.mark.parametrize("pace", PACES)
def test_list_is_due_after(pace: str) -> None:
    expected, elapsed, after = PACES[pace]
    assert list_after(timedelta(seconds=expected), timedelta(seconds=elapsed)) == timedelta(seconds=after)


def _list(*, complete: bool = True, **answers: bytes) -> ExternalList:
    return ExternalList(dict.fromkeys(answers, ""), complete=complete, answers=answers)


def test_incomplete_list_was_asked_for_and_lists_nothing_for_certain() -> None:
    answers = AccountAnswers()
    assert not answers.was_asked(0.0)
    answers.record_list(_list(a=b"1", complete=False), 4.0)
    assert (answers.was_asked(4.0), answers.was_asked(4.1), answers.is_listed(0.0)) == (True, False, False)
    assert (answers.of("a", 4.0), answers.is_missing("b", 0.0)) == (b"1", False)
    answers.record_list(_list(a=b"1"), 5.0)
    assert (answers.was_asked(5.0), answers.is_listed(5.0)) == (True, True)


def test_list_that_ends_late_says_nothing_of_what_is_missing() -> None:
    answers = AccountAnswers()
    answers.record_list(_list(a=b"2", b=b"2"), 5.0)
    answers.record_list(_list(a=b"1"), 4.0)
    assert (answers.of("b", 0.0), answers.is_missing("b", 0.0)) == (b"2", False)


def test_state_that_lasts_is_counted_from_its_beginning_and_another_one_anew() -> None:
    answers = AccountAnswers()
    minutes = timedelta(minutes=10)
    assert answers.follow(DB, "creating", minutes, 0.0) == timedelta(seconds=300)
    assert answers.follow(DB, "creating", minutes, 300.0) == timedelta(seconds=150)
    assert answers.follow(DB, "backing-up", minutes, 400.0) == timedelta(seconds=300)
    assert answers.next_list(700.0) == timedelta(seconds=150)


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
