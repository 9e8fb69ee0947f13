"""Metrics under the names of controller-runtime and client-go, so that existing dashboards work unchanged.

What those do not measure is named `controller_*`. One registry of our own; no object name is ever a label, so that the
series stay few however many objects there are. Names and help: controller-runtime, pkg/internal/controller/metrics,
pkg/internal/metrics; client-go, tools/metrics.
"""

from __future__ import annotations

import functools
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

# `_created` series double the count and no dashboard reads them.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it unannotated

REGISTRY: Final = CollectorRegistry()
# process_*: processor time, memory, open files and start, as every client library of Prometheus has them.
ProcessCollector(registry=REGISTRY)

_PATIENT_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

RECONCILES: Final = Counter(
    "controller_runtime_reconcile",
    "Total number of reconciliations per controller",
    ["controller", "result"],
    registry=REGISTRY,
)
RECONCILE_ERRORS: Final = Counter(
    "controller_runtime_reconcile_errors",
    "Total number of reconciliation errors per controller",
    ["controller"],
    registry=REGISTRY,
)
TERMINAL_ERRORS: Final = Counter(
    "controller_runtime_terminal_reconcile_errors",
    "Total number of terminal reconciliation errors per controller",
    ["controller"],
    registry=REGISTRY,
)
INTERNAL_ERRORS: Final = Counter(
    "controller_runtime_reconcile_panics",
    "Total number of reconciliation panics per controller",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_SECONDS: Final = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Length of time per reconciliation per controller",
    ["controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
ACTIVE_WORKERS: Final = Gauge(
    "controller_runtime_active_workers",
    "Number of currently used workers per controller",
    ["controller"],
    registry=REGISTRY,
)
MAX_WORKERS: Final = Gauge(
    "controller_runtime_max_concurrent_reconciles",
    "Maximum number of concurrent reconciles per controller",
    ["controller"],
    registry=REGISTRY,
)

QUEUE_DEPTH: Final = Gauge("workqueue_depth", "Current depth of workqueue", ["name", "controller"], registry=REGISTRY)
QUEUE_ADDS: Final = Counter(
    "workqueue_adds", "Total number of adds handled by workqueue", ["name", "controller"], registry=REGISTRY
)
QUEUE_SECONDS: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "How long in seconds an item stays in workqueue before being requested",
    ["name", "controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
WORK_SECONDS: Final = Histogram(
    "workqueue_work_duration_seconds",
    "How long in seconds processing an item from workqueue takes",
    ["name", "controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
QUEUE_RETRIES: Final = Counter(
    "workqueue_retries", "Total number of retries handled by workqueue", ["name", "controller"], registry=REGISTRY
)
UNFINISHED_SECONDS: Final = Gauge(
    "workqueue_unfinished_work_seconds",
    "How many seconds of work is in progress, summed over all workers",
    ["name", "controller"],
    registry=REGISTRY,
)
LONGEST_SECONDS: Final = Gauge(
    "workqueue_longest_running_processor_seconds",
    "How many seconds has the longest running processor for workqueue been running",
    ["name", "controller"],
    registry=REGISTRY,
)

OLDEST_SECONDS: Final = Gauge(
    "controller_queue_oldest_seconds",
    "How long in seconds the oldest item that is due has waited in workqueue",
    ["controller"],
    registry=REGISTRY,
)
TIME_TO_READY: Final = Histogram(
    "controller_time_to_ready_seconds",
    "Seconds from the creation of an object, or from when it was last Ready, until it is Ready",
    ["resource"],
    buckets=_PATIENT_SECONDS,
    registry=REGISTRY,
)

REST_REQUESTS: Final = Counter(
    "rest_client_requests",
    "Number of HTTP requests, partitioned by status code, method, and host",
    ["code", "method", "host"],
    registry=REGISTRY,
)
MASTER_STATUS: Final = Gauge(
    "leader_election_master_status",
    "Whether this process is master of the lease: 0 indicates backup, 1 indicates master",
    ["name"],
    registry=REGISTRY,
)

EVENTS_DROPPED: Final = Counter(
    "event_recorder_dropped", "Total number of events that were not sent, by cause", ["cause"], registry=REGISTRY
)
REFLECTOR_LISTS: Final = Counter(
    "reflector_lists", "Total number of API lists begun by the reflectors", ["resource"], registry=REGISTRY
)
REFLECTOR_WATCHES: Final = Counter(
    "reflector_watches", "Total number of API watches begun by the reflectors", ["resource"], registry=REGISTRY
)
REFLECTOR_STALE_SECONDS: Final = Gauge(
    "reflector_stale_seconds",
    "How many seconds since the API server last answered on the watch",
    ["resource"],
    registry=REGISTRY,
)

RESULTS: Final = ("success", "requeue", "requeue_after", "error")
_DROP_CAUSES: Final = ("repeated", "queue full", "refused")


# What the API server answers where something is wrong, and where nothing is.
_ANSWERS: Final = ("200", "201", "400", "403", "404", "409", "410", "422", "429", "500", "503", "504", "<error>")


@functools.cache
def begin_requests(method: str, host: str) -> None:
    """Let the requests of a method begin at 0 for each code, before the first of them is answered."""
    for code in _ANSWERS:
        REST_REQUESTS.labels(code, method, host)


def begin_events() -> None:
    """Let what is counted of events that were not sent begin at 0."""
    for cause in _DROP_CAUSES:
        EVENTS_DROPPED.labels(cause)


def begin_controller(name: str) -> None:
    """Let what a controller counts begin at 0: a rate misses the first increase of a series that begins with it."""
    for result in RESULTS:
        RECONCILES.labels(name, result)
    for of_controller in (
        RECONCILE_ERRORS,
        TERMINAL_ERRORS,
        INTERNAL_ERRORS,
        RECONCILE_SECONDS,
        ACTIVE_WORKERS,
        OLDEST_SECONDS,
    ):
        of_controller.labels(name)
    for of_queue in (QUEUE_DEPTH, QUEUE_RETRIES, UNFINISHED_SECONDS, LONGEST_SECONDS):
        of_queue.labels(name, name)


def begin_resource(resource: str) -> None:
    """Let what is counted of a watched resource begin at 0."""
    REFLECTOR_LISTS.labels(resource)
    REFLECTOR_WATCHES.labels(resource)


def exposition() -> bytes:
    """Return all metrics in the Prometheus text format 0.0.4."""
    return generate_latest(REGISTRY)
