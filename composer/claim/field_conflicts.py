"""Fields that two managers fight over: when to take one back, when to let it rest, and how to leave it out. Pure.

A field rests for ten minutes after three offences of an applier within ten minutes, or ten of a manager that writes by
updates, as people and most operators do. Then it is taken back once; who takes it again has it for twice as long, and
so on up to six hours. How often that was stands in the inventory, beside when it ends.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from composer.inventory import Entry, Resting
from runtime.conditions import timestamp
from runtime.errors import Cause
from runtime.objects import Object

OFFENCES = 3
# A person does not take the same field ten times in ten minutes.
OFFENCES_BY_HAND = 10
WINDOW = timedelta(minutes=10)
REST = timedelta(minutes=10)
LONGEST_REST = timedelta(hours=6)

_REMEMBERED = 32
_LATE = timedelta(seconds=2)
_ONE_SECOND = timedelta(seconds=1)
_DOUBLINGS = 16

_MANAGER = re.compile(r'conflict with "([^"]*)"')
# The API server adds the version with which a manager of operation Update wrote; an applier has none.
_UPDATED = re.compile(r'conflict with "[^"]*"(?: with subresource "[^"]*")? using ')
_STEP = re.compile(r'\.("(?:[^"\\]|\\.)*"|[^.\[]+)|\[([^\]]*)\]')


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that another manager holds; `by_hand` when it wrote by an update, as people's tools do."""

    field: str
    manager: str
    by_hand: bool


REMOVED = Conflict("", "", by_hand=True)
"""What an update removed: nobody owns it then, so that an apply meets no conflict and learns of no manager."""


def is_endless(offences: Mapping[tuple[str, str], Sequence[datetime]], now: datetime) -> bool:
    """Tell whether fields of an object were removed so often of late that they are not set again for a while."""
    removed = offences.get((REMOVED.field, REMOVED.manager), ())
    return sum(now - each < WINDOW for each in removed) >= OFFENCES_BY_HAND


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to do about conflicts: fields taken back by force, and fields left alone for a while."""

    taken_back: tuple[Conflict, ...]
    resting: tuple[Resting, ...]


def conflicts(causes: Sequence[Cause]) -> tuple[Conflict, ...]:
    """Read the causes of a refused apply (metav1.CauseTypeFieldManagerConflict)."""
    found: list[Conflict] = []
    for cause in causes:
        manager = _MANAGER.search(cause.message)
        if manager:
            by_hand = _UPDATED.search(cause.message) is not None or manager[1].startswith("kubectl-")
            found.append(Conflict(cause.field, manager[1], by_hand))
    return tuple(found)


def settle(
    found: Sequence[Conflict],
    offences: Mapping[tuple[str, str], Sequence[datetime]],
    now: datetime,
    *,
    rested: Sequence[Resting] = (),
) -> Settlement:
    """Decide each conflict. `offences` are the earlier times, per (field, manager), at which it was taken back.

    `rested` are the rests of before, as `remembered` returns them: after one the first offence is the last.
    """
    taken: list[Conflict] = []
    resting: list[Resting] = []
    before = {(each.field, each.manager): each for each in rested}
    for conflict in found:
        known = before.get((conflict.field, conflict.manager))
        begin = max(now - WINDOW, datetime.fromisoformat(known.until)) if known else now - WINDOW
        recent = [each for each in offences.get((conflict.field, conflict.manager), ()) if each >= begin]
        allowed = OFFENCES_BY_HAND if conflict.by_hand else OFFENCES
        if len(recent) < (1 if known else allowed):
            taken.append(conflict)
        else:
            tries = known.tries + 1 if known else 1
            until = timestamp(now + rest_of(tries))
            resting.append(Resting(conflict.field, conflict.manager, until, tries))
    return Settlement(tuple(taken), tuple(resting))


def rest_of(tries: int) -> timedelta:
    """Return how long a field rests for the `tries`th time in a row."""
    return min(REST * (1 << min(tries - 1, _DOUBLINGS)), LONGEST_REST)


def at_rest(resting: Iterable[Resting], now: str) -> tuple[Resting, ...]:
    """Return the fields that rest at `now` (RFC 3339 in UTC), without those whose time is over."""
    return tuple(each for each in resting if each.until > now)


def remembered(resting: Iterable[Resting], now: datetime) -> tuple[Resting, ...]:
    """Return the rests that still count: those that have been over for as long again as they would be next are not."""
    return tuple(each for each in resting if now - datetime.fromisoformat(each.until) < rest_of(each.tries + 1))


def joined(before: Iterable[Resting], new: Iterable[Resting]) -> tuple[Resting, ...]:
    """Put new rests in the place of older ones of the same field and manager; as many as the inventory has room for."""
    both = {(each.field, each.manager): each for each in (*before, *new)}
    latest = sorted(both.values(), key=lambda each: each.until, reverse=True)[:_REMEMBERED]
    return tuple(sorted(latest, key=lambda each: (each.field, each.manager)))


def next_try(entries: Iterable[Entry], now: datetime) -> timedelta | None:
    """Return when the first field is to be tried again, one that came due in this very pass included."""
    begin = timestamp(now - _LATE)
    ends = [each.until for entry in entries for each in at_rest(entry.resting, begin)]
    return max(datetime.fromisoformat(min(ends)) - now, _ONE_SECOND) if ends else None


def without(obj: Object, resting: Sequence[Resting]) -> Object:
    """Return the object without the fields that rest."""
    if not resting:
        return obj
    left = copy.deepcopy(obj)
    for each in resting:
        _drop(left, _steps(each.field))
    return left


def _steps(path: str) -> list[str | dict[str, str]]:
    steps: list[str | dict[str, str]] = []
    for name, selector in _STEP.findall(path):
        if name:
            steps.append(name.strip('"'))
        else:
            pairs = (pair.partition("=") for pair in selector.split(","))
            steps.append({key: value.strip('"') for key, _, value in pairs})
    return steps


def _drop(container: Any, steps: Sequence[str | dict[str, str]]) -> None:
    """Remove the field at `steps`; a path that leads nowhere removes nothing."""
    match steps:
        case [str() as name] if isinstance(container, dict):
            container.pop(name, None)
        case [str() as name, *rest] if isinstance(container, dict) and name in container:
            _drop(container[name], rest)
        case [dict() as selector, *rest] if isinstance(container, list):
            chosen = [item for item in container if isinstance(item, dict) and _selected(item, selector)]
            for item in chosen:
                if rest:
                    _drop(item, rest)
                else:
                    container.remove(item)
        case _:
            return


def _selected(item: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    return all(str(item.get(name)) == value for name, value in selector.items())
