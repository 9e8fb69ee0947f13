"""What Prometheus reads of processes with nothing to do yet: each series is there, and no first increase is missed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.security.canaries import metrics_at
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, PROVIDER_CONFIG, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
_ROW = re.compile(r"^\| `([a-z_]+)` \| ([a-z, ]+) \|", re.MULTILINE)
# Of one of the processes alone.
_OF_COMPOSER = {"fairlead_template_answers_refused_total"}
_OF_PROVIDER = {"fairlead_drift_age_seconds", "fairlead_cloud_api_calls_total"}

Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]
"""Labels and value of each series, by its name."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scraped(running: System) -> dict[str, Samples]:
    """Return what each process shows without any claim, once it leads and has written its first status."""
    await running.until(PROVIDER_CONFIG, "", "default", is_ready)
    await running.until(COMPOSITION, "", "postgres-onprem", is_ready)

    async def both_lead() -> bool:
        return all([_values(await _scrape(running, name), "leader_election_master_status") == [1.0] for name in _NAMES])

    await eventually(both_lead, "both processes lead")
    return {name: await _scrape(running, name) for name in _NAMES}


_NAMES = ("composer", "provider")


async def _scrape(system: System, name: str) -> Samples:
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(await metrics_at(system.ports[name])):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def _values(samples: Samples, metric: str, /, **labels: str) -> list[float]:
    return [value for shown, value in samples.get(metric, []) if labels.items() <= shown.items()]


def _documented() -> dict[str, set[str]]:
    """Return the labels of each metric of the page."""
    page = _PAGE.read_text(encoding="utf-8").split("\n## Metrics\n", 1)[1].split("\n## ", 1)[0]
    return {name: set(labels.split(", ")) for name, labels in _ROW.findall(page)}


@pytest.mark.parametrize("process", _NAMES)
async def test_each_metric_of_the_page_has_a_series_with_its_labels(scraped: dict[str, Samples], process: str) -> None:
    others = _OF_PROVIDER if process == "composer" else _OF_COMPOSER
    samples = scraped[process]
    missing = {}
    for name, labels in _documented().items():
        series = samples.get(name) or samples.get(f"{name}_count") or []
        if not any(labels <= set(shown) for shown, _ in series):
            missing[name] = labels

    assert len(_documented()) > 25
    assert set(missing) == others


@pytest.mark.parametrize("process", _NAMES)
async def test_what_counts_failures_of_a_controller_begins_at_0(scraped: dict[str, Samples], process: str) -> None:
    samples = scraped[process]
    controllers = {labels["controller"] for labels, _ in samples["controller_runtime_max_concurrent_reconciles"]}

    assert controllers
    for controller in controllers:
        for name in ("controller_runtime_reconcile_panics_total", "controller_runtime_terminal_reconcile_errors_total"):
            assert _values(samples, name, controller=controller) == [0.0], (name, controller)
        results = {labels["result"] for labels, _ in samples["controller_runtime_reconcile_total"]}
        assert results == {"success", "requeue", "requeue_after", "error"}
    assert sorted(_values(samples, "event_recorder_dropped_total")) == [0.0, 0.0, 0.0]


async def test_a_kind_without_an_object_has_0_in_each_state(scraped: dict[str, Samples]) -> None:
    for process, kind in (("composer", CLAIM), ("provider", DATABASE)):
        resource = f"{kind.kind}.{kind.group}"
        states = {
            labels["state"]: value
            for labels, value in scraped[process]["fairlead_objects"]
            if labels["resource"] == resource
        }
        assert set(states) == {"Ready", "NotReady", "Reconciling", "Stalled", "Paused", "Deleting"}
        assert set(states.values()) == {0.0}


async def test_a_process_says_who_it_is_and_what_it_takes(scraped: dict[str, Samples]) -> None:
    for process, name in (("composer", "fairlead-composer"), ("provider", "fairlead-provider-onprem")):
        assert _values(scraped[process], "fairlead_build_info", name=name) == [1.0]
        for metric in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
            (value,) = _values(scraped[process], metric)
            assert value > 0
