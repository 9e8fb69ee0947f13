"""Our reading of a status is that of Flux's own library: for the fixtures, and for thousands of objects.

The library is `kstatus` of github.com/fluxcd/cli-utils, by which kustomize-controller waits.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from ruamel.yaml import YAML

from devcloud import gitops
from runtime.kstatus import kstatus
from tests.runtime.test_conditions import KSTATUS_CASES
from tests.support.api import JsonObject

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

_ARGOCD = Path(__file__).resolve().parents[2] / "deploy" / "argocd" / "resource_customizations"
_LIMIT_S = 180.0
_OBJECTS = 20_000
_HELD = "tests.example.org/held"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def program() -> Path:
    """Return the program around the library."""
    return await gitops.ensure_kstatus(print)


def _judged(program: Path, objects: Sequence[JsonObject]) -> list[str]:
    """Return what Flux's library says of objects. Raises AssertionError with its words when it refuses one."""
    text = "".join(json.dumps(obj) + "\n" for obj in objects)
    ended = subprocess.run([program], input=text, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line)["status"] for line in ended.stdout.splitlines()]


def _fixtures() -> dict[str, Any]:
    yaml = YAML(typ="safe", pure=True)
    # Times as texts, as the API server gives them.
    return {path.stem: yaml.load(path.read_text(encoding="utf-8")) for path in sorted(_ARGOCD.glob("*/_/testdata/*"))}


async def test_our_reading_of_a_status_is_that_of_flux(program: Path) -> None:
    objects, expected = zip(*KSTATUS_CASES.values(), strict=True)

    assert tuple(await asyncio.to_thread(_judged, program, objects)) == expected


async def test_so_it_is_for_thousands_of_statuses(program: Path) -> None:
    chosen = random.Random(7)  # noqa: S311 - the same objects in every run
    objects = [_any_object(chosen) for _ in range(_OBJECTS)]

    judged = await asyncio.to_thread(_judged, program, objects)

    wrong = [(obj, status) for obj, status in zip(objects, judged, strict=True) if kstatus(obj) != status]
    assert wrong == []
    assert {status: judged.count(status) > _OBJECTS // 100 for status in set(judged)} == dict.fromkeys(
        ("Current", "InProgress", "Failed", "Terminating"), True
    )


_COUNTS = (
    *("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas", "fullyLabeledReplicas"),
    *("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"),
)
_KINDS = {
    "v1": ("PersistentVolumeClaim", "Pod", "Service", "Secret", "ConfigMap"),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
    "policy/v1": ("PodDisruptionBudget",),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "database.fairlead.dev/v1alpha1": ("PostgreSQLInstance",),
}
_CONDITIONS = (
    *("Ready", "Reconciling", "Stalled", "Available", "Progressing", "ReplicaFailure", "Complete", "Failed"),
    *("Suspended", "Established", "NamesAccepted", "Synced"),
)
_REASONS = ("NewReplicaSetAvailable", "ProgressDeadlineExceeded", "Installing", "NotAccepted")


def _any_object(chosen: random.Random) -> JsonObject:
    """Return an object of a kind that kstatus knows, or of ours, with fields by which it goes."""

    def some(**values: Any) -> JsonObject:
        """Keep some of the values."""
        return {name: value for name, value in values.items() if chosen.random() < 0.7}

    api_version = chosen.choice(list(_KINDS))
    conditions = [
        {
            "type": name,
            "status": chosen.choice(("True", "True", "False", "Unknown")),
            "reason": chosen.choice(_REASONS),
            "message": "",
        }
        for name in chosen.sample(_CONDITIONS, chosen.randrange(4))
    ]
    waiting = {"name": "app", "state": {"waiting": {"reason": chosen.choice(("CrashLoopBackOff", "ErrImagePull"))}}}
    rolling = some(rollingUpdate=some(partition=chosen.randrange(3)), type=chosen.choice(("OnDelete", "RollingUpdate")))
    status = some(
        **{name: chosen.choice((1, 2, 2, 2)) for name in _COUNTS},
        observedGeneration=chosen.choice((1, 2, 2, 2, 2, 2)),
        phase=chosen.choice(("Pending", "Running", "Succeeded", "Failed", "Bound")),
        startTime="2026-11-24T10:00:00Z",
        currentRevision="a",
        updateRevision=chosen.choice("aab"),
        containerStatuses=[waiting],
        conditions=conditions,
    )
    if api_version == "v1" and status.get("phase") == "Bound":
        kind = "PersistentVolumeClaim"  # a Pod has no such phase, and the library says so
    else:
        kind = chosen.choice(_KINDS[api_version])
    spec = some(
        replicas=chosen.choice((1, 2, 2)),
        updateStrategy=rolling,
        progressDeadlineSeconds=chosen.choice((600, 2**31 - 1)),
        type=chosen.choice(("ClusterIP", "LoadBalancer")),
        clusterIP="10.0.0.1",
    )
    meta: JsonObject = {"name": "x", "namespace": "shop", "generation": 2}
    if chosen.random() < 0.05:
        meta["deletionTimestamp"] = "2026-11-24T10:00:00Z"
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec, "status": status}


async def test_the_fixtures_of_argo_cds_health_checks_mean_the_same_to_flux(program: Path) -> None:
    fixtures = _fixtures()

    judged = await asyncio.to_thread(_judged, program, list(fixtures.values()))

    assert len(fixtures) > 10
    assert dict(zip(fixtures, judged, strict=True)) == {name: kstatus(obj) for name, obj in fixtures.items()}
