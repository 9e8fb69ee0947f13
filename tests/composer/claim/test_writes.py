"""The pure parts of writing: projections, hashes, ownership, conflicts over fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.claim.act import applier
from composer.claim.field_conflicts import conflicts
from composer.claim.snapshot import live_hash
from composer.hashes import digest, has_fields_of, sent_hash
from composer.render.schema import project, unknown_step
from runtime.managed_fields import shed
from tests.composer.factories import desired, live

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(json)
def test_a_projection_onto_itself_is_itself(value: Any) -> None:
    assert project(value, value, None) == value


@given(st.dictionaries(st.text(max_size=3), json, max_size=4), st.dictionaries(st.text(max_size=3), json, max_size=4))
def test_fields_of_others_do_not_show_in_a_projection(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Fields beside ours, at the top, never change a projection."""
    stored = {**{name: value for name, value in theirs.items() if name not in ours}, **ours}

    assert project(stored, ours, None) == ours


@given(json)
def test_the_order_of_fields_is_no_difference(value: Any) -> None:
    def turned(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: turned(element) for name, element in reversed(item.items())}
        return [turned(element) for element in item] if isinstance(item, list) else item

    assert digest(value) == digest(turned(value))


@pytest.mark.parametrize(
    ("body", "same"),
    [
        pytest.param({"spec": {"size": 2, "names": ["a"]}}, True, id="another value"),
        pytest.param({"spec": {"names": ["a"], "size": 1}}, True, id="another order"),
        pytest.param({"spec": {"names": ["a"]}}, False, id="a field left out"),
        pytest.param({"spec": {"size": 1, "names": ["a"], "new": 1}}, False, id="a field more"),
        pytest.param({"spec": {"size": 1, "names": []}}, False, id="an item left out"),
        pytest.param({"spec": {"size": 1, "names": ["b"]}}, False, id="another item"),
    ],
)
def test_fields_are_distinguished_from_values(body: dict[str, Any], *, same: bool) -> None:
    sent = sent_hash({"spec": {"size": 1, "names": ["a"]}})

    assert has_fields_of(body, sent) is same


def test_a_lost_owner_is_a_difference_and_finalizers_and_owners_of_others_are_none() -> None:
    wanted = desired()
    wanted["metadata"]["finalizers"] = ["ours"]
    wanted["metadata"]["ownerReferences"] = [{"uid": "claim-uid", "name": "orders"}]
    stored = live(wanted)
    more, orphaned = copy.deepcopy(stored), copy.deepcopy(stored)
    more["metadata"]["finalizers"].append("theirs")
    more["metadata"]["ownerReferences"].append({"uid": "x", "name": "y"})
    del orphaned["metadata"]["ownerReferences"]

    assert live_hash(more, wanted, None) == live_hash(stored, wanted, None)
    assert live_hash(orphaned, wanted, None) != live_hash(stored, wanted, None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("size",), None),
        (("sise",), (0, ", did you mean 'size'?")),
        (("network", "publik"), (1, ", did you mean 'public'?")),
        (("parameters", "anything"), None),
        (("free", "a", "b"), None),
        (("size", "x"), (1, "")),
    ],
)
def test_a_path_that_a_schema_lacks_is_named_with_the_nearest_step(path: tuple[str, ...], expected: object) -> None:
    schema = {
        "properties": {
            "size": {"type": "string"},
            "network": {"type": "object", "properties": {"public": {"type": "boolean"}}},
            "parameters": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
    }

    assert unknown_step(schema, path) == expected


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
