"""Field managers as server-side apply has them: who owns which fields, what an apply changes, whom it meets.

After KEP-555 and sigs.k8s.io/structured-merge-diff: an apply owns the leaves that it has; what it had before and has no
more goes, unless another manager owns it too; a write of another kind owns the leaves that it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runtime.objects import Object
from tests.simulation import schemas
from tests.simulation.schemas import Path, Schema

Owned = frozenset[Path]
# What no manager owns: the server's own.
_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "managedFields", "selfLink",
    }
)  # fmt: skip


def leaves(schema: Schema, value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield all fields of a value that are owned one by one; an element of a list of its own is one too."""
    if schemas.is_atomic(schema, value) or not value:
        yield at, value
        return
    if at and at[-1][:2] == "k:":
        yield at, ...
    for step, (part, below) in schemas.children(schema, value).items():
        yield from leaves(below, part, (*at, step))


def owned_by(schema: Schema, obj: Object) -> dict[Path, Any]:
    """Return the fields of an object that managers may own, with their values."""
    bare = {name: part for name, part in obj.items() if name not in _UNOWNED}
    meta = {name: part for name, part in (obj.get("metadata") or {}).items() if name not in _UNOWNED_METADATA}
    bare["metadata"] = meta
    if not meta:
        del bare["metadata"]
    return {path: value for path, value in leaves(schema, bare) if path}


def merged(schema: Schema, live: Any, applied: Any) -> Any:
    """Return a value with what is applied put into it, field by field."""
    if type(live) is not type(applied) or schemas.is_atomic(schema, applied):
        return applied
    parts = {step: part for step, (part, _) in schemas.children(schema, live).items()}
    for step, (part, below) in schemas.children(schema, applied).items():
        parts[step] = merged(below, parts[step], part) if step in parts else part
    return schemas.joined(applied, parts)


def without(schema: Schema, value: Any, gone: Iterable[Path]) -> Any:
    """Return a value without these fields; an object that loses its last one stays empty where it was no list item."""
    by_step: dict[str, list[Path]] = {}
    for path in gone:
        by_step.setdefault(path[0], []).append(path[1:])
    parts = {}
    for step, (part, below) in schemas.children(schema, value).items():
        under = by_step.get(step)
        if under is None:
            parts[step] = part
        elif () not in under and not schemas.is_atomic(below, part):
            rest = without(below, part, under)
            if rest or not part:
                parts[step] = rest
    return schemas.joined(value, parts)


def to_fields(owned: Iterable[Path]) -> Object:
    """Return paths as FieldsV1."""
    root: Object = {}
    paths = sorted(owned)
    for path in paths:
        place = root
        for step in path:
            place = place.setdefault(step, {})
        if path[-1][:2] == "k:":
            place["."] = {}
    return root


def of_fields(fields: Object) -> Owned:
    """Return FieldsV1 as paths."""

    def below(place: Object, at: Path) -> Iterator[Path]:
        for step, under in place.items():
            if step == ".":
                yield at
            elif under:
                yield from below(under, (*at, step))
            else:
                yield (*at, step)

    return frozenset(below(fields, ()))


class Managers:
    """The entries of `managedFields`, read and written back."""

    def __init__(self, obj: Object, writer: Object) -> None:
        """Read those of an object; `writer` is the entry that a write makes or renews, without its fields."""
        self._writer = writer
        self._is_same = False
        entries = (obj.get("metadata") or {}).get("managedFields") or ()
        self.owned: list[tuple[Object, Owned]] = [
            ({name: entry[name] for name in entry if name != "fieldsV1"}, of_fields(entry.get("fieldsV1") or {}))
            for entry in entries
        ]

    def of_writer(self) -> Owned:
        """Return what the writer owned before."""
        return next((fields for entry, fields in self.owned if self._is_writer(entry)), frozenset())

    def others(self) -> list[tuple[Object, Owned]]:
        """Return the entries of everybody else."""
        return [(entry, fields) for entry, fields in self.owned if not self._is_writer(entry)]

    def _is_writer(self, entry: Object) -> bool:
        return all(
            entry.get(name, "") == self._writer.get(name, "") for name in ("manager", "operation", "subresource")
        )

    def take(self, paths: Iterable[Path]) -> None:
        """Take fields away from everybody but the writer."""
        gone = frozenset(paths)
        self.owned = [(entry, fields if self._is_writer(entry) else fields - gone) for entry, fields in self.owned]

    def give(self, paths: Owned) -> None:
        """Let the writer own these and nothing else; its entry keeps its time where nothing changed."""
        if paths and paths == self.of_writer():
            return
        self.owned = [*self.others(), *([(self._writer, paths)] if paths else [])]

    def entries(self) -> list[Object]:
        """Return them as `managedFields` holds them."""
        return [{**entry, "fieldsV1": to_fields(fields)} for entry, fields in self.owned if fields]


def conflicts(managers: Managers, live: dict[Path, Any], applied: dict[Path, Any]) -> list[tuple[Object, Path]]:
    """Return whom an apply meets: fields of others to which it gives another value."""
    return [
        (entry, path)
        for entry, fields in managers.others()
        for path in sorted(fields & applied.keys())
        if path[-1][:2] != "k:" and live.get(path, ...) != applied[path]
    ]


def changed(live: dict[Path, Any], written: dict[Path, Any]) -> Owned:
    """Return the fields that a write of another kind than apply gave another value."""
    return frozenset(path for path, value in written.items() if path not in live or live[path] != value)


def dropped(managers: Managers, applied: dict[Path, Any]) -> Owned:
    """Return what the writer applied before and applies no more, but for what others own, or have something in."""
    kept = {path for _, fields in managers.others() for path in fields}
    kept |= {path[:length] for path in {*kept, *applied} for length in range(1, len(path))}
    return frozenset(managers.of_writer() - applied.keys() - kept)
