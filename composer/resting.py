"""Fields that two managers fight over: when to take one back, when to let it rest, and how to leave it out. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from composer.inventory import Resting
from runtime.conditions import timestamp
from runtime.errors import Cause
from runtime.objects import Object

OFFENCES = 3
WINDOW = timedelta(minutes=10)
REST = timedelta(minutes=10)

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
    found: Sequence[Conflict], offences: Mapping[tuple[str, str], Sequence[datetime]], now: datetime
) -> Settlement:
    """Decide each conflict. `offences` are the earlier times, per (field, manager), at which it was taken back."""
    taken: list[Conflict] = []
    resting: list[Resting] = []
    for conflict in found:
        recent = [each for each in offences.get((conflict.field, conflict.manager), ()) if now - each < WINDOW]
        if conflict.by_hand or len(recent) < OFFENCES:
            taken.append(conflict)
        else:
            resting.append(Resting(conflict.field, conflict.manager, timestamp(now + REST)))
    return Settlement(tuple(taken), tuple(resting))


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
