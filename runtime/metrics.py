"""Metrics under the names of controller-runtime and client-go, so that existing dashboards work unchanged.

What those do not measure is named `controller_*`. One registry of our own; no object name is ever a label, so that the
series stay few however many objects there are. Names: kubebuilder book, "Default Exported Metrics".
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

# `_created` series double the count and no dashboard reads them.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it unannotated

REGISTRY: Final = CollectorRegistry()

_PATIENT_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

RECONCILES: Final = Counter(
    "controller_runtime_reconcile",
    "Reconciliations per controller and result",
    ["controller", "result"],
    registry=REGISTRY,
)
RECONCILE_ERRORS: Final = Counter(
    "controller_runtime_reconcile_errors",
    "Reconciliations that ended in an error",
    ["controller"],
    registry=REGISTRY,
)
TERMINAL_ERRORS: Final = Counter(
    "controller_runtime_terminal_reconcile_errors",
    "Reconciliations that ended in an error which only a person can solve",
    ["controller"],
    registry=REGISTRY,
)
INTERNAL_ERRORS: Final = Counter(
    "controller_runtime_reconcile_panics",
    "Reconciliations that ended in a defect of the controller",
    ["controller"],
    registry=REGISTRY,
)
RECONCILE_SECONDS: Final = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Length of time per reconciliation",
    ["controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
ACTIVE_WORKERS: Final = Gauge(
    "controller_runtime_active_workers", "Workers in a reconciliation", ["controller"], registry=REGISTRY
)
MAX_WORKERS: Final = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Workers at most", ["controller"], registry=REGISTRY
)

QUEUE_DEPTH: Final = Gauge("workqueue_depth", "Keys ready and waiting", ["name", "controller"], registry=REGISTRY)
QUEUE_ADDS: Final = Counter("workqueue_adds", "Adds to the queue", ["name", "controller"], registry=REGISTRY)
QUEUE_SECONDS: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "Seconds a ready key waited before a worker took it",
    ["name", "controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
WORK_SECONDS: Final = Histogram(
    "workqueue_work_duration_seconds",
    "Seconds a worker spent on a key",
    ["name", "controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
QUEUE_RETRIES: Final = Counter("workqueue_retries", "Backed-off adds", ["name", "controller"], registry=REGISTRY)
UNFINISHED_SECONDS: Final = Gauge(
    "workqueue_unfinished_work_seconds",
    "Seconds of work in flight, summed over workers",
    ["name", "controller"],
    registry=REGISTRY,
)
LONGEST_SECONDS: Final = Gauge(
    "workqueue_longest_running_processor_seconds",
    "Seconds the longest pass in flight has run",
    ["name", "controller"],
    registry=REGISTRY,
)

OLDEST_SECONDS: Final = Gauge(
    "controller_queue_oldest_seconds",
    "Seconds the longest waiting of the keys that are due has waited",
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
    "rest_client_requests", "Requests to the API server", ["code", "method", "host"], registry=REGISTRY
)
MASTER_STATUS: Final = Gauge(
    "leader_election_master_status", "1 while this process leads, else 0", ["name"], registry=REGISTRY
)

EVENTS_DROPPED: Final = Counter(
    "event_recorder_dropped", "Events that were not sent, by cause", ["cause"], registry=REGISTRY
)
REFLECTOR_LISTS: Final = Counter("reflector_lists", "Lists begun", ["resource"], registry=REGISTRY)
REFLECTOR_WATCHES: Final = Counter("reflector_watches", "Watches begun", ["resource"], registry=REGISTRY)
REFLECTOR_STALE_SECONDS: Final = Gauge(
    "reflector_stale_seconds", "Seconds since the API server last spoke on this watch", ["resource"], registry=REGISTRY
)


def exposition() -> bytes:
    """Return all metrics in the Prometheus text format 0.0.4."""
    return generate_latest(REGISTRY)
