"""What lists and looks answered last, when to list again, and whom a list enqueues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from providers.accounts.answers import AccountAnswers, Answers, list_after
from providers.accounts.lister import ExternalStore, Lister
from providers.external.client import ExternalList
from runtime.errors import Transient
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


def test_older_answer_replaces_no_newer_one() -> None:
    answers = AccountAnswers()
    answers.record("a", b"look", 5.0)
    answers.record_list(_list(a=b"list"), 4.0)
    assert answers.of("a", 0.0) == b"look"
    answers.record_list(_list(a=b"list"), 6.0)
    assert answers.of("a", 0.0) == b"list"


def test_answer_that_is_too_old_does_not_count() -> None:
    answers = AccountAnswers()
    answers.record_list(_list(a=b"1"), 4.0)
    assert (answers.of("a", 4.0), answers.of("a", 4.1)) == (b"1", None)


def test_answer_from_before_a_call_does_not_count() -> None:
    answers = AccountAnswers()
    answers.record_list(_list(a=b"1", b=b"1"), 4.0)
    answers.record_call("a", 6.0)
    assert (answers.of("a", 0.0), answers.of("b", 0.0)) == (None, b"1")
    # It began before the call, and ends after it.
    answers.record_list(_list(a=b"2", b=b"2"), 5.0)
    assert (answers.of("a", 0.0), answers.of("b", 0.0)) == (None, b"2")
    answers.record_list(_list(a=b"3"), 7.0)
    assert answers.of("a", 0.0) == b"3"


def test_what_a_complete_list_lacks_is_not_known_any_more() -> None:
    answers = AccountAnswers()
    answers.record_list(_list(a=b"1", b=b"1", c=b"1"), 4.0)
    answers.record("c", b"look", 6.0)
    answers.record_list(_list(a=b"2", complete=False), 5.0)
    assert answers.of("b", 0.0) == b"1"
    answers.record_list(_list(a=b"2"), 5.0)
    assert (answers.of("b", 0.0), answers.of("c", 0.0)) == (None, b"look")


def test_incomplete_list_was_asked_for_and_lists_nothing_for_certain() -> None:
    answers = AccountAnswers()
    assert not answers.was_asked(0.0)
    answers.record_list(_list(a=b"1", complete=False), 4.0)
    assert (answers.was_asked(4.0), answers.was_asked(4.1), answers.is_listed(0.0)) == (True, False, False)
    assert (answers.of("a", 4.0), answers.is_missing("b", 0.0)) == (b"1", False)
    answers.record_list(_list(a=b"1"), 5.0)
    assert (answers.was_asked(5.0), answers.is_listed(5.0)) == (True, True)


def test_what_vanishes_is_taken_once_whoever_listed() -> None:
    answers = AccountAnswers()
    answers.record("seen by a look", b"1", 1.0)
    answers.record("called since", b"1", 1.0)
    answers.record_call("called since", 2.0)
    answers.record_list(_list(listed=b"1"), 3.0)
    # Asked later than the list: its absence there shows nothing yet.
    answers.record("seen later", b"1", 4.0)
    answers.record_list(_list(complete=False), 5.0)
    assert answers.take_vanished() == {"seen by a look"}
    answers.record_list(_list(), 6.0)
    assert answers.take_vanished() == {"listed", "seen later"}
    answers.record_list(_list(), 7.0)
    assert answers.take_vanished() == frozenset()


def test_list_that_ends_late_says_nothing_of_what_is_missing() -> None:
    answers = AccountAnswers()
    answers.record_list(_list(a=b"2", b=b"2"), 5.0)
    answers.record_list(_list(a=b"1"), 4.0)
    assert (answers.of("b", 0.0), answers.is_missing("b", 0.0)) == (b"2", False)


@dataclass
class _Silent:
    """An account that answers no list."""

    lists: int = 0

    async def list(self) -> ExternalList:
        self.lists += 1
        raise Transient("no answer")


async def test_failed_list_is_asked_for_once_until_the_next_sweep() -> None:
    silent, at = _Silent(), [100.0]
    clients = SimpleNamespace(account=silent, listed=object())
    account: Any = SimpleNamespace(id="a", config_object={"metadata": {"name": "default"}}, clients=clients)
    answers = Answers(lambda: at[0], SWEEP, 9 * SWEEP)
    answers.enqueue_list = lambda _config, _after: None
    assert [await answers.listed_lately(account) for _ in range(3)] == [False] * 3
    assert silent.lists == 1
    at[0] += SWEEP.total_seconds()
    assert not await answers.listed_lately(account)
    assert silent.lists == 2
    answers.of(account).record_list(_list(), at[0])
    assert await answers.listed_lately(account)


def test_state_that_lasts_is_counted_from_its_beginning_and_another_one_anew() -> None:
    answers = AccountAnswers()
    minutes = timedelta(minutes=10)
    assert answers.follow(DB, "creating", minutes, 0.0) == timedelta(seconds=300)
    assert answers.follow(DB, "creating", minutes, 300.0) == timedelta(seconds=150)
    assert answers.follow(DB, "backing-up", minutes, 400.0) == timedelta(seconds=300)
    assert answers.next_list(700.0) == timedelta(seconds=150)


def test_first_of_the_pending_resources_says_when_to_list() -> None:
    answers = AccountAnswers()
    assert answers.next_list(0.0) is None
    answers.follow(DB, "creating", timedelta(minutes=10), 0.0)
    answers.follow(Key("team", "other"), "rebooting", timedelta(minutes=2), 0.0)
    assert answers.next_list(0.0) == timedelta(seconds=60)
    del answers.pending[Key("team", "other")]
    assert answers.next_list(0.0) == timedelta(seconds=300)


def test_object_is_missing_where_a_list_after_the_last_call_lacks_it() -> None:
    answers = AccountAnswers()
    assert not answers.is_missing("b", 0.0)
    # Listed without its tags: nothing that may stand for a look, and no absence.
    answers.record_list(ExternalList({"a": "", "untagged": ""}, complete=True, answers={"a": b"1"}), 4.0)
    assert [name for name in ("a", "untagged", "b") if answers.is_missing(name, 0.0)] == ["b"]
    assert not answers.is_missing("b", 4.1)
    answers.record_call("b", 5.0)
    assert not answers.is_missing("b", 0.0)
    answers.record_list(_list(a=b"1"), 6.0)
    assert answers.is_missing("b", 0.0)
    answers.record_list(_list(complete=False), 7.0)
    assert not answers.is_missing("a", 0.0)


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
