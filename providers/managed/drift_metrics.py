"""The age of the oldest difference that is not corrected yet: held for a window, or observed only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from prometheus_client import Gauge

from runtime import clock
from runtime.conditions import instant
from runtime.metrics import REGISTRY
from runtime.objects import Object
from runtime.store import Store

BY_DRIFT: Final = "drift"
HELD: Final = "held"
_AT_REST = frozenset({"Corrected", "Tolerated"})

AGE: Final = Gauge(
    "fairlead_drift_age_seconds",
    "How many seconds since the oldest drift was found that is not corrected yet; 0 without drift",
    ["resource"],
    registry=REGISTRY,
)


def drifting(obj: Object) -> tuple[str, ...]:
    """Index objects by whether a difference waits."""
    return (HELD,) if _since(obj) else ()


def watch_age(store: Store, now: Callable[[], datetime] = clock.now) -> None:
    """Have each scrape read the age from a store that is indexed by `drifting`."""
    AGE.labels(store.resource.group_kind).set_function(lambda: age_seconds(store, now()))


def age_seconds(store: Store, now: datetime) -> float:
    """Return the age of the oldest difference that waits, 0 without any; only objects that have one are decoded."""
    objects = (store.get(key) for key in store.by_index(BY_DRIFT, HELD))
    stamps = (instant(text) for obj in objects if obj is not None for text in _since(obj))
    return max(((now - since).total_seconds() for since in stamps if since is not None), default=0.0)


def _since(obj: Object) -> tuple[str, ...]:
    entries = (obj.get("status") or {}).get("drift") or ()
    return tuple(str(entry.get("since", "")) for entry in entries if entry.get("action") not in _AT_REST)
