"""managedFields of an object around its first apply: what a create left as an update becomes an apply. Pure.

A POST is recorded as operation Update; an apply that later leaves a field out would not remove what an update owns
(KEP-555). What a create writes for another manager to keep leaves our entry, so that no apply of ours drops it.

An object that a backup tool made again has all its fields in that tool's entry. After our first apply what we hold is
taken out of it, as client-go's csaupgrade does for kubectl: else a field that we leave out later would stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.objects import Object, copied, metadata
from runtime.preconditions import patch_tests


@dataclass(frozen=True, slots=True)
class Applier:
    """A field manager that applies. `is_former`: whether another manager's name was once its own.

    `lent_annotations` and `lent_finalizer` are written by a create and kept by others from then on. `owner_label`:
    nobody else writes it, but who copies the whole object.
    """

    manager: str
    is_former: Callable[[str], bool]
    lent_annotations: tuple[str, ...]
    lent_finalizer: str
    owner_label: str


def upgrade(live: Object, applier: Applier, *, keeps_finalizer: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that makes a manager an applier of what it created; empty when it is one already.

    `live` is read with managedFields. Entries under its former names are dropped.
    """
    entries: Sequence[Object] = metadata(live).get("managedFields") or ()
    kept = [
        _upgraded(entry, applier, keeps_finalizer=keeps_finalizer) for entry in entries if not _is_old(entry, applier)
    ]
    return _replacing(live, _without_doubles(kept))


def shed(live: Object, applier: Applier) -> list[dict[str, Any]]:
    """Return the JSON patch that takes what a manager applies from whoever made the object anew; empty without such.

    All else that a copy of the whole object brought along (annotations, finalizers, other people's labels) stays.
    """
    manager = applier.manager
    entries: Sequence[Object] = metadata(live).get("managedFields") or ()
    ours = [entry for entry in entries if entry["manager"] == manager and entry["operation"] == "Apply"]
    held = {entry.get("apiVersion", ""): entry.get("fieldsV1") or {} for entry in ours if not entry.get("subresource")}
    kept: list[Object] = []
    for entry in entries:
        mine = held.get(entry.get("apiVersion", ""))
        if mine is None or entry["manager"] == manager or not _is_copy(entry, applier.owner_label):
            kept.append(entry)
            continue
        left = _less(entry["fieldsV1"], mine)
        if left:
            kept.append({**entry, "fieldsV1": left})
    return _replacing(live, kept)


def _replacing(live: Object, entries: Sequence[Object]) -> list[dict[str, Any]]:
    if list(entries) == list(metadata(live).get("managedFields") or ()):
        return []
    return [*patch_tests(live), {"op": "replace", "path": "/metadata/managedFields", "value": list(entries)}]


def _is_copy(entry: Object, owner_label: str) -> bool:
    if entry.get("subresource"):
        return False
    labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
    return f"f:{owner_label}" in labels


def _less(fields: Object, ours: Object) -> Object:
    """Return a set of fields without those of another; what has none left but itself goes, too."""
    left: Object = {}
    for name, below in fields.items():
        if name not in ours:
            left[name] = below
        elif below and (rest := _less(below, ours[name])) and set(rest) != {"."}:
            left[name] = rest
    return left


def _is_old(entry: Object, applier: Applier) -> bool:
    return entry["manager"] != applier.manager and applier.is_former(entry["manager"])


def _upgraded(entry: Object, applier: Applier, *, keeps_finalizer: bool) -> Object:
    if entry["manager"] != applier.manager or entry["operation"] != "Update" or entry.get("subresource"):
        return entry
    fields = copied(entry.get("fieldsV1") or {})
    meta = fields.get("f:metadata") or {}
    for name in applier.lent_annotations:
        (meta.get("f:annotations") or {}).pop(f"f:{name}", None)
    if not keeps_finalizer:
        (meta.get("f:finalizers") or {}).pop(f'v:"{applier.lent_finalizer}"', None)
        if set(meta.get("f:finalizers") or {}) <= {"."}:
            meta.pop("f:finalizers", None)
    return {**entry, "operation": "Apply", "fieldsV1": fields}


def _without_doubles(entries: Sequence[Object]) -> list[Object]:
    """Keep one applier's entry of each manager: the API server refuses two."""
    kept: dict[tuple[str, str, str, str], Object] = {}
    for entry in entries:
        place = (entry["manager"], entry["operation"], entry.get("apiVersion", ""), entry.get("subresource", ""))
        kept[place] = entry if place not in kept else _joined(kept[place], entry)
    return list(kept.values())


def _joined(first: Object, second: Object) -> Object:
    return {**first, "fieldsV1": _merged(first.get("fieldsV1") or {}, second.get("fieldsV1") or {})}


def _merged(first: Object, second: Object) -> Object:
    both = dict(first)
    for name, below in second.items():
        both[name] = _merged(both.get(name, {}), below)
    return both
