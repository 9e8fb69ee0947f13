"""What came of the same work before: rejected, postponed, in flight, just created; and how the last observations ended.

A pass takes it as frozen `Attempts`. It is kept in the memory of one process: a restart sends each once more, which
does no harm. Pure, but for the memory.

RDS answers a change with the former values and may go on to show them; whoever sends again meanwhile does so for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from providers.external.client import FailedOperation
from providers.external.observation import Change, Path, Value, unknown_of
from providers.managed.decisions.plan import Create, Delete, Plan, Update
from runtime.errors import Blocked, Failure, Terminal
from runtime.objects import Key

MOST_TRIES = 3
BAD_PASSWORD = "InvalidPassword"  # noqa: S105 - a reason
PASSWORD_READ = timedelta(minutes=1)
"""How often a user's own password is read: for so long a new content goes unseen."""
# An operation takes up to hours: what was sent and still differs is remembered for longer.
_FORGOTTEN_AFTER = timedelta(hours=6)
# What is refused is sent again after the first pause, which is doubled up to the second one.
_PAUSES = {
    "CloudBusy": (timedelta(seconds=10), timedelta(minutes=5)),
    BAD_PASSWORD: (timedelta(minutes=5), timedelta(hours=1)),
}
_REJECTED_FOR = timedelta(hours=1)
# An operation that failed fails again, unless something has changed.
_FAILED_OPERATION_PAUSE = timedelta(hours=3)
_FAILED_DELETE_PAUSE = timedelta(minutes=10)
# What it refers to may be made any time, and nobody says so.
_FAILED_REFERENCE_PAUSE = timedelta(minutes=5)
# What another change pushed aside: the first pause, which is doubled up to the second one.
_ASIDE_PAUSES = timedelta(seconds=15), timedelta(hours=1)
_REJECTIONS = frozenset({"InvalidValue", "UnsupportedVersion"})
# Failed observations are reported from the third on, and repeated ever more slowly.
_OBSERVATIONS_BEFORE_REPORT = 3
_AFTER_FIRST_FAILURE = timedelta(seconds=2)
_MOST_DOUBLINGS = 10
# What could not be read is read again after the first pause, which is doubled; the resync does so anyway.
_AFTER_FIRST_INCOMPLETE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Try:
    """What one path was set to, when last, and how many times."""

    want: Value
    deferred: bool
    at: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Sendable:
    """A plan without what was sent lately (`waiting`) and without what is accepted and never shows (`ineffective`)."""

    plan: Update
    waiting: tuple[str, ...]
    ineffective: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """Changes of one resource that a cloud accepted and may not show yet; given up when they never show."""

    tries: Mapping[Path, Try] = field(default_factory=dict)

    def with_sent(self, plan: Update, now: datetime) -> InFlight:
        """Return the same with what a plan sent."""
        tries = dict(self.tries)
        for changes, deferred in ((plan.changes, False), (plan.queued, True)):
            for change in changes:
                known = self._known(change, deferred=deferred)
                tries[change.path] = Try(change.want, deferred, now, known.count + 1 if known is not None else 1)
        return InFlight(tries)

    def settles_in(self, now: datetime, settle: timedelta) -> timedelta | None:
        """Return when what was sent last has had its time; None when nothing is that new.

        A list shows only what differs from the list before: what was undone between two of them is not among it.
        """
        return max((sent.at + settle - now for sent in self.tries.values() if now - sent.at <= settle), default=None)

    def begun_at(self, now: datetime) -> InFlight:
        """Return the same with the time to show it beginning now."""
        return InFlight({path: replace(sent, at=now) for path, sent in self.tries.items()}) if self.tries else self

    def still_differing(self, differing: tuple[Change, ...], now: datetime) -> InFlight:
        """Return the same without what was sent long ago, or differs no more."""
        paths = {change.path for change in differing}
        tries = {path: sent for path, sent in self.tries.items() if path in paths and now - sent.at <= _FORGOTTEN_AFTER}
        return self if len(tries) == len(self.tries) else InFlight(tries)

    def sendable(self, plan: Update, now: datetime, settle: timedelta) -> Sendable:
        """Return what of a plan is to be sent now."""
        waiting: list[str] = []
        ineffective: list[Change] = []
        kept: dict[bool, list[Change]] = {False: [], True: []}
        for changes, deferred in ((plan.changes, False), (plan.queued, True)):
            for change in changes:
                known = self._known(change, deferred=deferred)
                if known is not None and now - known.at < settle:
                    waiting.append(change.shown)
                elif known is not None and known.count >= MOST_TRIES:
                    ineffective.append(change)
                else:
                    kept[deferred].append(change)
        remaining = Update(tuple(kept[False]), plan.held, plan.drift, tuple(kept[True]))
        return Sendable(remaining, tuple(waiting), tuple(ineffective))

    def _known(self, change: Change, *, deferred: bool) -> Try | None:
        known = self.tries.get(change.path)
        return known if known is not None and (known.want, known.deferred) == (change.want, deferred) else None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Work that was refused, or did not take: not sent again before `until` unless something about it changes."""

    work: str
    until: datetime
    refusal: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Postponed:
    """Work that was refused for the database's state, or its password: sent again at `until`, then after `pause`.

    `is_failed`: the cloud accepted it, and its operation failed; `is_aside`: another change pushed that aside.
    """

    work: str
    until: datetime
    pause: timedelta
    reason: str
    message: str
    is_failed: bool = False
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class Attempts:
    """What is remembered of one resource.

    `created` are the uid of the object for which a create was accepted last, and when. `streak` is whether the last
    observation failed, and how many in a row ended the same; `busy` the state in which the cloud is at work, and since
    when; `incomplete` how many observations in a row left a part unread.
    """

    rejected: Rejected | None = None
    postponed: Postponed | None = None
    in_flight: InFlight = InFlight()
    created: tuple[str, datetime] | None = None
    streak: tuple[bool, int] = (False, 0)
    busy: tuple[str, datetime] | None = None
    incomplete: int = 0

    @property
    def failing(self) -> bool:
        """Whether the last observation failed."""
        return self.streak[0]

    @property
    def is_early(self) -> bool:
        """Whether it is yet too early to report how the last observations ended."""
        return self.streak[1] < _OBSERVATIONS_BEFORE_REPORT

    def observe_after(self, usual: timedelta) -> timedelta:
        """Return after how long to observe again: soon after the first failures, else after the usual time."""
        failed, count = self.streak
        return min(usual, _AFTER_FIRST_FAILURE * 2 ** min(count, _MOST_DOUBLINGS)) if failed else usual

    def after_observation(self, *, failed: bool) -> Attempts:
        """Return the same with one more observation."""
        count = self.streak[1] + 1 if self.streak[0] is failed else 1
        return replace(self, streak=(failed, count))

    def after_reading(self, *, incomplete: bool) -> Attempts:
        """Return the same with one more observation that succeeded, in whole or in part."""
        return replace(self, incomplete=self.incomplete + 1 if incomplete else 0)

    def read_again_after(self) -> timedelta | None:
        """Return after how long to read again what could not be read; None when all was."""
        return _AFTER_FIRST_INCOMPLETE * 2 ** min(self.incomplete - 1, _MOST_DOUBLINGS) if self.incomplete else None

    def after_busy(self, state: str, now: datetime) -> Attempts:
        """Return the same with an observation of the cloud at work in a state."""
        return self if self.busy is not None and self.busy[0] == state else replace(self, busy=(state, now))

    def without_streak(self) -> Attempts:
        """Return the same without the streak: an observation succeeded."""
        return replace(self, streak=(False, 0), busy=None)

    def after_accepted(self, plan: Plan, uid: str, now: datetime) -> Attempts:
        """Return the same with what the cloud accepted; what it refused before was for another state of things."""
        # How its operation ends is not known.
        is_kept = self.postponed is not None and self.postponed.is_aside
        after = self if is_kept else replace(self, postponed=None)
        if isinstance(plan, Update):
            return replace(after, in_flight=self.in_flight.with_sent(plan, now))
        return replace(after, created=(uid, now)) if isinstance(plan, Create) else after

    def while_carried_out(self, now: datetime) -> Attempts:
        """Return the same where an operation is open, or ended just now: what it does is shown after its end."""
        created = None if self.created is None else (self.created[0], now)
        return replace(self, in_flight=self.in_flight.begun_at(now), created=created)

    def after_refused(self, work: str, plan: Plan, failure: Failure, now: datetime) -> Attempts:
        """Return the same with what the cloud refused."""
        after, unknown = self, unknown_of(failure)
        if isinstance(plan, Create | Update) and isinstance(failure, Terminal) and failure.reason in _REJECTIONS:
            after = replace(after, rejected=Rejected(work, now + _REJECTED_FOR, (unknown.reason, unknown.message)))
        if not isinstance(failure, Blocked | Terminal) or failure.reason not in _PAUSES:
            return after
        first, longest = _PAUSES[failure.reason]
        known = self.postponed
        pause = min(known.pause * 2, longest) if known is not None and known.work == work else first
        return replace(after, postponed=Postponed(work, now + pause, pause, failure.reason, unknown.message))

    def after_failed_operation(self, work: str, plan: Plan, failure: FailedOperation, now: datetime) -> Attempts:
        """Return the same with work that the cloud accepted, and whose operation failed."""
        if failure.is_aside:
            first, longest = _ASIDE_PAUSES
            known = self.postponed
            is_repeated = known is not None and known.is_aside and known.work == work and now - known.until < longest
            pause = min(known.pause * 2, longest) if known is not None and is_repeated else first
            return replace(
                self, postponed=Postponed(work, now + pause, pause, failure.reason, failure.message, is_aside=True)
            )
        pause = _FAILED_DELETE_PAUSE if isinstance(plan, Delete) else _FAILED_OPERATION_PAUSE
        pause = _FAILED_REFERENCE_PAUSE if failure.reason == "ReferenceNotFound" else pause
        return replace(
            self, postponed=Postponed(work, now + pause, pause, failure.reason, failure.message, is_failed=True)
        )

    def retry_after(self, failure: Failure) -> timedelta | None:
        """Return when to try again what was refused just now, where the database's state did not allow it."""
        if not isinstance(failure, Blocked | Terminal) or failure.reason not in _PAUSES or self.postponed is None:
            return None
        pause = self.postponed.pause
        return min(pause, PASSWORD_READ) if failure.reason == BAD_PASSWORD else pause

    def after_no_effect(self, work: str, now: datetime) -> Attempts:
        """Return the same with what was accepted, and is as before."""
        return replace(self, rejected=Rejected(work, now + _REJECTED_FOR))


NOTHING_TRIED = Attempts()


class Memory:
    """The attempts of each resource, and the failed passes since its last good one."""

    def __init__(self) -> None:
        self._attempts: dict[Key, Attempts] = {}
        self._failed_passes: dict[Key, int] = {}

    def of(self, key: Key) -> Attempts:
        """Return what is remembered of a resource."""
        return self._attempts.get(key, NOTHING_TRIED)

    def keep(self, key: Key, attempts: Attempts) -> None:
        """Remember this of a resource from now on."""
        if attempts == NOTHING_TRIED:
            self._attempts.pop(key, None)
        else:
            self._attempts[key] = attempts

    def count_failed_pass(self, key: Key) -> int:
        """Count a failed pass; return how many there were in a row."""
        count = self._failed_passes[key] = self._failed_passes.get(key, 0) + 1
        return count

    def passed(self, key: Key) -> None:
        """Forget the failed passes of a resource: one succeeded."""
        self._failed_passes.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forget all about an object that is gone."""
        self._attempts.pop(key, None)
        self._failed_passes.pop(key, None)
