"""What is measured, by bounded labels: the age of the queue, the time until Ready, objects written without an end."""

from __future__ import annotations

import subprocess
import sys

from runtime.objects import LEASES, Key
from runtime.writes import LOOP_WRITES, PERIOD_SECONDS, WriteLoops
from tests.support.memory_kube import WIDGETS

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
