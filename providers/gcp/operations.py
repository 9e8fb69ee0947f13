"""What the operations of a project show: which instances none touched since a time; when a look is due by itself. Pure.

Every change that is made by the Cloud SQL Admin API, by whomever and to databases and users too, is an operation on an
instance (resource `operations`); a change by SQL is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from runtime.conditions import instant

KEPT: Final = timedelta(days=1)
"""How far back operations are read: what was seen before is looked at again."""
_MARGIN: Final = timedelta(minutes=3)
_PERIOD: Final = timedelta(hours=6)
_SLOT: Final = timedelta(minutes=30)
# Reads a minute that looks at one kind may take which nothing but their time asks for, a twentieth of all; and what one
# takes in the mean, as an authority is read anew at times.
_READS_A_MINUTE: Final = 6.75
_READS_OF_A_LOOK: Final = 1.1
_LATER: Final = timedelta(minutes=10)
_MOST_ANSWERED: Final = 5000
# `operationType`: what changes no database, no user, no address and no authority.
_HARMLESS: Final = frozenset(
    {
        *("BACKUP", "BACKUP_VOLUME", "DELETE_BACKUP", "UPDATE_BACKUP", "ADVANCED_BACKUP", "MANAGE_BACKUP"),
        *("ENHANCED_BACKUP", "SNAPSHOT", "DELETE_VOLUME", "EXPORT", "LOG_CLEANUP", "TRUNCATE_LOG"),
    }
)

# What makes an instance; the answer of a clone is shown in the API's pages with either.
_CREATIONS: Final = frozenset({"CREATE", "CLONE"})
_DELETION: Final = "DELETE"


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation, as far as it counts: `at` is the last time that it has, `began` the first.

    It names its instance, and nothing of what is inside that was made or dropped.
    """

    id: str
    instance: str
    began: datetime
    at: datetime
    is_open: bool
    is_harmless: bool
    kind: str = ""
    user: str = ""
    is_failed: bool = False


def entry_of(operation: Mapping[str, Any]) -> Entry | None:
    """Return an operation of a list; None for one without a name or any time."""
    named = (instant(str(operation.get(name, ""))) for name in ("insertTime", "startTime", "endTime"))
    times = [time for time in named if time is not None]
    name = str(operation.get("name", ""))
    if not name or not times:
        return None
    kind, user = str(operation.get("operationType", "")), str(operation.get("user", ""))
    is_open, is_failed = operation.get("status") != "DONE", bool(operation.get("error"))
    instance = str(operation.get("targetId", ""))
    return Entry(name, instance, min(times), max(times), is_open, kind in _HARMLESS, kind, user, is_failed)


class OperationLog:
    """The operations of one project that were read, newest first; pure state of one process.

    `covered_from` is the time since when all are known, None before the first list. `own` are the accounts whose
    operations are this provider's, and `answered` what each was for whose answer came.
    """

    def __init__(self) -> None:
        self.covered_from: datetime | None = None
        self.own: set[str] = set()
        self.answered: dict[str, str] = {}
        self._entries: dict[str, Entry] = {}
        self._counted: dict[str, list[Entry]] = {}
        self._newest: datetime | None = None

    def reads_until(self, now: datetime) -> datetime:
        """Return how far back a list has to be read that begins now; open ones may be further back."""
        return now - KEPT - _LATER if self._newest is None else self._newest - _LATER

    def lacks(self, read: Iterable[Entry]) -> bool:
        """Return whether an operation that was open is not among those that were read: how it ended is not known."""
        known = {entry.id for entry in read}
        return any(entry.is_open and entry.id not in known for entry in self._entries.values())

    def record(self, read: Iterable[Entry], began: datetime, *, covers: datetime) -> None:
        """Record a list that began at a time, and had all operations since `covers`."""
        read = tuple(read)
        known = {entry.id for entry in read}
        kept = (entry for entry in self._entries.values() if entry.at > began - KEPT and not entry.is_open)
        self._entries = {entry.id: entry for entry in (*(old for old in kept if old.id not in known), *read)}
        is_joined = self.covered_from is not None and self._newest is not None and covers <= self._newest
        self._counted = {}
        for entry in self._entries.values():
            if not entry.is_harmless:
                self._counted.setdefault(entry.instance, []).append(entry)
        first = self.covered_from if is_joined and self.covered_from is not None else covers
        self.covered_from, self._newest = max(first, began - KEPT), began

    def mark(self, instance: str) -> str:
        """Return what changes when an operation that counts begins at an instance, or ends."""
        return max((f"{entry.at.isoformat()} {entry.is_open}" for entry in self._of(instance)), default="")

    def is_untouched(self, instance: str, since: datetime) -> bool:
        """Return whether no operation that counts was open at an instance since a time, or shortly before."""
        if self.covered_from is None or since - _MARGIN < self.covered_from:
            return False
        return not any(entry.is_open or entry.at >= since - _MARGIN for entry in self._of(instance))

    def record_answer(self, operation: Mapping[str, Any], name: str) -> None:
        """Record what an operation of ours is for."""
        if len(self.answered) >= _MOST_ANSWERED:
            self.answered.clear()
        self.answered[str(operation.get("name", ""))] = name

    def is_made_by_us(self, kind: str, name: str, since: datetime) -> bool:
        """Return whether a create without an answer, sent at a time, is known to have made what is called `name`.

        All operations of its kind at the instance since have to be ours, and one of them for nothing else that is
        known. Of what is made by SQL there is no operation.
        """
        began = since - _MARGIN
        if self.covered_from is None or began < self.covered_from:
            return False
        made = [entry for entry in self._of(name.partition("/")[0]) if entry.kind == kind and entry.at >= began]
        made = [entry for entry in made if not entry.is_failed]
        is_ours = all(entry.user in self.own for entry in made)
        return is_ours and any(self.answered.get(entry.id, name) == name for entry in made)

    def is_deleted(self, instance: str) -> bool:
        """Return whether the last of the creations and deletions of an instance that are known is a deletion."""
        ends = [entry for entry in self._of(instance) if entry.kind in {*_CREATIONS, _DELETION}]
        last = max(ends, key=lambda entry: entry.began, default=None)
        return last is not None and last.kind == _DELETION and not last.is_failed

    def is_created_by_us(self, instance: str) -> bool:
        """Return whether the last creation of an instance that is known is ours."""
        creations = [entry for entry in self._of(instance) if entry.kind in _CREATIONS]
        return bool(creations) and max(creations, key=lambda entry: entry.began).user in self.own

    def _of(self, instance: str) -> Iterable[Entry]:
        return self._counted.get(instance, ())


def period_of(objects: int) -> timedelta:
    """Return how often each of so many objects of a kind is looked at whatever the log shows."""
    reads_in_a_period = _PERIOD / timedelta(minutes=1) * _READS_A_MINUTE
    period = _PERIOD
    while objects * _READS_OF_A_LOOK > reads_in_a_period * (period / _PERIOD):
        period *= 2
    return period


def is_look_due(name: str, since: datetime, now: datetime, objects: int) -> bool:
    """Return whether the time of an object's own look has come since the last one.

    Each has its time within a period, so that looks are spread evenly. One whose time was missed, as no provider ran,
    waits for the next one: a start looks at nothing but what an operation touched.
    """
    period = period_of(objects)
    share = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 2**32
    offset = datetime(2020, 1, 1, tzinfo=UTC) + period * share
    slot = now - (now - offset) % period
    return since < slot and now - slot < _SLOT
