"""Metrics that both processes have: which version runs, and how many objects are in which state. Pure.

An index of the store counts the objects, and a scrape reads the sizes. A state is the first of these that holds:
stalled, paused, deleting, reconciling, ready, not ready. An object has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from runtime.conditions import find, is_true
from runtime.metrics import REGISTRY, TIME_TO_READY
from runtime.objects import Object, deleting
from runtime.store import Store

BUILD_INFO: Final = Gauge(
    "fairlead_build_info",
    "The version of Fairlead that the process runs; always 1",
    ["name", "version"],
    registry=REGISTRY,
)

STATES: Final = ("Ready", "NotReady", "Reconciling", "Stalled", "Paused", "Deleting")
BY_STATE: Final = "state"


def state_of(obj: Object) -> tuple[str, ...]:
    """Return an object's state, one of STATES, as the values of an index."""
    synced = find(obj, "Synced")
    if is_true(obj, "Stalled"):
        return ("Stalled",)
    if synced is not None and synced.get("reason") == "Paused":
        return ("Paused",)
    if deleting(obj):
        return ("Deleting",)
    if is_true(obj, "Reconciling"):
        return ("Reconciling",)
    return ("Ready",) if is_true(obj, "Ready") else ("NotReady",)


class ObjectStates(Collector):
    """The stores whose objects are counted."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}

    def add(self, store: Store) -> None:
        """Count the objects of a store from now on."""
        store.add_index(BY_STATE, state_of)
        TIME_TO_READY.labels(store.resource.group_kind)
        self._stores[store.resource.group_kind] = store

    def remove(self, store: Store) -> None:
        """Count the objects of a store no longer."""
        if self._stores.get(store.resource.group_kind) is store:
            del self._stores[store.resource.group_kind]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give prometheus_client the gauge; a state without any object is there with 0."""
        family = GaugeMetricFamily(
            "fairlead_objects",
            "Number of claims or managed resources in a state",
            labels=["resource", "state"],
        )
        for resource, store in sorted(self._stores.items()):
            for state in STATES:
                family.add_metric([resource, state], store.count(BY_STATE, state))
        yield family


OBJECTS: Final = ObjectStates()
REGISTRY.register(OBJECTS)
