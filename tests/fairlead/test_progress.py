"""How `fairlead wait` judges an object: as wanted, on its way with the cloud's usual time, stalled, or gone."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.exits import Exit
from fairlead.progress import Goal, progress_of
from runtime.objects import Object


def _claim(*conditions: tuple[str, str, str, int], deleted: bool = False, words: str = "words") -> Object:
    meta: dict[str, Any] = {"name": "orders", "namespace": "shop", "generation": 2}
    reported = [
        {"type": type_, "status": status, "reason": reason, "message": words, "observedGeneration": generation}
        for type_, status, reason, generation in conditions
    ]
    about = {"apiVersion": "aws.fairlead.dev/v1alpha1"}
    database = about | {"kind": "RDSInstance", "name": "db", "stateful": True}
    inventory = [about | {"kind": "DBSubnetGroup", "name": "network"}, database]
    return {
        "apiVersion": "database.fairlead.dev/v1alpha1",
        "kind": "PostgreSQLInstance",
        "metadata": meta | ({"deletionTimestamp": "2026-11-28T12:00:00Z"} if deleted else {}),
        "status": {"conditions": reported, "inventory": inventory},
    }


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 1},
              "status": {"phase": ""}}  # fmt: skip
READY, UPDATING = ("Ready", "True", "Available", 2), ("Reconciling", "True", "Updating", 2)
STALLED = ("Stalled", "True", "DatabaseLost", 2)
MOVE = "next move: the platform team (the data; nothing is changed until then)"


@pytest.mark.parametrize(
    ("obj", "goal", "exit_code", "text"),
    [
        pytest.param(_claim(READY, UPDATING), "ready", Exit.DONE, "Ready", id="usable with the newest spec"),
        pytest.param(
            _claim(("Ready", "True", "Available", 1), UPDATING),
            "ready",
            None,
            "Updating: words (usually 6 min)",
            id="usable as it was before an edit, on AWS",
        ),
        pytest.param(
            _claim(("Ready", "True", "Available", 1)),
            "ready",
            None,
            "no controller has looked at its newest spec yet",
            id="an edit that nobody has seen",
        ),
        pytest.param(
            _claim(("Reconciling", "True", "Creating", 2), words="DBSubnetGroup network is being created"),
            "ready",
            None,
            "Creating: DBSubnetGroup network is being created",
            id="a setting takes no such time",
        ),
        pytest.param(_claim(READY, UPDATING), "synced", None, "Updating: words (usually 6 min)", id="not in sync"),
        pytest.param(
            _claim(READY, STALLED), "synced", Exit.STALLED, f"Stalled: DatabaseLost: words; {MOVE}", id="stalled"
        ),
        pytest.param(_claim(READY), "gone", None, "nobody has deleted it yet", id="not deleted"),
        pytest.param(_claim(READY, STALLED), "gone", None, "nobody has deleted it yet", id="not deleted, and stalled"),
        pytest.param(
            _claim(STALLED, deleted=True), "gone", Exit.STALLED, f"Stalled: DatabaseLost: words; {MOVE}", id="held"
        ),
        pytest.param(
            _claim(("Reconciling", "True", "Deleting", 2), deleted=True),
            "gone",
            None,
            "Deleting: words (usually 5 min)",
            id="being deleted",
        ),
        pytest.param(None, "gone", Exit.DONE, "gone", id="gone"),
        pytest.param(None, "ready", Exit.TOOL_FAILED, "is gone", id="gone, and not as wanted"),
        pytest.param(DEPLOYMENT, "ready", None, "InProgress", id="a kind without our conditions"),
    ],
)
def test_an_object_is_on_its_way_or_at_its_end(
    obj: Object | None, goal: Goal, exit_code: Exit | None, text: str
) -> None:
    progress = progress_of(obj, goal)

    assert (progress.exit, progress.text) == (exit_code, text)
