"""Fields over which two managers conflict: when to take one back, when to yield it, how to leave it out. Pure.

A field is yielded for ten minutes after three conflicts of an applier within ten minutes, or ten of a manager that
writes by updates, as people and most operators do. Then it is taken back once; a manager that takes it
again has it for twice as long, up to six hours. The inventory has until when a field is yielded, and how often it was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apis.names import PREFIX
from composer.inventory import Entry, YieldedField
from runtime.conditions import timestamp
from runtime.field_paths import differing_fields, without_fields
from runtime.objects import Object

CONFLICTS_BY_APPLY = 3
# A person does not take the same field ten times in ten minutes.
CONFLICTS_BY_UPDATE = 10
WINDOW = timedelta(minutes=10)
YIELD = timedelta(minutes=10)
LONGEST_YIELD = timedelta(hours=6)

_REMEMBERED = 32
_LATE = timedelta(seconds=2)
_ONE_SECOND = timedelta(seconds=1)
_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that another manager holds; `by_hand` when it wrote by an update, as people's tools do."""

    field: str
    manager: str
    by_hand: bool


REMOVED = Conflict("", "", by_hand=True)
"""A field that an update removed: nobody owns it then, so that an apply meets no conflict and finds no manager."""


def is_endless(conflicts_before: Mapping[tuple[str, str], Sequence[datetime]], now: datetime) -> bool:
    """Return whether fields of an object were removed so often lately that they are not set again for a while."""
    removed = conflicts_before.get((REMOVED.field, REMOVED.manager), ())
    return sum(now - removed_at < WINDOW for removed_at in removed) >= CONFLICTS_BY_UPDATE


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is done about conflicts: fields taken back by force, and fields yielded for a while."""

    taken_back: tuple[Conflict, ...]
    yielded: tuple[YieldedField, ...]


def conflicts(live: Object, wanted: Object, *, in_version_alone: bool = False) -> tuple[Conflict, ...]:
    """Return the fields of `wanted` that managers other than Fairlead's set to another value in `live`.

    `live` has managedFields (FieldsV1, KEP-555). `in_version_alone`: fields have other names in other versions, so that
    only what was written in the version of `wanted` counts.
    """
    rivals: list[Conflict] = []
    for entry in live["metadata"].get("managedFields") or ():
        manager = entry["manager"]
        # Through another subresource, as scale is, a field of the spec is written as well.
        is_rival = entry.get("subresource") != "status" and not manager.startswith(PREFIX)
        if is_rival and not (in_version_alone and entry.get("apiVersion") != wanted["apiVersion"]):
            by_hand = entry["operation"] == "Update" or manager.startswith("kubectl-")
            fields = differing_fields(entry.get("fieldsV1") or {}, wanted, live)
            rivals += [Conflict(path, manager, by_hand) for path in fields]
    return tuple(rivals)


def settle(
    rivals: Sequence[Conflict],
    conflicts_before: Mapping[tuple[str, str], Sequence[datetime]],
    now: datetime,
    *,
    yielded_before: Sequence[YieldedField] = (),
) -> Settlement:
    """Decide each conflict. `conflicts_before` are the earlier times, per (field, manager), at which it was taken back.

    `yielded_before` are those of before, as `remembered` returns them: after one the first conflict is the last.
    """
    taken: list[Conflict] = []
    yielded: list[YieldedField] = []
    before = {(yielded_field.field, yielded_field.manager): yielded_field for yielded_field in yielded_before}
    for conflict in rivals:
        known = before.get((conflict.field, conflict.manager))
        begin = max(now - WINDOW, datetime.fromisoformat(known.until)) if known else now - WINDOW
        times = conflicts_before.get((conflict.field, conflict.manager), ())
        recent = [taken_at for taken_at in times if taken_at >= begin]
        allowed = CONFLICTS_BY_UPDATE if conflict.by_hand else CONFLICTS_BY_APPLY
        if len(recent) < (1 if known else allowed):
            taken.append(conflict)
        else:
            tries = known.tries + 1 if known else 1
            until = timestamp(now + yield_of(tries))
            yielded.append(YieldedField(conflict.field, conflict.manager, until, tries))
    return Settlement(tuple(taken), tuple(yielded))


def yield_of(tries: int) -> timedelta:
    """Return how long a field is yielded for the `tries`th time in a row."""
    return min(YIELD * (1 << min(tries - 1, _DOUBLINGS)), LONGEST_YIELD)


def still_yielded(yielded: Iterable[YieldedField], now: str) -> tuple[YieldedField, ...]:
    """Return the fields that are yielded at `now` (RFC 3339 in UTC), without those whose time is over."""
    return tuple(yielded_field for yielded_field in yielded if yielded_field.until > now)


def remembered(yielded: Iterable[YieldedField], now: datetime) -> tuple[YieldedField, ...]:
    """Return the yielded fields that still count: not those over for as long again as they would be yielded next."""
    return tuple(
        yielded_field
        for yielded_field in yielded
        if now - datetime.fromisoformat(yielded_field.until) < yield_of(yielded_field.tries + 1)
    )


def joined(before: Iterable[YieldedField], new: Iterable[YieldedField]) -> tuple[YieldedField, ...]:
    """Return yielded fields, new ones in place of older ones, and not more than the inventory may hold."""
    both = {(yielded_field.field, yielded_field.manager): yielded_field for yielded_field in (*before, *new)}
    latest = sorted(both.values(), key=lambda yielded_field: yielded_field.until, reverse=True)[:_REMEMBERED]
    return tuple(sorted(latest, key=lambda yielded_field: (yielded_field.field, yielded_field.manager)))


def next_try(entries: Iterable[Entry], now: datetime) -> timedelta | None:
    """Return when the first field is to be tried again, one that became due in this pass included."""
    begin = timestamp(now - _LATE)
    ends = [yielded_field.until for entry in entries for yielded_field in still_yielded(entry.yielded, begin)]
    return max(datetime.fromisoformat(min(ends)) - now, _ONE_SECOND) if ends else None


def without(obj: Object, yielded: Iterable[YieldedField]) -> Object:
    """Return the object without the yielded fields."""
    return without_fields(obj, (yielded_field.field for yielded_field in yielded))


@dataclass(slots=True)
class Memory:
    """The fields that this process took back lately, by object."""

    _conflicts: OrderedDict[str, dict[tuple[str, str], list[datetime]]] = field(default_factory=OrderedDict)

    def conflicts_before(self, uid: str) -> Mapping[tuple[str, str], Sequence[datetime]]:
        """Return when fields of an object were taken back lately, per (field, manager)."""
        return self._conflicts.get(uid, {})

    def took_back(self, uid: str, taken: Sequence[Conflict], now: datetime) -> None:
        """Note fields of an object that were taken back; objects without a recent conflict are dropped."""
        taken_at = self._conflicts.setdefault(uid, {})
        for conflict in taken:
            place = (conflict.field, conflict.manager)
            taken_at[place] = [*(when for when in taken_at.get(place, ()) if now - when < WINDOW), now]
        self._conflicts.move_to_end(uid)
        while all(now - when >= WINDOW for times in next(iter(self._conflicts.values())).values() for when in times):
            self._conflicts.popitem(last=False)
            if not self._conflicts:
                return

    def forget_conflicts(self, uids: Collection[str]) -> None:
        """Drop the conflicts over fields of these objects."""
        for uid in uids:
            self._conflicts.pop(uid, None)
