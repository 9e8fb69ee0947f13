"""`status.drift`, and the age of the oldest difference in it that is not corrected: held for a window, or observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from prometheus_client import Gauge

from providers.external.observation import Change, describe
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome, seen
from providers.managed.summary import Summary
from runtime.conditions import instant, timestamp
from runtime.metrics import REGISTRY
from runtime.objects import Object
from runtime.store import Store

BY_DRIFT: Final = "drift"
HELD: Final = "held"
MOST_DRIFT: Final = 32
TOLERATED: Final = "Tolerated"
_AT_REST = frozenset({"Corrected", TOLERATED})

AGE: Final = Gauge(
    "fairlead_drift_age_seconds",
    "How many seconds since the oldest drift was found that is not corrected yet; 0 without drift",
    ["resource"],
    registry=REGISTRY,
)


def held(changes: Iterable[Change], status: Object, now: datetime) -> list[Object]:
    """Return `status.drift` with changes that wait, in the place of what the status has."""
    known = _entries(status)
    return [_entry(change, "Held", known, now) for change in changes][:MOST_DRIFT]


def entries(inputs: Inputs[Any], summary: Summary, outcome: Outcome[Any], old: Object) -> list[Object]:
    """Return what is held now, what is tolerated, and what was corrected last until something else is."""
    known, now = _entries(old), inputs.now
    corrected = [_entry(change, "Corrected", {}, now) for change in outcome.corrected]
    if not corrected:
        corrected = [entry for entry in old.get("drift") or () if entry["action"] == "Corrected"]
    action = "Observed" if summary.reason == "ObserveOnly" else "Held"
    waiting = [_entry(change, action, known, now) for change in summary.held]
    observed, ignored = seen(inputs, outcome), inputs.envelope.ignore_fields
    tolerated = () if observed is None else (change for change in observed.tolerated if change.shown not in ignored)
    return (waiting + [_entry(change, TOLERATED, known, now) for change in tolerated] + corrected)[:MOST_DRIFT]


def _entries(status: Object) -> dict[Any, Object]:
    return {(entry["path"], entry["action"]): entry for entry in status.get("drift") or ()}


def _entry(change: Change, action: str, known: dict[Any, Object], now: datetime) -> Object:
    before = known.get((change.shown, action))
    return {
        "path": change.shown[:256],
        "desired": describe(change.want),
        "observed": describe(change.have),
        "since": before["since"] if before else timestamp(now),
        "action": action,
    }


def drifting(obj: Object) -> tuple[str, ...]:
    """Index objects by whether a difference waits."""
    return (HELD,) if _since(obj) else ()


def watch_age(store: Store, now: Callable[[], datetime]) -> None:
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
