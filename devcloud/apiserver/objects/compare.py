"""What differs between two values of a type; after structured-merge-diff's `typed.Compare`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from devcloud.apiserver.objects.atoms import ABSENT, Atom, ListAtom, MapAtom
from devcloud.apiserver.objects.field_sets import FieldSet, Path, without
from devcloud.apiserver.objects.typed import step_of

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


@dataclass(slots=True)
class Comparison:
    """Fields that the right value lacks, has otherwise, or has alone."""

    removed: FieldSet = field(default_factory=FieldSet)
    modified: FieldSet = field(default_factory=FieldSet)
    added: FieldSet = field(default_factory=FieldSet)

    def but(self, fields: FieldSet) -> Comparison:
        """Return it without these fields and what is below them."""
        return Comparison(without(self.removed, fields), without(self.modified, fields), without(self.added, fields))


def compare(atom: Atom, left: Any, right: Any) -> Comparison:
    """Return what differs from the left value to the right one."""
    made = Comparison()
    _compare(made, atom, left, right, ())
    return made


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: true is no 1."""
    if left != right:
        return False
    if isinstance(left, dict | list):
        return _ENCODER.encode(left) == _ENCODER.encode(right)
    return isinstance(left, bool) == isinstance(right, bool)


def _compare(into: Comparison, atom: Atom, left: Any, right: Any, at: Path) -> None:
    if left is right or (left is not ABSENT and right is not ABSENT and is_same(left, right)):
        return
    is_leaf = False
    if right is ABSENT:
        is_leaf = _compare_as(into, atom.form(left), atom, (left, right), at)
    elif left is ABSENT or atom.form(left) == atom.form(right) or left is None or right is None:
        form = atom.form(left if right is None and left is not ABSENT else right)
        is_leaf = _compare_as(into, form, atom, (left, right), at)
    else:
        _compare_as(into, atom.form(left), atom, (left, right), at)
        is_leaf = _compare_as(into, atom.form(right), atom, (left, right), at)
    if not is_leaf:
        if left is ABSENT:
            into.added.insert(at)
        elif right is ABSENT:
            into.removed.insert(at)


def _compare_as(into: Comparison, form: str, atom: Atom, sides: tuple[Any, Any], at: Path) -> bool:
    """Compare two values as of one form; return whether they are one field."""
    left, right = sides
    match form:
        case "map" if atom.map is not None:
            before = left if isinstance(left, dict) else {}
            after = right if isinstance(right, dict) else {}
            if not atom.map.is_atomic and (before or after):
                _compare_fields(into, atom.map, (before, after), at)
                return False
        case "list" if atom.list is not None:
            former = left if isinstance(left, list) else []
            latter = right if isinstance(right, list) else []
            if not atom.list.is_atomic and (former or latter):
                _compare_elements(into, atom.list, (former, latter), at)
                return False
    if left is ABSENT:
        into.added.insert(at)
    elif right is ABSENT:
        into.removed.insert(at)
    elif not is_same(left, right):
        into.modified.insert(at)
    return True


def _compare_fields(into: Comparison, atom: MapAtom, sides: tuple[dict[str, Any], dict[str, Any]], at: Path) -> None:
    left, right = sides
    for name in left | right:
        below = atom.fields.get(name, atom.element)
        if below is not None:
            _compare(into, below, left.get(name, ABSENT), right.get(name, ABSENT), (*at, f"f:{name}"))


def _compare_elements(into: Comparison, atom: ListAtom, sides: tuple[list[Any], list[Any]], at: Path) -> None:
    before, after = (_by_step(atom, side) for side in sides)
    for step in before | after:
        left, right = before.get(step, []), after.get(step, [])
        path = (*at, step)
        if len(left) <= 1 and len(right) <= 1:
            _compare(into, atom.element, left[0] if left else ABSENT, right[0] if right else ABSENT, path)
        elif len(left) > 1 and len(right) > 1:
            if not is_same(left, right):
                into.modified.insert(path)
        elif len(left) > 1:
            if right:
                _compare(into, atom.element, ABSENT, right[0], path)
            into.removed.insert(path)
        else:
            if left:
                _compare(into, atom.element, left[0], ABSENT, path)
            into.added.insert(path)


def _by_step(atom: ListAtom, value: list[Any]) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for part in value:
        made.setdefault(step_of(atom, part), []).append(part)
    return made
