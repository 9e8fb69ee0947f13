"""Values of a type merged field by field; after structured-merge-diff's `typed.Merge`."""

from __future__ import annotations

from typing import Any

from devcloud.apiserver.objects.atoms import ABSENT, Atom, ListAtom, MapAtom
from devcloud.apiserver.objects.typed import step_of


def merged(atom: Atom, live: Any, applied: Any) -> Any:
    """Return a value with what is applied merged into it, ABSENT where neither leaves anything."""
    if applied is ABSENT:
        return _merged_as(atom.form(live), atom, live, applied)
    form = atom.form(applied)
    return _merged_as(form, atom, live, applied)


def _merged_as(form: str, atom: Atom, live: Any, applied: Any) -> Any:
    leaf = live if applied is ABSENT else applied
    match form:
        case "map" if atom.map is not None:
            left = live if isinstance(live, dict) else {}
            right = applied if isinstance(applied, dict) else {}
            if atom.map.is_atomic or not (left or right):
                return leaf
            return _merged_fields(atom.map, left, right)
        case "list" if atom.list is not None:
            before = live if isinstance(live, list) else []
            after = applied if isinstance(applied, list) else []
            if atom.list.is_atomic or not (before or after):
                return leaf
            return _merged_elements(atom.list, before, after)
        case _:
            return leaf


def _merged_fields(atom: MapAtom, left: dict[str, Any], right: dict[str, Any]) -> Any:
    made = {}
    for name in left | right:
        below = atom.fields.get(name, atom.element)
        live, applied = left.get(name, ABSENT), right.get(name, ABSENT)
        part = merged(below, live, applied) if below is not None else (live if applied is ABSENT else applied)
        if part is not ABSENT:
            made[name] = part
    return made or ABSENT


class _Elements:
    """The elements of a list by their steps; None for an element that is there twice."""

    def __init__(self, atom: ListAtom, value: list[Any]) -> None:
        self.values = value
        self.steps = [step_of(atom, part) for part in value]
        self.by_step: dict[str, Any] = {}
        for step, part in zip(self.steps, value, strict=True):
            self.by_step[step] = None if step in self.by_step else part


def _merged_elements(atom: ListAtom, left: list[Any], right: list[Any]) -> Any:  # noqa: C901 - as it is in the source
    """Merge two lists: in the order of the right one, with those of the left one alone where they stood."""
    live, applied = _Elements(atom, left), _Elements(atom, right)
    shared = [step for step in applied.steps if step in live.by_step]
    due = iter(shared)
    next_shared = next(due, None)
    made: list[Any] = []
    placed: set[str] = set()

    def put(step: str, before: Any) -> None:
        part = merged(atom.element, before, applied.by_step.get(step, ABSENT))
        if part is not ABSENT:
            made.append(part)

    i = j = 0
    while i < len(live.steps) or j < len(applied.steps):
        if i < len(live.steps) and j < len(applied.steps):
            step = live.steps[i]
            if step == applied.steps[j]:
                placed.add(step)
                put(step, live.by_step[step])
                i, j, next_shared = i + 1, j + 1, next(due, None)
                continue
            if step in applied.by_step and next_shared is not None and next_shared != step:
                i += 1
                continue
        if i < len(live.steps):
            step = live.steps[i]
            if step not in applied.by_step:
                put(step, live.values[i])
                i += 1
                continue
            if step in placed:
                i += 1
        if j < len(applied.steps):
            step = applied.steps[j]
            placed.add(step)
            put(step, live.by_step.get(step, ABSENT))
            j += 1
            if next_shared == step:
                next_shared = next(due, None)
    return made or ABSENT
