"""What is not to be sent again yet: what was refused, what never shows, and what was accepted a moment ago.

Memory of one process: a restart sends each of them once more, which does no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from apis import names
from providers.credentials.passwords import Introduce, Keep
from providers.external.observation import Change, Path, Value, digest, unknown_of
from providers.managed.decide_update import differences
from providers.managed.outcome import calls_of
from providers.managed.plan import Create, Plan, Refuse, Update, Wait
from providers.managed.record import asked_anew
from providers.managed.requeue import PASSWORD_READ
from providers.managed.snapshot import Snapshot
from providers.settings import Settings
from runtime.errors import Blocked, Failure, Terminal
from runtime.objects import Key, annotations_of, generation_of, key_of, uid_of

_BEFORE_SAYING = 3

_FIRST = timedelta(seconds=2)

_MOST_COUNTED = 10

MOST_TRIES = 3

_FORGOTTEN_AFTER = 10


@dataclass(frozen=True, slots=True)
class Try:
    """What one path was set to, when last, and how many times."""

    want: Value
    deferred: bool
    at: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Sifted:
    """A plan without what was sent lately (`waiting`) and without what never shows (`futile`)."""

    plan: Update
    waiting: tuple[str, ...]
    futile: tuple[Change, ...]


@dataclass(slots=True)
class Sent:
    """What was sent for one resource; what was sent long ago, or differs no more beside what does, is forgotten."""

    tries: dict[Path, Try] = field(default_factory=dict)

    def note(self, plan: Update, now: datetime) -> None:
        """Remember what a plan sent."""
        for changes, deferred in ((plan.changes, False), (plan.queued, True)):
            for change in changes:
                known = self._known(change, deferred=deferred)
                count = known.count + 1 if known is not None else 1
                self.tries[change.path] = Try(change.want, deferred, now, count)

    def look_again(self, now: datetime, settle: timedelta) -> timedelta | None:
        """Return when what was sent last has had its time; None when nothing is that new.

        A list shows only what differs from the list before: what was undone between two of them is not among it.
        """
        left = [one.at + settle - now for one in self.tries.values() if now - one.at <= settle]
        return max(left, default=None)

    def sift(self, plan: Update, differing: tuple[Change, ...], now: datetime, settle: timedelta) -> Sifted:
        """Leave out of a plan what is not to be sent now; `differing` is the whole difference."""
        paths = {change.path for change in differing}
        self.tries = {
            path: one for path, one in self.tries.items() if path in paths and now - one.at <= settle * _FORGOTTEN_AFTER
        }
        waiting: list[str] = []
        futile: list[Change] = []
        kept: dict[bool, list[Change]] = {False: [], True: []}
        for changes, deferred in ((plan.changes, False), (plan.queued, True)):
            for change in changes:
                known = self._known(change, deferred=deferred)
                if known is not None and now - known.at < settle:
                    waiting.append(change.shown)
                elif known is not None and known.count >= MOST_TRIES:
                    futile.append(change)
                else:
                    kept[deferred].append(change)
        left = Update(tuple(kept[False]), plan.held, plan.drift, tuple(kept[True]))
        return Sifted(left, tuple(waiting), tuple(futile))

    def _known(self, change: Change, *, deferred: bool) -> Try | None:
        known = self.tries.get(change.path)
        return known if known is not None and (known.want, known.deferred) == (change.want, deferred) else None


_SETTLING = timedelta(seconds=5)
_BAD_PASSWORD = "InvalidPassword"  # noqa: S105 - a reason
# What is refused is sent again after the first pause, which is doubled up to the second one.
_PAUSES = {
    "CloudBusy": (timedelta(seconds=10), timedelta(minutes=5)),
    _BAD_PASSWORD: (timedelta(minutes=5), timedelta(hours=1)),
}
_FUTILE_FOR = timedelta(hours=1)
_REFUSALS = frozenset({"InvalidValue", "UnsupportedVersion"})


@dataclass(frozen=True, slots=True)
class _Futile:
    """Work that was refused, or did not take: not sent again before `until` unless something about it changes."""

    work: str
    until: datetime
    refusal: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Postponed:
    """Work that was refused for the database's state, or its password: sent again at `until`, then after `pause`."""

    work: str
    until: datetime
    pause: timedelta
    reason: str
    message: str


@dataclass(slots=True)
class Repeats:
    """Sifts plans by what came of the same work before; a `slow` cloud shows late what it accepted."""

    settings: Settings
    slow: bool
    _futile: dict[Key, _Futile] = field(default_factory=dict)
    _postponed: dict[Key, _Postponed] = field(default_factory=dict)
    _sent: dict[Key, Sent] = field(default_factory=dict)
    _created: dict[Key, tuple[str, datetime]] = field(default_factory=dict)

    def sift(self, snapshot: Snapshot[Any], plan: Plan) -> tuple[Snapshot[Any], Plan]:
        """Leave out of a pass what is not to be sent again now, the password's step included."""
        return self._not_postponed(snapshot, self.without_futile(snapshot, plan))

    def _not_postponed(self, snapshot: Snapshot[Any], plan: Plan) -> tuple[Snapshot[Any], Plan]:
        known, now = self._postponed.get(key_of(snapshot.obj)), snapshot.scene.now
        if known is None or now >= known.until or known.work != _work(snapshot, plan):
            return snapshot, plan
        waiting: Plan = Wait(known.reason, known.message, known.until - now)
        if known.reason == _BAD_PASSWORD:
            waiting = Refuse(known.reason, known.message)
        if calls_of(replace(snapshot, step=Keep()), plan):
            return snapshot, waiting
        # The password's step alone was refused.
        return replace(snapshot, step=Keep()), waiting

    def without_futile(self, snapshot: Snapshot[Any], plan: Plan) -> Plan:
        """Do not repeat for ever what the cloud refuses, or accepts and does not carry out."""
        if self.slow and isinstance(plan, Create):
            plan = self._not_made_again(snapshot, plan)
        if self.slow and isinstance(plan, Update):
            plan = self._not_sent_again(snapshot, plan)
        known = self._futile.get(key_of(snapshot.obj))
        if not isinstance(plan, Create | Update) or known is None or snapshot.scene.now >= known.until:
            return plan
        if known.work != _work(snapshot, plan):
            return plan
        if known.refusal is not None:
            return Refuse(*known.refusal)
        paths = ", ".join(change.shown for change in plan.changes) if isinstance(plan, Update) else ""
        return Refuse(
            "AccessDenied",
            f"these stay as they are although they were put back: {paths[:300]}; who granted them must take them back",
            plan.changes if isinstance(plan, Update) else (),
        )

    def _not_made_again(self, snapshot: Snapshot[Any], plan: Create) -> Create | Wait:
        """Wait for what was just made to be shown."""
        uid, at = self._created.get(key_of(snapshot.obj), ("", snapshot.scene.now))
        if uid != uid_of(snapshot.obj) or snapshot.scene.now - at >= self.settings.settle:
            return plan
        return Wait("Creating", "the database is being made; the cloud does not show it yet", _SETTLING)

    def _not_sent_again(self, snapshot: Snapshot[Any], plan: Update) -> Plan:
        """Leave out what a slow cloud accepted lately, and what it accepts and never shows."""
        if asked_anew(snapshot.obj):
            self._sent.pop(key_of(snapshot.obj), None)
        sent = self._sent.setdefault(key_of(snapshot.obj), Sent())
        sifted = sent.sift(plan, snapshot.scene.changes, snapshot.scene.now, self.settings.settle)
        if sifted.plan.changes or sifted.plan.queued:
            return sifted.plan
        if sifted.futile:
            text = (
                f"the cloud accepts these and never shows them: {differences(sifted.futile)}; nothing is sent again"
                " until the spec or what is seen changes"
            )
            return Refuse("InvalidValue", text, sifted.futile)
        if plan.held is not None and not isinstance(plan.held, Wait):
            return plan.held
        paths = ", ".join(sifted.waiting)[:300]
        return Wait("CloudBusy", f"the cloud accepted the change and does not show it yet: {paths}", _SETTLING)

    def accepted(self, snapshot: Snapshot[Any], plan: Plan) -> None:
        """Remember what the cloud took; whatever it refused before was for another state of things."""
        key, now = key_of(snapshot.obj), self.settings.now()
        self._postponed.pop(key, None)
        if isinstance(plan, Update):
            self._sent.setdefault(key, Sent()).note(plan, now)
        elif isinstance(plan, Create):
            self._created[key] = (uid_of(snapshot.obj), now)

    def refused(self, snapshot: Snapshot[Any], plan: Plan, failure: Failure) -> timedelta | None:
        """Remember what the cloud refused; return when to try it again where it was its state that did not allow it."""
        key, now, unknown = key_of(snapshot.obj), self.settings.now(), unknown_of(failure)
        if isinstance(plan, Create | Update) and isinstance(failure, Terminal) and failure.reason in _REFUSALS:
            self._futile[key] = _Futile(_work(snapshot, plan), now + _FUTILE_FOR, (unknown.reason, unknown.message))
        if not isinstance(failure, Blocked | Terminal) or failure.reason not in _PAUSES:
            return None
        first, longest = _PAUSES[failure.reason]
        work, known = _work(snapshot, plan), self._postponed.get(key)
        repeats = known is not None and known.work == work
        pause = min(known.pause * 2, longest) if known is not None and repeats else first
        self._postponed[key] = _Postponed(work, now + pause, pause, failure.reason, unknown.message)
        return min(pause, PASSWORD_READ) if failure.reason == _BAD_PASSWORD else pause

    def without_effect(self, snapshot: Snapshot[Any], plan: Update) -> None:
        """Remember what was accepted, and is as before."""
        self._futile[key_of(snapshot.obj)] = _Futile(_work(snapshot, plan), snapshot.scene.now + _FUTILE_FOR)

    def settled(self, key: Key) -> None:
        """Forget what was futile: nothing is left to do."""
        self._futile.pop(key, None)

    def look_again(self, key: Key) -> timedelta | None:
        """Return when what a slow cloud accepted last has had its time; None where nothing is that new."""
        sent = self._sent.get(key)
        return sent.look_again(self.settings.now(), self.settings.settle) if sent is not None and self.slow else None

    def forget(self, key: Key) -> None:
        """Drop all that is remembered of an object that is gone."""
        for memory in (self._futile, self._postponed, self._sent, self._created):
            memory.pop(key, None)


def _work(snapshot: Snapshot[Any], plan: Plan) -> str:
    """Name what a pass is about to do, the state it meets, and all that a person may change to have it tried again."""
    config = generation_of(snapshot.account.config_object) if snapshot.account is not None else 0
    asked = annotations_of(snapshot.obj).get(names.RECONCILE_REQUESTED_AT, "")
    state = snapshot.observed.state if snapshot.observed is not None else ""
    match plan:
        case Update(changes=changes):
            calls = [repr(change) for change in changes]
        case Create(restore=backup):
            calls = [f"create {backup}"]
        case _:
            calls = [f"{call.kind} {call.target}" for call in calls_of(snapshot, plan)]
    sent = snapshot.step.password if isinstance(snapshot.step, Introduce) else ""
    return digest([*calls, state, digest(sent), snapshot.scene.desired.spec_hash, asked, config])


@dataclass(slots=True)
class Looks:
    """Looks in a row that failed, or that found the cloud busy; of both kinds the present row alone is counted."""

    _rows: dict[Key, tuple[bool, int]] = field(default_factory=dict)
    _busy_since: dict[Key, tuple[str, datetime]] = field(default_factory=dict)

    def note(self, key: Key, *, failed: bool) -> bool:
        """Count one more look; return whether it is yet too early to tell of it."""
        known = self._rows.get(key)
        count = known[1] + 1 if known is not None and known[0] is failed else 1
        self._rows[key] = (failed, min(count, _MOST_COUNTED))
        return count < _BEFORE_SAYING

    def busy_for(self, key: Key, state: str, now: datetime) -> timedelta:
        """Return for how long looks have found one state in which the cloud is at work, this one the last of them."""
        known = self._busy_since.get(key)
        if known is None or known[0] != state:
            known = self._busy_since[key] = (state, now)
        return now - known[1]

    def forget(self, key: Key) -> None:
        """Begin anew: a look succeeded, or the object is gone."""
        self._rows.pop(key, None)
        self._busy_since.pop(key, None)

    def next_after(self, key: Key, usual: timedelta) -> timedelta:
        """Return when to look again: soon after the first failed looks, else at the usual pace."""
        failed, count = self._rows.get(key, (False, 0))
        return min(usual, _FIRST * 2**count) if failed else usual

    def failing(self, key: Key) -> bool:
        """Tell whether the last look failed."""
        return self._rows.get(key, (False, 0))[0]
