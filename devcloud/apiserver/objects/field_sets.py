"""Sets of fields as server-side apply keeps them, after sigs.k8s.io/structured-merge-diff's `fieldpath.Set`.

A step of a path is spelled as FieldsV1 spells it: `f:name` of an object, `k:{...}` of a map list, `v:...` of a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from devcloud.apiserver.objects.atoms import Atom
from runtime.objects import Object, dumps, loads

Path: TypeAlias = tuple[str, ...]


class FieldSet:
    """Fields of an object: `members` are in the set, below `children` are members of theirs."""

    __slots__ = ("children", "members")

    def __init__(self, members: Iterable[str] = (), children: dict[str, FieldSet] | None = None) -> None:
        self.members = set(members)
        self.children = children or {}

    def __bool__(self) -> bool:
        return bool(self.members) or any(self.children.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.members == other.members and self.children == other.children

    def __hash__(self) -> int:
        raise TypeError("a set of fields changes while it is made")

    def insert(self, path: Path) -> None:
        """Add a field; the object as a whole is none."""
        if not path:
            return
        place = self
        for step in path[:-1]:
            below = place.children.get(step)
            if below is None:
                below = place.children[step] = FieldSet()
            place = below
        place.members.add(path[-1])

    def has(self, step: str) -> bool:
        """Return whether a field at the top is a member."""
        return step in self.members

    def below(self, step: str) -> FieldSet | None:
        """Return the members below a field, None where there are none."""
        return self.children.get(step)

    def paths(self, at: Path = ()) -> Iterator[Path]:
        """Yield all members, those at the top first, as the API server orders them."""
        for step in sorted(self.members):
            yield (*at, step)
        for step in sorted(self.children):
            yield from self.children[step].paths((*at, step))


NOTHING: Final = FieldSet()


def of_paths(paths: Iterable[Path]) -> FieldSet:
    """Return a set of these fields."""
    made = FieldSet()
    for path in paths:
        made.insert(path)
    return made


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in one of both."""
    if not right:
        return left
    if not left:
        return right
    children = dict(left.children)
    for step, below in right.children.items():
        children[step] = union(children[step], below) if step in children else below
    return FieldSet(left.members | right.members, children)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in both."""
    children = {}
    for step, below in left.children.items():
        other = right.children.get(step)
        if other is not None and (both := intersection(below, other)):
            children[step] = both
    return FieldSet(left.members & right.members, children)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in the left one alone; a field that is taken away leaves what is below it."""
    if not right:
        return left
    children = {}
    for step, below in left.children.items():
        other = right.children.get(step)
        rest = below if other is None else difference(below, other)
        if other is None or rest:
            children[step] = rest
    return FieldSet(left.members - right.members, children)


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in the left one, and neither in the right one nor below a member of it."""
    if not right:
        return left
    children = {}
    for step, below in left.children.items():
        if step in right.members:
            continue
        other = right.children.get(step)
        rest = below if other is None else without(below, other)
        if other is None or rest:
            children[step] = rest
    return FieldSet(left.members - right.members, children)


def with_named(fields: FieldSet, atom: Atom) -> FieldSet:
    """Return a set in which the declared fields above a member are members too."""
    members = set(fields.members)
    children = {}
    for step, below in fields.children.items():
        part = atom.at(step)
        if atom.map is not None and step[:2] == "f:" and step[2:] in atom.map.fields:
            members.add(step)
        children[step] = with_named(below, part)
    return FieldSet(members, children)


def to_fields(fields: FieldSet) -> Object:
    """Return a set as FieldsV1."""
    made: Object = {}
    for step in sorted(fields.members | fields.children.keys()):
        below = fields.children.get(step)
        if below is None:
            made[step] = {}
        else:
            own: Object = {".": {}} if step in fields.members else {}
            made[step] = own | to_fields(below)
    return made


def of_fields(written: Object) -> FieldSet:
    """Return FieldsV1 as a set."""
    made = FieldSet()
    for step, below in written.items():
        if step == ".":
            continue
        if not below or "." in below:
            made.members.add(step)
        children = of_fields(below)
        if children:
            made.children[step] = children
    return made


def shown(path: Path) -> str:
    """Return a path as messages show it: `.spec.ports[name="x"].port`."""
    return "".join(step_shown(step) for step in path)


def _value_shown(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={_value_shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return f"[{','.join(_value_shown(part) for part in value)}]"
    return dumps(value).decode()


def step_shown(step: str) -> str:
    """Return a step as messages show it."""
    kind, content = step[:2], step[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        keys = loads(content.encode())
        return f"[{_value_shown(keys)}]"
    return f"[={content}]" if kind == "v:" else f"[{content}]"
