"""What the API server refused to take, for a while: the same write is not sent again at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from composer.causes import Cause
from composer.claim.decide import Apply, Create
from composer.hashes import digest
from runtime.objects import Key, key_of, uid_of

FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(hours=1)

_Place: TypeAlias = tuple[str, str, Key, str]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What was sent (a digest), why it was refused, until when it is not sent again, for how long in a row."""

    sent: str
    cause: Cause
    until: datetime
    pause: timedelta


@dataclass(slots=True)
class Refusals:
    """Refused writes: each for its own verb, object and content, and never for ever.

    An admission policy is mended without a word to us, and a field that cannot change can be set on a new object.
    """

    _known: dict[_Place, _Refusal] = field(default_factory=dict)

    def of(self, step: Create | Apply, now: datetime) -> Cause | None:
        """Return why a write was refused that is not to be sent again yet."""
        known = self._known.get(_place(step))
        return known.cause if known and known.sent == digest(step.object) and now < known.until else None

    def add(self, step: Create | Apply, why: Cause, now: datetime) -> None:
        """Remember a refusal; the same one again for twice as long, up to an hour."""
        sent, place = digest(step.object), _place(step)
        before = self._known.get(place)
        is_same = before is not None and before.sent == sent
        pause = min(before.pause * 2, LONGEST_PAUSE) if before and is_same else FIRST_PAUSE
        # What was not tried for an hour after it might have been is of no object that is still wanted.
        self._known = {key: each for key, each in self._known.items() if now < each.until + LONGEST_PAUSE}
        self._known[place] = _Refusal(sent, why, now + pause, pause)

    def forget(self, step: Create | Apply) -> None:
        """Drop what is remembered of a write that was taken now."""
        self._known.pop(_place(step), None)

    def clear(self) -> None:
        """Try everything again: a schema has changed."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)


def _place(step: Create | Apply) -> _Place:
    verb, uid = ("apply", uid_of(step.live)) if isinstance(step, Apply) else ("create", "")
    return verb, step.entry.group_kind, key_of(step.object), uid
