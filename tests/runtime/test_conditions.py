from datetime import UTC, datetime
from typing import Any

import pytest

from runtime.conditions import Condition, find, merge
from runtime.kstatus import KStatus, kstatus
from runtime.objects import Object

NOW = datetime(2026, 5, 4, 3, 2, 1, 999, tzinfo=UTC)
BEFORE = "2026-01-01T00:00:00Z"


def stored(type_: str, status: str, **more: Any) -> Object:
    return {"type": type_, "status": status, "lastTransitionTime": BEFORE, "reason": "R", "message": "m", **more}


@pytest.mark.parametrize(
    ("old", "new", "time"),
    [
        pytest.param(None, "True", "2026-05-04T03:02:01Z", id="a new condition begins now"),
        pytest.param("True", "True", BEFORE, id="the same status keeps its time"),
        pytest.param("True", "False", "2026-05-04T03:02:01Z", id="a flip moves the time"),
        pytest.param("Unknown", "False", "2026-05-04T03:02:01Z", id="from unknown is a flip too"),
    ],
)
def test_last_transition_time(old: str | None, new: Any, time: str) -> None:
    merged = merge([stored("Ready", old)] if old else [], [Condition("Ready", new, "Other", "other words", 7)], NOW)

    said = {"observedGeneration": 7, "reason": "Other", "message": "other words"}
    assert merged == [{"type": "Ready", "status": new, "lastTransitionTime": time, **said}]


def thing(kind: str = "Widget", group: str = "example.dev", /, **body: Any) -> Object:
    meta = {"name": "x", "generation": 2, **body.pop("metadata", {})}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": meta, **body}


def conditioned(*conditions: tuple[str, str], observed: int | None = 2) -> Object:
    status: Object = {"conditions": [{"type": type_, "status": status} for type_, status in conditions]}
    return status | ({} if observed is None else {"observedGeneration": observed})


DEPLOYED = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2, "observedGeneration": 2}
AVAILABLE = [{"type": "Available", "status": "True"}]
ROLLED = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
STATEFUL = {"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "a"}
DAEMON = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}


def deployment(*conditions: Object, **spec: Any) -> Object:
    return thing("Deployment", "apps", spec=spec, status={**DEPLOYED, "conditions": [*AVAILABLE, *conditions]})


def definition(status: str, reason: str) -> Object:
    established = {"type": "Established", "status": status, "reason": reason}
    return thing("CustomResourceDefinition", "apiextensions.k8s.io", status={"conditions": [established]})


def job(*conditions: str) -> Object:
    return thing("Job", "batch", status={"conditions": [{"type": type_, "status": "True"} for type_ in conditions]})


def pod(phase: str, *containers: Object) -> Object:
    return thing("Pod", "", status={"phase": phase, "containerStatuses": list(containers)})


READY, NOT_READY, STALLED = ("Ready", "True"), ("Ready", "False"), ("Stalled", "True")
GOING = thing(metadata={"deletionTimestamp": BEFORE}, status=conditioned(READY))
CRASHING = {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
ON_EVERY_NODE = {**DAEMON, "numberReady": 3}

KSTATUS_CASES: dict[str, tuple[Object, KStatus]] = {
    "no status at all is current": (thing(), "Current"),
    "a deletion wins over all": (GOING, "Terminating"),
    "the schema's -1 is in progress": (thing(status={"observedGeneration": -1}), "InProgress"),
    "an old generation is in progress": (thing(status=conditioned(READY, observed=1)), "InProgress"),
    "so is one that is not there yet": (thing(status=conditioned(READY, observed=3)), "InProgress"),
    "ready is current": (thing(status=conditioned(READY)), "Current"),
    "not ready is in progress": (thing(status=conditioned(NOT_READY)), "InProgress"),
    "unknown is in progress": (thing(status=conditioned(("Ready", "Unknown"))), "InProgress"),
    "stalled is failed": (thing(status=conditioned(NOT_READY, STALLED)), "Failed"),
    "stalled false is nothing": (thing(status=conditioned(("Stalled", "False"), READY)), "Current"),
    "the first abnormal one wins": (thing(status=conditioned(("Reconciling", "True"), STALLED)), "InProgress"),
    "reconciling wins over ready": (thing(status=conditioned(READY, ("Reconciling", "True"))), "InProgress"),
    "a rolled out deployment": (deployment(ROLLED, replicas=2), "Current"),
    "a deployment with a replica missing": (deployment(ROLLED, replicas=3), "InProgress"),
    "a deployment past its deadline": (deployment(LATE), "Failed"),
    "a deployment without a deadline": (deployment(replicas=2), "Current"),
    "a deployment with a deadline and no word of progress": (
        deployment(replicas=2, progressDeadlineSeconds=600),
        "InProgress",
    ),
    "a rolled out stateful set": (thing("StatefulSet", "apps", spec={"replicas": 2}, status=STATEFUL), "Current"),
    "a stateful set between revisions": (
        thing("StatefulSet", "apps", spec={"replicas": 2}, status={**STATEFUL, "updateRevision": "b"}),
        "InProgress",
    ),
    "a daemon set on every node": (
        thing("DaemonSet", "apps", status={**ON_EVERY_NODE, "observedGeneration": 2}),
        "Current",
    ),
    "a daemon set not looked at": (thing("DaemonSet", "apps", status=ON_EVERY_NODE), "InProgress"),
    "a daemon set not ready": (thing("DaemonSet", "apps", status=DAEMON), "InProgress"),
    "a completed job": (job("Complete"), "Current"),
    "a failed job": (job("Failed"), "Failed"),
    "a job not started": (job(), "InProgress"),
    "a suspended job": (job("Suspended"), "InProgress"),
    "a pod that failed has ended": (pod("Failed"), "Current"),
    "a pod that crashes again and again": (pod("Running", CRASHING), "Failed"),
    "a pending pod": (pod("Pending"), "InProgress"),
    "a finished pod": (pod("Succeeded"), "Current"),
    "a definition that is refused": (definition("False", "NotAccepted"), "Failed"),
    "an established definition": (definition("True", "InitialNamesAccepted"), "Current"),
    "a bound volume claim": (thing("PersistentVolumeClaim", "", status={"phase": "Bound"}), "Current"),
    "a plain service": (thing("Service", "", spec={"type": "ClusterIP"}), "Current"),
    "a load balancer without an address": (thing("Service", "", spec={"type": "LoadBalancer"}), "InProgress"),
    "a load balancer that its cloud has not answered": (
        thing("Service", "", spec={"type": "LoadBalancer", "clusterIP": "1.1.1.1"}),
        "Current",
    ),
    "a config map": (thing("ConfigMap", "", data={}), "Current"),
}


@pytest.mark.parametrize(("obj", "expected"), KSTATUS_CASES.values(), ids=KSTATUS_CASES)
def test_kstatus(obj: Object, expected: KStatus) -> None:
    assert kstatus(obj) == expected


# What other operators write, which no schema of ours holds.

ODD_STATUSES: dict[str, Any] = {
    "no map": "Running",
    "a list": ["Ready"],
    "conditions that are a text": {"conditions": "Ready"},
    "conditions that are a map": {"conditions": {"Ready": "True"}},
    "conditions that are texts": {"conditions": ["Ready"]},
    "conditions without a type": {"conditions": [{"status": "True"}, None, 3]},
    "a type that is no text": {"conditions": [{"type": ["Ready"], "status": "True"}]},
    "a status that is no text": {"conditions": [{"type": "Ready", "status": True}]},
    "a generation that is a text": {"observedGeneration": "one"},
    "a generation that is true": {"observedGeneration": True},
}


def test_a_condition_in_odd_words_is_read_in_words_that_the_api_takes() -> None:
    odd = {
        "type": "Ready",
        "status": "False",
        "reason": "not ready: yet",
        "message": "x" * 40_000,
        "observedGeneration": "7",
    }

    entry = find({"status": {"conditions": [odd, odd]}}, "Ready")

    assert entry is not None
    assert (entry["reason"], len(entry["message"])) == ("Unknown", 2_000)
    assert "observedGeneration" not in entry


def test_old_conditions_of_any_shape_are_written_anew() -> None:
    merged = merge(["x", {"status": "True"}], [Condition("Ready", "True", "R", "m", 1)], NOW)  # type: ignore[list-item]  # odd on purpose

    assert [condition["type"] for condition in merged] == ["Ready"]


def test_a_message_is_cut_and_holds_nothing_that_a_terminal_obeys() -> None:
    text = "a\x1b]0;title\x07b\n\x9b2Jc\u202edcba\u2066 é 日本" + "x" * 3_000

    message = Condition("Ready", "False", "R", text, 1).message

    assert message.startswith("a]0;titleb 2Jcdcba é 日本xxx")
    assert len(message) == 2_000
