"""Objects are counted by their state, each once, and an empty state is there with 0."""

from __future__ import annotations

from typing import Any

import pytest

from apis.metrics import STATES, ObjectStates, state_of
from runtime.objects import Object, dumps
from runtime.store import Listing, Store
from tests.support.memory_kube import WIDGETS


def _object(name: str, *conditions: tuple[str, str, str], **metadata: Any) -> Object:
    return {
        "apiVersion": f"{WIDGETS.group}/{WIDGETS.version}",
        "kind": WIDGETS.kind,
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "1", **metadata},
        "status": {
            "conditions": [{"type": type_, "status": status, "reason": reason} for type_, status, reason in conditions]
        },
    }


READY = ("Ready", "True", "Available")
ENDING = {"deletionTimestamp": "2026-11-22T10:00:00Z"}
CASES = [
    pytest.param(_object("a", READY), "Ready", id="usable"),
    pytest.param(_object("a"), "NotReady", id="nobody has looked at it"),
    pytest.param(_object("a", ("Ready", "False", "ServerUnreachable")), "NotReady", id="unusable, and nothing is done"),
    pytest.param(_object("a", READY, ("Reconciling", "True", "Updating")), "Reconciling", id="usable and at work"),
    pytest.param(_object("a", READY, ("Stalled", "True", "HeldChange")), "Stalled", id="usable and waits for a person"),
    pytest.param(_object("a", READY, ("Synced", "False", "Paused")), "Paused", id="paused"),
    pytest.param(_object("a", READY, ("Synced", "False", "DriftHeld")), "Ready", id="drift that waits"),
    pytest.param(_object("a", READY, **ENDING), "Deleting", id="being deleted"),
    pytest.param(
        _object("a", ("Stalled", "True", "DeletionProtected"), **ENDING), "Stalled", id="a deletion waits for a person"
    ),
]


@pytest.mark.parametrize(("obj", "state"), CASES)
def test_an_object_has_one_state(obj: Object, state: str) -> None:
    assert state_of(obj) == (state,)
    assert state in STATES


def _counts(states: ObjectStates) -> dict[tuple[str, str], float]:
    (family,) = states.collect()
    return {(sample.labels["resource"], sample.labels["state"]): sample.value for sample in family.samples}


def test_objects_are_counted_until_their_kind_is_dropped() -> None:
    store, states = Store(WIDGETS), ObjectStates()
    states.add(store)
    empty = _counts(states)
    listing = Listing(store)
    for name, conditions in {"a": [READY], "b": [READY], "c": [("Stalled", "True", "NotOwned")]}.items():
        listing.add(dumps(_object(name, *conditions)))
    list(store.replace_all(listing, "1"))
    filled = _counts(states)
    states.remove(Store(WIDGETS))
    kept = _counts(states)
    states.remove(store)

    kind = WIDGETS.group_kind
    assert empty == {(kind, state): 0 for state in STATES}
    assert filled == kept == empty | {(kind, "Ready"): 2, (kind, "Stalled"): 1}
    assert _counts(states) == {}
