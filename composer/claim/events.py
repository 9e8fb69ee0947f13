"""Emits the events of a claim: on transitions, and one for all notes of one reason in one pass."""

from __future__ import annotations

from collections.abc import Iterable

from apis.reasons import ReasonClass
from composer.causes import Cause, most_severe
from composer.claim.outcomes import Note, gathered
from composer.claim.snapshot import Snapshot
from runtime.conditions import find
from runtime.events import EventRecorder, EventType
from runtime.objects import Key

_CREATED = "ChildCreated"


class EventEmitter:
    """Emits the events of claims; what it holds back between passes may be lost, as any event may."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._creations: dict[Key, tuple[Note, ...]] = {}

    def emit(
        self, snapshot: Snapshot, causes: tuple[Cause, ...], notes: Iterable[Note], *, is_whole: bool = True
    ) -> None:
        """Emit what happened in a pass, and a warning for a claim that became Stalled.

        Creations are emitted together once all children are there (`is_whole`), not wave by wave.
        """
        happened = (*self._creations.pop(snapshot.key, ()), *notes)
        if not is_whole:
            self._creations[snapshot.key] = tuple(note for note in happened if note.reason == _CREATED)
            happened = tuple(note for note in happened if note.reason != _CREATED)
        for note in gathered(happened):
            kind: EventType = "Warning" if note.is_warning else "Normal"
            self._events.emit(snapshot.claim, type_=kind, reason=note.reason, message=note.message)
        first = most_severe(causes)
        before = find(snapshot.claim, "Stalled")
        if (
            first
            and first.reason_class is ReasonClass.STALLED
            and (before is None or before.get("reason") != first.reason)
        ):
            self._events.emit(snapshot.claim, type_="Warning", reason=first.reason, message=first.message)

    def forget(self, key: Key) -> None:
        """Drop what is held back of a claim that is gone."""
        self._creations.pop(key, None)
