"""The age of drift is that of the oldest difference that still waits; what was put right has none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from providers.managed.drift import AGE, BY_DRIFT, age_seconds, drifting, watch_age
from runtime.objects import Object, Resource
from runtime.store import Store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOY = Resource("toy.example.dev", "v1", "Toy", "toys")


def _toy(name: str, *entries: tuple[str, str]) -> Object:
    drift = [{"path": "p", "since": f"2026-11-21T{since}:00Z", "action": action} for since, action in entries]
    meta = {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}
    return {"apiVersion": TOY.api_version, "kind": TOY.kind, "metadata": meta, "status": {"drift": drift}}


@pytest.mark.parametrize(
    ("toys", "seconds"),
    [
        pytest.param([], 0, id="no object"),
        pytest.param([_toy("a")], 0, id="no difference"),
        pytest.param([_toy("a", ("09:00", "Corrected"))], 0, id="one that was put right"),
        pytest.param([_toy("a", ("09:00", "Tolerated"))], 0, id="one that is left on purpose"),
        pytest.param([_toy("a", ("11:00", "Held"), ("09:00", "Corrected"))], 3600, id="one that is held"),
        pytest.param([_toy("a", ("11:00", "Held")), _toy("b", ("10:30", "Observed"))], 5400, id="the oldest of two"),
    ],
)
def test_age_of_drift_is_that_of_the_oldest_difference(toys: list[Object], seconds: float) -> None:
    store = Store(TOY, {BY_DRIFT: drifting})
    for toy in toys:
        store.remember(toy)

    assert age_seconds(store, NOW) == seconds
    watch_age(store, lambda: NOW)
    (family,) = AGE.collect()
    assert {sample.labels["resource"]: sample.value for sample in family.samples}["Toy.toy.example.dev"] == seconds
