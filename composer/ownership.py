"""managedFields of a child before its first apply: what the birth left as an update becomes an apply. Pure.

A POST is recorded as operation Update; an apply that later leaves a field out would not remove what an update owns
(KEP-555). Marks and finalizer given at a rebirth are not ours to keep: they leave our entry, so that
no apply drops them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from composer import names
from runtime.objects import Object, metadata, uid_of, version_of

_LENT_ANNOTATIONS = tuple(f"f:{name}" for name in (*names.MARKS, names.RECONCILE_REQUESTED_AT))
_LENT_FINALIZER = f'v:"{names.TEARDOWN_FINALIZER}"'


def upgrade(live: Object, manager: str, *, keeps_finalizer: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that makes `manager` an applier of what it created; empty when it is one already.

    `live` is read with managedFields. Entries of earlier managers of ours are dropped.
    """
    entries: Sequence[Object] = metadata(live).get("managedFields") or ()
    kept = [_upgraded(each, manager, keeps_finalizer=keeps_finalizer) for each in entries if not _is_old(each, manager)]
    merged = _without_doubles(kept)
    if merged == list(entries):
        return []
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(live)},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(live)},
        {"op": "replace", "path": "/metadata/managedFields", "value": merged},
    ]


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
