"""What is measured, by bounded labels: the age of the queue, the time until Ready, objects written without an end."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from runtime import metrics
from runtime.connectivity import Connectivity
from runtime.objects import LEASES, Key, Object
from runtime.queue_state import Priority, QueueSettings, QueueState, Wait
from runtime.status import seconds_to_ready
from runtime.writes import LOOP_WRITES, PERIOD_SECONDS, WriteLoops
from tests.support.memory_kube import WIDGETS
from tests.support.metric_labels import BOUNDED


def test_a_metric_has_no_label_that_grows_with_the_objects() -> None:
    labels = {
        label for family in metrics.REGISTRY.collect() for sample in family.samples for label in sample.labels
    } | {label for metric in vars(metrics).values() for label in getattr(metric, "_labelnames", ())}

    assert labels <= BOUNDED


# What is counted by what a cloud or an API server answers has no value before the first answer.
BY_ANSWER = {"fairlead_cloud_api_calls", "rest_client_requests"}


def test_every_metric_is_there_before_anything_was_counted() -> None:
    """Run in a process of its own: no other test has counted anything there."""
    program = (
        "import composer.workers.pool, providers.accounts.rate_limit, providers.managed.drift;"
        "import apis.metrics; from runtime import metrics, queue, writes; from runtime.objects import CONFIG_MAPS;"
        "from runtime.store import Store; apis.metrics.BUILD_INFO.labels('p', '1');"
        "metrics.begin_events(); metrics.begin_controller('c');"
        "metrics.begin_resource('r'); metrics.MAX_WORKERS.labels('c'); metrics.MASTER_STATUS.labels('p');"
        "queue.WorkQueue('c'); apis.metrics.OBJECTS.add(Store(CONFIG_MAPS));"
        "writes.WRITES.wrote(CONFIG_MAPS, 'a'); metrics.REFLECTOR_STALE_SECONDS.labels('r');"
        "providers.managed.drift.AGE.labels('r');"
        "print(*(family.name for family in metrics.REGISTRY.collect() if not family.samples))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert set(ended.stdout.split()) == BY_ANSWER


def test_each_code_of_a_method_begins_at_0_before_it_is_answered() -> None:
    metrics.begin_requests("GET", "of-this-test")

    samples = [sample for family in metrics.REST_REQUESTS.collect() for sample in family.samples]
    counts = {s.labels["code"]: s.value for s in samples if s.labels["host"] == "of-this-test" and "total" in s.name}
    assert counts.keys() >= {"200", "409", "429", "500", "<error>"}
    assert set(counts.values()) == {0.0}


def test_the_age_of_the_queue_is_that_of_the_key_that_waits_longest() -> None:
    queue = QueueState(QueueSettings(), lambda: 0.0)
    ages = [queue.oldest(0.0)]
    queue.add(Key("a", "late"), Wait(50.0, Priority.URGENT), 0.0)
    ages.append(queue.oldest(40.0))
    queue.add(Key("a", "x"), Wait(10.0, Priority.RESYNC), 10.0)
    queue.add(Key("b", "y"), Wait(30.0, Priority.NORMAL), 30.0)
    ages.append(queue.oldest(40.0))
    queue.take(40.0)
    ages.append(queue.oldest(40.0))

    assert ages == [0.0, 0.0, 30.0, 30.0]


CREATED = "2026-11-21T12:00:00Z"
LATER = "2026-11-21T12:00:42Z"


def _ready(status: str, at: str) -> Object:
    return {"conditions": [{"type": "Ready", "status": status, "reason": "R", "lastTransitionTime": at}]}


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        pytest.param({}, _ready("True", LATER), 42.0, id="from its creation"),
        pytest.param(_ready("False", "2026-11-21T12:00:40Z"), _ready("True", LATER), 2.0, id="from when it was not"),
        pytest.param(_ready("True", CREATED), _ready("True", CREATED), None, id="not while it stays ready"),
        pytest.param({}, _ready("False", LATER), None, id="not while it is not ready"),
        pytest.param(_ready("False", "soon"), _ready("True", LATER), None, id="not from a time that is none"),
        pytest.param({}, {"phase": "x"}, None, id="not without conditions"),
    ],
)
def test_the_time_to_ready_counts(before: Object, after: Object, seconds: float | None) -> None:
    obj = {"metadata": {"name": "w", "creationTimestamp": CREATED}, "status": before}

    assert seconds_to_ready(obj, after) == seconds


def test_an_object_that_is_written_again_and_again_is_a_loop_until_it_rests() -> None:
    now = 0.0
    writes = WriteLoops(lambda: now)
    for _ in range(LOOP_WRITES + 1):
        writes.wrote(WIDGETS, Key("ns", "busy"))
        writes.wrote(LEASES, Key("ns", "leader"))
    for name in map(str, range(LOOP_WRITES + 1)):
        writes.wrote(WIDGETS, Key("ns", name))

    def at(later: float) -> dict[str, int]:
        nonlocal now
        now = later
        return writes.loops()

    counts = [at(later) for later in (1.0, PERIOD_SECONDS + 1, 2 * PERIOD_SECONDS + 1, 10 * PERIOD_SECONDS)]

    kind = WIDGETS.group_kind
    assert counts == [{kind: 1}, {kind: 1}, {kind: 0}, {kind: 0}]
    (family,) = writes.collect()
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"resource": kind}, 0)]


def test_the_api_server_is_away_from_the_first_request_that_nothing_answers() -> None:
    now = 0.0
    connectivity = Connectivity(lambda: now)
    ages = [connectivity.unreachable_for]
    connectivity.sent()
    now = 5.0
    connectivity.sent()
    ages.append(connectivity.unreachable_for)
    connectivity.answered()
    now = 50.0
    ages.append(connectivity.unreachable_for)

    assert ages == [timedelta(), timedelta(seconds=5), timedelta()]
