"""Tells of a claim by events: few, on transitions, one for all that happened of a kind in one pass."""

from __future__ import annotations

from collections.abc import Iterable

from apis.reasons import ReasonClass
from composer.causes import Cause, gravest
from composer.claim.outcomes import Note, gathered
from composer.claim.snapshot import View
from runtime.conditions import find
from runtime.events import EventRecorder, EventType
from runtime.objects import Key

_BIRTH = "ChildCreated"


class Teller:
    """Sends the events of claims; what it holds back between passes may be lost, as every event may."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._births: dict[Key, tuple[Note, ...]] = {}

    def tell(self, view: View, causes: tuple[Cause, ...], notes: Iterable[Note], *, is_whole: bool = True) -> None:
        """Tell what happened in a pass, and of a stall that is new.

        Births are told together once all children are there (`is_whole`), so that waves do not speak one by one.
        """
        told = (*self._births.pop(view.key, ()), *notes)
        if not is_whole:
            self._births[view.key] = tuple(each for each in told if each.reason == _BIRTH)
            told = tuple(each for each in told if each.reason != _BIRTH)
        for note in gathered(told):
            kind: EventType = "Warning" if note.is_warning else "Normal"
            self._events.emit(view.claim, type_=kind, reason=note.reason, message=note.message)
        first = gravest(causes)
        before = find(view.claim, "Stalled")
        if (
            first
            and first.reason_class is ReasonClass.STALLED
            and (before is None or before.get("reason") != first.reason)
        ):
            self._events.emit(view.claim, type_="Warning", reason=first.reason, message=first.message)

    def forget(self, key: Key) -> None:
        """Drop what is held back of a claim that is gone."""
        self._births.pop(key, None)
