from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from runtime.conditions import Condition, current, find, is_true, merge
from runtime.kstatus import KStatus, kstatus
from runtime.objects import Object

NOW = datetime(2026, 5, 4, 3, 2, 1, 999, tzinfo=UTC)
BEFORE = "2026-01-01T00:00:00Z"


def stored(type_: str, status: str, **more: Any) -> Object:
    return {"type": type_, "status": status, "lastTransitionTime": BEFORE, "reason": "R", "message": "m", **more}


@dataclass(frozen=True)
class TransitionCase:
    old: str | None
    new: str
    time: str


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(TransitionCase(None, "True", "2026-05-04T03:02:01Z"), id="a new condition begins now"),
        pytest.param(TransitionCase("True", "True", BEFORE), id="the same status keeps its time"),
        pytest.param(TransitionCase("True", "False", "2026-05-04T03:02:01Z"), id="a flip moves the time"),
        pytest.param(TransitionCase("Unknown", "False", "2026-05-04T03:02:01Z"), id="from unknown is a flip too"),
    ],
)
def test_last_transition_time(case: TransitionCase) -> None:
    old = [stored("Ready", case.old)] if case.old else []
    condition = Condition("Ready", case.new, "Other", "other words", 7)  # type: ignore[arg-type]  # from a table
    merged = merge(old, [condition], NOW)

    assert merged == [
        {
            "type": "Ready",
            "status": case.new,
            "observedGeneration": 7,
            "lastTransitionTime": case.time,
            "reason": "Other",
            "message": "other words",
        }
    ]


def test_the_order_is_stable_and_absent_types_vanish() -> None:
    new = [Condition(name, "True", "R", "m", 1) for name in ("Zeta", "Stalled", "Alpha", "Synced", "Ready")]
    merged = merge([stored("Reconciling", "True"), stored("Gone", "True")], new, NOW)

    assert [condition["type"] for condition in merged] == ["Ready", "Synced", "Stalled", "Alpha", "Zeta"]


def test_merging_again_changes_nothing() -> None:
    new = [Condition("Ready", "True", "R", "m", 1), Condition("Synced", "False", "R", "m", 1)]
    once = merge([], new, NOW)

    assert merge(once, new, datetime(2030, 1, 1, tzinfo=UTC)) == once


def test_reading_conditions() -> None:
    obj = {"metadata": {"generation": 3}, "status": {"conditions": [stored("Ready", "True", observedGeneration=2)]}}

    assert is_true(obj, "Ready")
    assert not current(obj, "Ready")
    assert find(obj, "Synced") is None
    assert not is_true({"metadata": {}}, "Ready")


@dataclass(frozen=True)
class KstatusCase:
    obj: Object
    expected: KStatus


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


KSTATUS_CASES = [
    pytest.param(KstatusCase(thing(), "Current"), id="no status at all is current"),
    pytest.param(
        KstatusCase(
            thing(metadata={"deletionTimestamp": BEFORE}, status=conditioned(("Ready", "True"))), "Terminating"
        ),
        id="a deletion wins over all",
    ),
    pytest.param(
        KstatusCase(thing(status={"observedGeneration": -1}), "InProgress"), id="the schema's -1 is in progress"
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "True"), observed=1)), "InProgress"),
        id="an old generation is in progress",
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "True"), observed=3)), "InProgress"),
        id="so is one that is not there yet",
    ),
    pytest.param(KstatusCase(thing(status=conditioned(("Ready", "True"))), "Current"), id="ready is current"),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "False"))), "InProgress"), id="not ready is in progress"
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "Unknown"))), "InProgress"), id="unknown is in progress"
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "False"), ("Stalled", "True"))), "Failed"),
        id="stalled is failed",
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Stalled", "False"), ("Ready", "True"))), "Current"),
        id="stalled false is nothing",
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Reconciling", "True"), ("Stalled", "True"))), "InProgress"),
        id="the first abnormal condition in the list wins",
    ),
    pytest.param(
        KstatusCase(thing(status=conditioned(("Ready", "True"), ("Reconciling", "True"))), "InProgress"),
        id="reconciling wins over ready",
    ),
    pytest.param(
        KstatusCase(
            thing("Deployment", "apps", spec={"replicas": 2}, status={**DEPLOYED, "conditions": [*AVAILABLE, ROLLED]}),
            "Current",
        ),
        id="a rolled out deployment",
    ),
    pytest.param(
        KstatusCase(
            thing("Deployment", "apps", spec={"replicas": 3}, status={**DEPLOYED, "conditions": [*AVAILABLE, ROLLED]}),
            "InProgress",
        ),
        id="a deployment with a replica missing",
    ),
    pytest.param(
        KstatusCase(thing("Deployment", "apps", spec={}, status={"conditions": [LATE]}), "Failed"),
        id="a deployment past its deadline",
    ),
    pytest.param(
        KstatusCase(thing("StatefulSet", "apps", spec={"replicas": 2}, status=STATEFUL), "Current"),
        id="a rolled out stateful set",
    ),
    pytest.param(
        KstatusCase(
            thing("StatefulSet", "apps", spec={"replicas": 2}, status={**STATEFUL, "updateRevision": "b"}),
            "InProgress",
        ),
        id="a stateful set between revisions",
    ),
    pytest.param(
        KstatusCase(
            thing("DaemonSet", "apps", status={**DAEMON, "numberReady": 3, "observedGeneration": 2}), "Current"
        ),
        id="a daemon set on every node",
    ),
    pytest.param(
        KstatusCase(thing("DaemonSet", "apps", status={**DAEMON, "numberReady": 3}), "InProgress"),
        id="a daemon set that its controller has not looked at",
    ),
    pytest.param(KstatusCase(thing("DaemonSet", "apps", status=DAEMON), "InProgress"), id="a daemon set not ready"),
    pytest.param(
        KstatusCase(thing("Job", "batch", status={"conditions": [{"type": "Complete", "status": "True"}]}), "Current"),
        id="a completed job",
    ),
    pytest.param(
        KstatusCase(thing("Job", "batch", status={"conditions": [{"type": "Failed", "status": "True"}]}), "Failed"),
        id="a failed job",
    ),
    pytest.param(KstatusCase(thing("Job", "batch", status={}), "InProgress"), id="a job not started"),
    pytest.param(
        KstatusCase(
            thing("Job", "batch", status={"conditions": [{"type": "Suspended", "status": "True"}]}), "InProgress"
        ),
        id="a suspended job",
    ),
    pytest.param(
        KstatusCase(thing("Pod", "", status={"phase": "Failed"}), "Current"), id="a pod that failed has ended"
    ),
    pytest.param(
        KstatusCase(
            thing(
                "Pod",
                "",
                status={
                    "phase": "Running",
                    "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            ),
            "Failed",
        ),
        id="a pod that crashes again and again",
    ),
    pytest.param(
        KstatusCase(
            thing("Deployment", "apps", spec={"replicas": 2}, status={**DEPLOYED, "conditions": AVAILABLE}), "Current"
        ),
        id="a deployment without a deadline",
    ),
    pytest.param(
        KstatusCase(
            thing(
                "Deployment",
                "apps",
                spec={"replicas": 2, "progressDeadlineSeconds": 600},
                status={**DEPLOYED, "conditions": AVAILABLE},
            ),
            "InProgress",
        ),
        id="a deployment with a deadline and no word of progress",
    ),
    pytest.param(
        KstatusCase(
            thing(
                "CustomResourceDefinition",
                "apiextensions.k8s.io",
                status={"conditions": [{"type": "Established", "status": "False", "reason": "NotAccepted"}]},
            ),
            "Failed",
        ),
        id="a definition that is refused",
    ),
    pytest.param(KstatusCase(thing("Pod", "", status={"phase": "Pending"}), "InProgress"), id="a pending pod"),
    pytest.param(KstatusCase(thing("Pod", "", status={"phase": "Succeeded"}), "Current"), id="a finished pod"),
    pytest.param(
        KstatusCase(thing("PersistentVolumeClaim", "", status={"phase": "Bound"}), "Current"),
        id="a bound volume claim",
    ),
    pytest.param(KstatusCase(thing("Service", "", spec={"type": "ClusterIP"}), "Current"), id="a plain service"),
    pytest.param(
        KstatusCase(thing("Service", "", spec={"type": "LoadBalancer"}), "InProgress"),
        id="a load balancer without a cluster's address",
    ),
    pytest.param(
        KstatusCase(thing("Service", "", spec={"type": "LoadBalancer", "clusterIP": "1.1.1.1"}), "Current"),
        id="a load balancer that its cloud has not answered",
    ),
    pytest.param(KstatusCase(thing("ConfigMap", "", data={}), "Current"), id="a config map"),
    pytest.param(
        KstatusCase(
            thing("CustomResourceDefinition", "apiextensions.k8s.io", status=conditioned(("Established", "True"))),
            "Current",
        ),
        id="an established definition",
    ),
]


@pytest.mark.parametrize("case", KSTATUS_CASES)
def test_kstatus(case: KstatusCase) -> None:
    assert kstatus(case.obj) == case.expected


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


@pytest.mark.parametrize("status", ODD_STATUSES.values(), ids=ODD_STATUSES)
def test_an_odd_status_holds_no_condition_and_is_current(status: Any) -> None:
    obj = {"metadata": {"generation": 1}, "status": status}

    assert find(obj, "Ready") is None
    assert not is_true(obj, "Ready")
    assert kstatus(obj) == "Current"


def test_a_condition_without_reason_and_message_has_both() -> None:
    bare = {"type": "Ready", "status": "False"}

    assert find({"status": {"conditions": [bare]}}, "Ready") == {**bare, "reason": "Unknown", "message": ""}


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
