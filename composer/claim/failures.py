"""Failures between passes: claims whose passes fail in a row, and writes that the API server refused. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from composer.causes import Cause, cause
from composer.claim.decide import Apply, Create
from composer.claim.outcomes import in_words
from composer.hashes import digest
from runtime.errors import ApiError, Failure, NotLeading
from runtime.objects import Key, key_of, uid_of

REPEATED = 3
"""A failure is reported from this pass in a row on: a single one is over before anybody could read of it."""


class Failures:
    """Counts the failed passes of each claim since its last good one; nothing depends on it being kept."""

    def __init__(self) -> None:
        self._passes: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        """Count a failed pass."""
        self._passes[key] = self._passes.get(key, 0) + 1

    def forget(self, key: Key) -> None:
        """Drop the failed passes of a claim: one succeeded, or the claim is gone."""
        self._passes.pop(key, None)

    def repeats(self, key: Key) -> bool:
        """Return whether a failure of the pass under way is one of several in a row."""
        return self._passes.get(key, 0) + 1 >= REPEATED


def cause_of(error: Exception, *, repeats: bool) -> Cause | None:
    """Return the cause of the error that ended a pass; None of one that may be over with the next pass.

    The text of a defect is only in the log, since it may hold anything.
    """
    if isinstance(error, NotLeading):
        return None
    if not isinstance(error, ApiError | Failure | TimeoutError):
        text = f"a defect of Fairlead ended the pass over this claim ({type(error).__name__}); it is tried again"
        return cause("InternalError", f"{text}; report it with the line of the composer's log that says InternalError")
    return cause("RequestFailed", in_words(error)) if repeats else None


FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(hours=1)

_Place: TypeAlias = tuple[str, str, Key, str]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A digest of what was refused, why, until when it is not sent again, and how long that pause is."""

    sent: str
    cause: Cause
    until: datetime
    pause: timedelta


@dataclass(slots=True)
class Refusals:
    """Refused writes, by verb, object and content; each is tried again after a pause.

    An admission policy is changed without an event that we see, and a field that cannot change can be set on a new
    object.
    """

    _known: dict[_Place, _Refusal] = field(default_factory=dict)

    def of(self, step: Create | Apply, now: datetime) -> Cause | None:
        """Return why a write was refused, where it is not to be sent again yet."""
        known = self._known.get(_place(step))
        return known.cause if known and known.sent == digest(step.object) and now < known.until else None

    def add(self, step: Create | Apply, why: Cause, now: datetime) -> None:
        """Remember a refusal: five minutes, the same one again twice as long, up to an hour."""
        sent, place = digest(step.object), _place(step)
        before = self._known.get(place)
        is_same = before is not None and before.sent == sent
        pause = min(before.pause * 2, LONGEST_PAUSE) if before and is_same else FIRST_PAUSE
        # What was not tried for an hour after it might have been is of no object that is still wanted.
        self._known = {key: refusal for key, refusal in self._known.items() if now < refusal.until + LONGEST_PAUSE}
        self._known[place] = _Refusal(sent, why, now + pause, pause)

    def forget(self, step: Create | Apply) -> None:
        """Drop what is remembered of a write that succeeded."""
        self._known.pop(_place(step), None)

    def clear(self) -> None:
        """Drop all refusals, since a schema has changed."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)


def _place(step: Create | Apply) -> _Place:
    verb, uid = ("apply", uid_of(step.live)) if isinstance(step, Apply) else ("create", "")
    return verb, step.entry.group_kind, key_of(step.object), uid
