"""managedFields of a child around its first apply: what the birth left as an update becomes an apply. Pure.

A POST is recorded as operation Update; an apply that later leaves a field out would not remove what an update owns
(KEP-555). Marks and finalizer given at a rebirth are not ours to keep: they leave our entry, so that
no apply drops them.

A child that a backup tool made again has all its fields in that tool's entry. After our first apply what we hold is
taken out of it, as client-go's csaupgrade does for kubectl: else a field that leaves the template later would stay.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from apis import names
from runtime.objects import Object, metadata
from runtime.preconditions import patch_tests

_LENT_ANNOTATIONS = tuple(f"f:{name}" for name in (*names.EXTERNAL_REFERENCE, names.RECONCILE_REQUESTED_AT))
_LENT_FINALIZER = f'v:"{names.TEARDOWN_FINALIZER}"'


def upgrade(live: Object, manager: str, *, keeps_finalizer: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that makes `manager` an applier of what it created; empty when it is one already.

    `live` is read with managedFields. Entries of earlier managers of ours are dropped.
    """
    entries: Sequence[Object] = metadata(live).get("managedFields") or ()
    kept = [_upgraded(each, manager, keeps_finalizer=keeps_finalizer) for each in entries if not _is_old(each, manager)]
    return _replacing(live, _without_doubles(kept))


def shed(live: Object, manager: str) -> list[dict[str, Any]]:
    """Return the JSON patch that takes what `manager` applies from whoever made the object anew; empty without such.

    Nobody but a copy of the whole object writes the label of its claim. All else that the copy brought along (marks,
    finalizers, other people's labels) stays with it.
    """
    entries: Sequence[Object] = metadata(live).get("managedFields") or ()
    ours = [each for each in entries if each["manager"] == manager and each["operation"] == "Apply"]
    held = {each.get("apiVersion", ""): each.get("fieldsV1") or {} for each in ours if not each.get("subresource")}
    kept: list[Object] = []
    for entry in entries:
        mine = held.get(entry.get("apiVersion", ""))
        if mine is None or entry["manager"] == manager or not _is_copy(entry):
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


def _is_copy(entry: Object) -> bool:
    if entry.get("subresource"):
        return False
    labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
    return f"f:{names.CLAIM_LABEL}" in labels


def _less(fields: Object, ours: Object) -> Object:
    """Return a set of fields without those of another; what has none left but itself goes, too."""
    left: Object = {}
    for name, below in fields.items():
        if name not in ours:
            left[name] = below
        elif below and (rest := _less(below, ours[name])) and set(rest) != {"."}:
            left[name] = rest
    return left


def _is_old(entry: Object, manager: str) -> bool:
    return entry["manager"] != manager and names.is_claim_manager(entry["manager"])


def _upgraded(entry: Object, manager: str, *, keeps_finalizer: bool) -> Object:
    if entry["manager"] != manager or entry["operation"] != "Update" or entry.get("subresource"):
        return entry
    fields = copy.deepcopy(entry.get("fieldsV1") or {})
    meta = fields.get("f:metadata") or {}
    for name in _LENT_ANNOTATIONS:
        (meta.get("f:annotations") or {}).pop(name, None)
    if not keeps_finalizer:
        (meta.get("f:finalizers") or {}).pop(_LENT_FINALIZER, None)
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


def _joined(one: Object, other: Object) -> Object:
    return {**one, "fieldsV1": _merged(one.get("fieldsV1") or {}, other.get("fieldsV1") or {})}


def _merged(one: Object, other: Object) -> Object:
    both = dict(one)
    for name, below in other.items():
        both[name] = _merged(both.get(name, {}), below)
    return both
