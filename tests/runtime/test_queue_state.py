"""The queue against an oracle of its own: a plain list of wishes, searched from end to end."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime.backoff import Backoff
from runtime.objects import Key
from runtime.queue_state import Priority, QueueSettings, QueueState, Wait
from runtime.ready import Grouping

KEYS = [Key(namespace, name) for namespace in ("a", "b", "c") for name in ("x", "y")]
UNBRAKED = QueueSettings(burst=1_000_000)
# Six keys in two groups, of which each may run two.
GROUPED = replace(UNBRAKED, grouping=Grouping(lambda key: key.name, 2))


def no_chance() -> float:
    return 0.0


@dataclass
class Wish:
    due: float
    priority: Priority


@dataclass
class Oracle:
    """What must be true of any queue: which keys may be given out at a time."""

    settings: QueueSettings = UNBRAKED
    now: float = 0.0
    wishes: dict[Key, list[Wish]] = field(default_factory=dict)
    running: set[Key] = field(default_factory=set)

    def due(self) -> dict[Key, Priority]:
        ready = {}
        for key, wishes in self.wishes.items():
            if key not in self.running and min(wish.due for wish in wishes) <= self.now:
                ready[key] = min(wish.priority for wish in wishes)
        return ready

    def allowed(self) -> dict[Key, Priority]:
        """Return the due keys of groups that run fewer keys than they may."""
        grouping = self.settings.grouping
        if grouping is None:
            return self.due()
        sizes = Counter(grouping.group_of(key) for key in self.running)
        return {key: reason for key, reason in self.due().items() if sizes[grouping.group_of(key)] < grouping.limit}


class QueueMachine(RuleBasedStateMachine):
    settings = UNBRAKED

    def __init__(self) -> None:
        super().__init__()
        self.queue = QueueState(self.settings, no_chance)
        self.oracle = Oracle(self.settings)
        self.takes = 0

    @rule(key=st.sampled_from(KEYS), priority=st.sampled_from(list(Priority)), after=st.sampled_from([0, 0, 1, 5, 60]))
    def add(self, key: Key, priority: Priority, after: int) -> None:
        wish = Wish(self.oracle.now + after, priority)
        self.oracle.wishes.setdefault(key, []).append(wish)
        self.queue.add(key, Wait(wish.due, priority), self.oracle.now)

    @invariant()
    def the_oldest_is_reported(self) -> None:
        wishes = self.oracle.wishes
        waits = [self.oracle.now - min(wish.due for wish in wishes[key]) for key in self.oracle.due()]
        # What was asked for again while it ran counts from then on or from its time, whichever is reported.
        assert self.queue.oldest(self.oracle.now) <= max(waits, default=0.0)

    @rule(seconds=st.sampled_from([0.5, 1, 7, 100]))
    def pass_time(self, seconds: float) -> None:
        self.oracle.now += seconds

    @rule()
    def take(self) -> None:
        due = self.oracle.allowed()
        taken = self.queue.take(self.oracle.now)
        self.takes += 1
        if taken is None:
            assert not due
            return
        assert taken.key in due
        if self.takes % UNBRAKED.turn:
            assert due[taken.key] == min(due.values())
        del self.oracle.wishes[taken.key]
        self.oracle.running.add(taken.key)

    @precondition(lambda self: self.oracle.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.oracle.running)))
        self.oracle.running.remove(key)
        self.queue.done(key, self.oracle.now)

    @invariant()
    def nothing_is_lost_and_nothing_is_doubled(self) -> None:
        assert len(self.queue) + self.queue.delayed == len(self.oracle.wishes)

    @invariant()
    def the_queue_knows_when_to_wake(self) -> None:
        later = [
            min(wish.due for wish in wishes)
            for key, wishes in self.oracle.wishes.items()
            if key not in self.oracle.running and min(wish.due for wish in wishes) > self.oracle.now
        ]
        due = self.queue.next_due()
        if later:
            assert due is not None
            assert due <= min(later)

    def teardown(self) -> None:
        for key in tuple(self.oracle.running):
            self.queue.done(key, self.oracle.now)
        self.oracle.running.clear()
        self.oracle.now += 1_000
        expected = set(self.oracle.wishes)
        handed_out = set()
        while taken := self.queue.take(self.oracle.now):
            handed_out.add(taken.key)
            self.queue.done(taken.key, self.oracle.now)

        assert handed_out == expected


class GroupedMachine(QueueMachine):
    settings = GROUPED


TestQueueAgainstItsOracle = QueueMachine.TestCase
TestGroupedQueueAgainstItsOracle = GroupedMachine.TestCase


def test_namespaces_take_turns() -> None:
    queue = QueueState(UNBRAKED, no_chance)
    for number in range(100):
        queue.add(Key("loud", f"n{number}"), Wait(0, Priority.NORMAL), 0)
    queue.add(Key("quiet", "only"), Wait(0, Priority.NORMAL), 0)
    taken = [queue.take(0), queue.take(0)]

    assert [item.key.namespace for item in taken if item] == ["loud", "quiet"]


def test_an_edit_overtakes_resyncs_and_resyncs_are_not_starved() -> None:
    queue = QueueState(UNBRAKED, no_chance)
    for number in range(10):
        queue.add(Key("a", f"resync{number}"), Wait(0, Priority.RESYNC), 0)
    for number in range(40):
        queue.add(Key("a", f"edit{number}"), Wait(0, Priority.URGENT), 0)
    taken = [item.key.name for _ in range(40) if (item := queue.take(0))]

    assert taken[0] == "edit0"
    assert sum(name.startswith("resync") for name in taken) == 5


def test_a_hot_key_is_slowed_down_alone() -> None:
    settings = QueueSettings(burst=5, interval=timedelta(seconds=1))
    queue = QueueState(settings, no_chance)
    hot, calm = Key("a", "hot"), Key("a", "calm")
    passes = 0
    for tick in range(1_000):
        now = tick / 10
        queue.add(hot, Wait(now, Priority.URGENT), now)
        if queue.take(now):
            passes += 1
            queue.done(hot, now)
    queue.add(hot, Wait(99.9, Priority.URGENT), 99.9)
    queue.add(calm, Wait(99.9, Priority.NORMAL), 99.9)
    taken = queue.take(99.9)

    assert passes <= 5 + 100
    assert passes >= 95
    assert taken is not None
    assert taken.key == calm


@pytest.mark.parametrize(
    ("failures", "chance", "seconds"),
    [
        pytest.param(1, 0.0, 0.5, id="the first failure waits the first pause"),
        pytest.param(2, 0.0, 1.0, id="the second waits twice as long"),
        pytest.param(5, 0.0, 8.0, id="each failure doubles"),
        pytest.param(11, 0.0, 300.0, id="the cap holds"),
        pytest.param(100_000, 0.0, 300.0, id="a very long outage does not overflow"),
        pytest.param(1, 0.99999, 0.75, id="jitter adds at most half"),
        pytest.param(100, 0.5, 375.0, id="jitter stands on top of the cap"),
    ],
)
def test_backoff(failures: int, chance: float, seconds: float) -> None:
    delay = Backoff(timedelta(milliseconds=500), timedelta(minutes=5)).delay(failures, lambda: chance)

    assert delay.total_seconds() == pytest.approx(seconds, abs=0.001)
