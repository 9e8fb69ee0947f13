"""What Prometheus reads of processes with nothing to do yet, and the exact requests of a creation and an edit.

Each series is there before any claim, so that no first increase is missed; the requests are counted in order.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.security.canaries import metrics_at
from tests.support.audit import WRITES, Request
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, PROVIDER_CONFIG, claim, is_ready
from tests.support.system import COMPOSER, PROVIDER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

# With nothing to do yet: these tests come first in the module

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
        return all(
            [
                _values_of(await _scrape_of(running, name), "leader_election_master_status") == [1.0]
                for name in _PROCESSES
            ]
        )

    await eventually(both_lead, "both processes lead")
    return {name: await _scrape_of(running, name) for name in _PROCESSES}


_PROCESSES = ("composer", "provider")


async def _scrape_of(system: System, name: str) -> Samples:
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(await metrics_at(system.ports[name])):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def _values_of(samples: Samples, metric: str, /, **labels: str) -> list[float]:
    return [value for shown, value in samples.get(metric, []) if labels.items() <= shown.items()]


def _documented_metrics() -> dict[str, set[str]]:
    """Return the labels of each metric of the page."""
    page = _PAGE.read_text(encoding="utf-8").split("\n## Metrics\n", 1)[1].split("\n## ", 1)[0]
    return {name: set(labels.split(", ")) for name, labels in _ROW.findall(page)}


@pytest.mark.parametrize("process", _PROCESSES)
async def test_each_metric_of_the_page_has_a_series_with_its_labels(scraped: dict[str, Samples], process: str) -> None:
    others = _OF_PROVIDER if process == "composer" else _OF_COMPOSER
    samples = scraped[process]
    missing = {}
    for name, labels in _documented_metrics().items():
        series = samples.get(name) or samples.get(f"{name}_count") or []
        if not any(labels <= set(shown) for shown, _ in series):
            missing[name] = labels

    assert len(_documented_metrics()) > 25
    assert set(missing) == others


@pytest.mark.parametrize("process", _PROCESSES)
async def test_what_counts_failures_of_a_controller_begins_at_0(scraped: dict[str, Samples], process: str) -> None:
    samples = scraped[process]
    controllers = {labels["controller"] for labels, _ in samples["controller_runtime_max_concurrent_reconciles"]}

    assert controllers
    for controller in controllers:
        for name in ("controller_runtime_reconcile_panics_total", "controller_runtime_terminal_reconcile_errors_total"):
            assert _values_of(samples, name, controller=controller) == [0.0], (name, controller)
        results = {labels["result"] for labels, _ in samples["controller_runtime_reconcile_total"]}
        assert results == {"success", "requeue", "requeue_after", "error"}
    assert sorted(_values_of(samples, "event_recorder_dropped_total")) == [0.0, 0.0, 0.0]


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
        assert _values_of(scraped[process], "fairlead_build_info", name=name) == [1.0]
        for metric in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
            (value,) = _values_of(scraped[process], metric)
            assert value > 0


# What a claim costs

Step = tuple[str, str, str]
CLAIM_STATUS: Step = ("patch", "postgresqlinstances", "status")
_CHILD: Step = ("patch", "postgresdatabases", "")
_CHILD_STATUS: Step = ("patch", "postgresdatabases", "status")


async def requests_during(system: System, namespace: str, act: Callable[[], Awaitable[Any]]) -> list[Request]:
    """Do something; return what both processes asked of that namespace until rest. Events are best effort, apart."""
    requests = await system.writes_until_rest(act)
    return [
        request
        for request in requests
        if request.namespace == namespace and request.resource != "events" and request.verb != "watch"
    ]


def steps(requests: list[Request], user: str, *resources: str) -> list[Step]:
    return [
        (request.verb, request.resource, request.subresource)
        for request in requests
        if request.user == user and request.verb in WRITES and (not resources or request.resource in resources)
    ]


def secret_reads(requests: list[Request], user: str) -> list[str]:
    return [
        request.name
        for request in requests
        if request.user == user and request.resource == "secrets" and request.verb not in WRITES
    ]


async def creation(system: System, namespace: str, **spec: Any) -> list[Request]:
    async def act() -> None:
        await system.create(CLAIM, claim(namespace, "shop", **spec))
        await system.until(CLAIM, namespace, "shop", is_ready)

    return await requests_during(system, namespace, act)


def writes_of_a_creation(children: int) -> list[list[Step]]:
    """Return the writes of a new claim, in order: where its provider answers within half a second, and where not.

    Where not, the claim gets one more status, which says what it waits for; with a second child, whose answer comes
    apart, one more again.
    """
    created: list[Step] = [("patch", "postgresqlinstances", ""), *[("create", "postgresdatabases", "")] * children]
    ready: list[Step] = [("create", "secrets", ""), CLAIM_STATUS]
    return [[*created, *[CLAIM_STATUS] * waits, *ready] for waits in range(children + 1)]


async def test_a_new_claim_with_one_child_costs_four_writes_or_five_and_one_secret_read_and_its_provider_six(
    warm: System, namespace: str
) -> None:
    requests = await creation(warm, namespace)
    assert all(request.code < 400 for request in requests if request.verb in WRITES)
    assert steps(requests, COMPOSER) in writes_of_a_creation(children=1)
    (child,) = await warm.children(namespace, "shop")
    assert secret_reads(requests, COMPOSER) == [f"{child['metadata']['name']}-credentials"]
    marks_intent_incarnation_report = [_CHILD, _CHILD_STATUS, _CHILD, _CHILD_STATUS]
    assert steps(requests, PROVIDER, "postgresdatabases") == marks_intent_incarnation_report
    assert steps(requests, PROVIDER, "secrets") == [("create", "secrets", ""), ("update", "secrets", "")]
    assert len(steps(requests, PROVIDER)) == 6


async def test_an_edit_costs_three_writes_one_that_asks_nothing_one_status_and_a_label_nothing(
    warm: System, namespace: str
) -> None:
    await creation(warm, namespace)
    (child,) = await warm.children(namespace, "shop")

    async def edited(**spec: Any) -> list[Request]:
        async def act() -> None:
            await warm.edit(CLAIM, namespace, "shop", {"spec": spec})
            await warm.until(CLAIM, namespace, "shop", is_ready)

        return await requests_during(warm, namespace, act)

    async def label() -> None:
        for kind, name in ((CLAIM, "shop"), (DATABASE, child["metadata"]["name"])):
            await warm.edit(kind, namespace, name, {"metadata": {"labels": {"team": "blue"}}})

    # The first edit of a child costs what a later one does.
    first, second = await edited(size="medium"), await edited(size="large")
    assert steps(first, COMPOSER) == steps(second, COMPOSER) == [_CHILD, CLAIM_STATUS, CLAIM_STATUS]
    intent_report = [_CHILD_STATUS, _CHILD_STATUS]
    assert steps(first, PROVIDER) == steps(second, PROVIDER) == intent_report
    assert secret_reads(second, COMPOSER) == []
    of_the_claim_alone = await edited(deletionProtection=True)
    assert (steps(of_the_claim_alone, COMPOSER), steps(of_the_claim_alone, PROVIDER)) == ([CLAIM_STATUS], [])
    labelled = await requests_during(warm, namespace, label)
    assert steps(labelled, COMPOSER) == steps(labelled, PROVIDER) == []
