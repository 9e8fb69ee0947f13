"""The pure parts of writing: projections, hashes, ownership, conflicts over fields."""

from __future__ import annotations

from typing import Any

from composer.claim.act import applier
from composer.claim.field_conflicts import conflicts
from runtime.managed_fields import shed
from tests.composer.factories import desired, live

# Ownership

MANAGER = "fairlead.dev/0123456789abcdef"
OURS = applier(MANAGER)


def _entry(manager: str, operation: str, fields: Any, **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def _with(*entries: dict[str, Any]) -> dict[str, Any]:
    return live(desired(), managedFields=list(entries))


A, B = _entry(MANAGER, "Apply", {"f:spec": {"f:a": {}}}), _entry(MANAGER, "Update", {"f:spec": {"f:b": {}}})


def test_fields_of_ours_that_a_copy_of_the_object_holds_are_ours_alone_after_the_first_apply() -> None:
    label: dict[str, Any] = {"f:fairlead.dev/claim": {}}
    mine = {
        "f:metadata": {"f:labels": label, "f:annotations": {"f:fairlead.dev/resource": {}}},
        "f:spec": {"f:limit": {}, "f:users": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    }
    copied = {
        "f:metadata": {
            "f:labels": {".": {}, **label, "f:team": {}},
            "f:annotations": {".": {}, "f:fairlead.dev/resource": {}, "f:fairlead.dev/incarnation": {}},
        },
        "f:spec": {
            ".": {},
            "f:limit": {},
            "f:users": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:quota": {}}},
        },
    }
    ours, theirs = _entry(MANAGER, "Apply", mine), _entry("velero-server", "Update", copied)
    hand = _entry("kubectl-edit", "Update", {"f:spec": {"f:limit": {}}})
    status = _entry("velero-server", "Update", {"f:metadata": {"f:labels": label}}, subresource="status")

    *tests, change = shed(_with(ours, theirs, hand, status), OURS)

    assert [operation["op"] for operation in tests] == ["test", "test"]
    left = {
        "f:metadata": {
            "f:labels": {".": {}, "f:team": {}},
            "f:annotations": {".": {}, "f:fairlead.dev/incarnation": {}},
        },
        "f:spec": {".": {}, "f:users": {".": {}, 'k:{"name":"a"}': {"f:quota": {}}}},
    }
    assert change["value"] == [ours, {**theirs, "fieldsV1": left}, hand, status]


def test_a_copy_that_brought_nothing_else_holds_nothing_any_more() -> None:
    fields = {"f:metadata": {"f:labels": {".": {}, "f:fairlead.dev/claim": {}}}, "f:spec": {"f:limit": {}}}
    ours = _entry(MANAGER, "Apply", fields)

    *_, change = shed(_with(ours, _entry("velero-server", "Update", fields)), OURS)

    assert change["value"] == [ours]
    assert shed(_with(ours), OURS) == []
    assert shed(_with(_entry("velero-server", "Update", fields)), OURS) == []


WANTED = {"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": {"x": 1, "y": 2}}
X: dict[str, Any] = {"f:spec": {"f:x": {}}}


def test_a_conflict_of_a_converted_kind_is_read_in_the_version_that_is_applied() -> None:
    entries = [{**_entry(name, "Apply", X), "apiVersion": name} for name in ("v1", "v1beta1")]
    stored = {**WANTED, "spec": {"x": 7}, "metadata": {"managedFields": entries}}

    assert [conflict.manager for conflict in conflicts(stored, WANTED, in_version_alone=True)] == ["v1"]
