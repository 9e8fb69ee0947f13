"""The status of any object as cli-utils computes it, which is what Flux and its like go by. Pure.

A port of the rules of github.com/fluxcd/cli-utils `pkg/kstatus/status` (generic.go, core.go), for children of foreign
kinds; but no clock is read, so a Pod that cannot be scheduled never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from runtime.conditions import conditions_of, find, is_true
from runtime.objects import Object, deleting, generation_of, observed_generation_of, status_of

KStatus: TypeAlias = Literal["Current", "InProgress", "Failed", "Terminating"]


def kstatus(obj: Object) -> KStatus:
    """Return the kstatus of an object as it was read from the API server, whatever the shape of its status.

    Raises TypeError or AttributeError where an object of Kubernetes' own kinds breaks their schema.
    """
    if deleting(obj):
        return "Terminating"
    observed = observed_generation_of(obj)
    if observed is not None and observed != generation_of(obj):
        return "InProgress"
    generic = _by_conditions(obj)
    if generic is not None:
        return generic
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    legacy = _LEGACY.get((group, str(obj.get("kind", ""))))
    return legacy(obj) if legacy else _by_ready(obj)


def _by_conditions(obj: Object) -> KStatus | None:
    """Take the first abnormal-true condition in list order."""
    for condition in conditions_of(obj):
        match condition["type"], condition["status"]:
            case "Reconciling", "True":
                return "InProgress"
            case "Stalled", "True":
                return "Failed"
            case _:
                continue
    return None


def _by_ready(obj: Object) -> KStatus:
    ready = find(obj, "Ready")
    return "InProgress" if ready is not None and ready.get("status") in {"False", "Unknown"} else "Current"


def _deployment(obj: Object) -> KStatus:
    status, wanted = _counts(obj)
    progressing = find(obj, "Progressing") or {}
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "Failed"
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    available, ready = status.get("availableReplicas", 0), status.get("readyReplicas", 0)
    if total != wanted or updated < wanted or available < updated or ready < wanted:
        return "InProgress"
    # Without a deadline its controller writes no such condition.
    has_deadline = (obj.get("spec") or {}).get("progressDeadlineSeconds", _NO_DEADLINE) != _NO_DEADLINE
    is_rolled_out = (progressing.get("status"), progressing.get("reason")) == ("True", "NewReplicaSetAvailable")
    return "Current" if (is_rolled_out or not has_deadline) and is_true(obj, "Available") else "InProgress"


def _stateful_set(obj: Object) -> KStatus:
    status, wanted = _counts(obj)
    strategy = (obj.get("spec") or {}).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return "Current"
    if status.get("replicas", 0) != wanted or status.get("readyReplicas", 0) < wanted:
        return "InProgress"
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if partition is not None:
        return "Current" if status.get("updatedReplicas", 0) >= wanted - partition else "InProgress"
    if status.get("currentReplicas", 0) < wanted:
        return "InProgress"
    return "Current" if status.get("currentRevision") == status.get("updateRevision") else "InProgress"


def _daemon_set(obj: Object) -> KStatus:
    status = status_of(obj)
    # Its controller writes both at its first look.
    if observed_generation_of(obj) is None or "desiredNumberScheduled" not in status:
        return "InProgress"
    wanted = status["desiredNumberScheduled"]
    names = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    return "Current" if all(status.get(name, 0) >= wanted for name in names) else "InProgress"


def _replica_set(obj: Object) -> KStatus:
    status, wanted = _counts(obj)
    if is_true(obj, "ReplicaFailure"):
        return "InProgress"
    counts = [status.get(name, 0) for name in ("fullyLabeledReplicas", "availableReplicas", "readyReplicas")]
    return "Current" if min(counts) >= wanted and status.get("replicas", 0) <= wanted else "InProgress"


def _job(obj: Object) -> KStatus:
    for condition in conditions_of(obj):
        match condition["type"], condition["status"]:
            case "Complete", "True":
                return "Current"
            case "Failed", "True":
                return "Failed"
            case _:
                continue
    return "Current" if status_of(obj).get("startTime") else "InProgress"


def _pod(obj: Object) -> KStatus:
    phase = status_of(obj).get("phase")
    # It has ended, well or not.
    if phase in {"Succeeded", "Failed"}:
        return "Current"
    if phase != "Running":
        return "InProgress"
    if is_true(obj, "Ready"):
        return "Current"
    states = [container.get("state") or {} for container in status_of(obj).get("containerStatuses") or ()]
    reasons = [(state.get("waiting") or {}).get("reason") for state in states]
    return "Failed" if "CrashLoopBackOff" in reasons else "InProgress"


def _always(_obj: Object) -> KStatus:
    return "Current"


def _claim_of_volume(obj: Object) -> KStatus:
    return "Current" if status_of(obj).get("phase") == "Bound" else "InProgress"


def _service(obj: Object) -> KStatus:
    spec = obj.get("spec") or {}
    return "InProgress" if spec.get("type") == "LoadBalancer" and not spec.get("clusterIP") else "Current"


def _definition(obj: Object) -> KStatus:
    for condition in conditions_of(obj):
        match condition["type"], condition["status"]:
            case "NamesAccepted", "False":
                return "Failed"
            case "Established", "False" if condition.get("reason") != "Installing":
                return "Failed"
            case "Established", "True":
                return "Current"
            case _:
                continue
    return "InProgress"


def _counts(obj: Object) -> tuple[Object, int]:
    wanted = (obj.get("spec") or {}).get("replicas")
    return status_of(obj), 1 if wanted is None else int(wanted)


_NO_DEADLINE: Final = 2**31 - 1  # of a Deployment: deployment_util.go of Kubernetes
_Rule: TypeAlias = Callable[[Object], KStatus]

_LEGACY: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "ConfigMap"): _always,
    ("", "PersistentVolumeClaim"): _claim_of_volume,
    ("", "Pod"): _pod,
    ("", "Secret"): _always,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _always,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _always,
}
