"""Changes that a slow cloud accepted and may not show yet: not sent twice, and given up when they never show. Pure.

RDS answers a change with the former values and may go on to show them; whoever sends again meanwhile does so for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from providers.external.observation import Change, Path, Value
from providers.managed.plan import Update

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
