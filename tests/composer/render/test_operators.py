"""What other operators' statuses mean; the tables here are the oracle, by the operators' own sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composer.render.operators.state import LONGEST_NAME, State
from composer.render.operators.table import KINDS, is_current, state_of
from runtime.objects import Object

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "operators.md"
_API = {
    "postgresql.cnpg.io": "v1",
    "acid.zalan.do": "v1",
    "rds.services.k8s.aws": "v1alpha1",
    "sql.cnrm.cloud.google.com": "v1beta1",
    "dbforpostgresql.azure.com": "v1api20250801",
}
READY, WORKING = State(ready=True, usable=True), State(ready=False, usable=True)


def _live(group_kind: str, status: Any, **spec: Any) -> Object:
    kind, _, group = group_kind.partition(".")
    return {
        "apiVersion": f"{group}/{_API[group]}",
        "kind": kind,
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u", "generation": 2},
        "spec": spec,
        "status": status,
    }


def _condition(type_: str, status: str, reason: str = "", message: str = "", **more: Any) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, **more}


def _conditions(*conditions: Object, **more: Any) -> Object:
    return {"conditions": list(conditions), **more}


CLUSTER, DATABASE = "Cluster.postgresql.cnpg.io", "Database.postgresql.cnpg.io"
POOLER, SCHEDULE = "Pooler.postgresql.cnpg.io", "ScheduledBackup.postgresql.cnpg.io"
ZALANDO = "postgresql.acid.zalan.do"
INSTANCE, AURORA, GROUP = (f"{kind}.rds.services.k8s.aws" for kind in ("DBInstance", "DBCluster", "DBParameterGroup"))
SQL_INSTANCE = "SQLInstance.sql.cnrm.cloud.google.com"
SERVER, RULE = (f"{kind}.dbforpostgresql.azure.com" for kind in ("FlexibleServer", "FlexibleServersFirewallRule"))

_NOT_UP = _condition("Ready", "False", "ClusterIsNotReady", "Cluster Is Not Ready")
_UP = _condition("Ready", "True", "ClusterIsReady", "Cluster is Ready")
_LOST = "Cluster is unrecoverable and needs manual intervention"
_USER = "Waiting for user action"
_SYNCED = _condition("ACK.ResourceSynced", "True")
_UNSYNCED = _condition("ACK.ResourceSynced", "False", "", "resource not synced yet")
_TERMINAL = _condition("ACK.Terminal", "True", "", "InvalidParameterValue: storage")
_DENIED = _condition("ACK.Recoverable", "True", "", "AccessDenied: rds:CreateDBInstance")

STATES: dict[str, tuple[str, Any, State]] = {
    "a Cluster is healthy": (CLUSTER, _conditions(_UP, phase="Cluster in healthy state"), READY),
    "a Cluster is set up": (
        CLUSTER, _conditions(_NOT_UP, phase="Setting up primary", phaseReason="Creating primary instance orders-1"),
        State(ready=False, usable=False, why="Setting up primary: Creating primary instance orders-1"),
    ),
    "a Cluster has its phase before its condition": (
        CLUSTER, {"phase": "Setting up primary"}, State(ready=False, usable=False, why="Setting up primary"),
    ),
    "a Cluster lost a replica": (
        CLUSTER, _conditions(
            _NOT_UP, phase="Creating a new replica", currentPrimary="orders-1", targetPrimary="orders-1",
            instancesStatus={"healthy": ["orders-1"], "failed": ["orders-2"]},
        ), State(ready=False, usable=True, why="Creating a new replica"),
    ),
    "a Cluster fails over": (
        CLUSTER, _conditions(
            _NOT_UP, phase="Failing over", currentPrimary="orders-1", targetPrimary="orders-2",
            instancesStatus={"healthy": ["orders-1", "orders-2"]},
        ), State(ready=False, usable=False, why="Failing over"),
    ),
    "a Cluster cannot be recovered": (
        CLUSTER, _conditions(_NOT_UP, phase=_LOST), State(ready=False, usable=False, failed=True, why=_LOST),
    ),
    "a Cluster cannot be recovered, and its condition is of before": (
        CLUSTER, _conditions(_UP, phase=_LOST), State(ready=False, usable=False, failed=True, why=_LOST),
    ),
    "a Cluster waits for a person with all instances up": (
        CLUSTER, _conditions(_UP, phase=_USER), State(ready=False, usable=True, failed=True, why=_USER),
    ),
    "a Database is applied": (DATABASE, {"applied": True, "observedGeneration": 2}, READY),
    "a Database could not be applied": (
        DATABASE, {"applied": False, "observedGeneration": 2, "message": 'role "app" does not exist'},
        State(ready=False, usable=True, failed=True, why='role "app" does not exist'),
    ),
    "a Database was edited": (
        DATABASE, {"applied": True, "observedGeneration": 1},
        State(ready=False, usable=True, why="its edit was not applied yet"),
    ),
    "a Pooler is active": (POOLER, {"phase": "active", "instances": 2}, READY),
    "a Pooler of a release without phases": (POOLER, {"instances": 2}, READY),
    "a Pooler without a pod": (POOLER, {"secrets": {}}, State(ready=False, usable=False)),
    "a Pooler failed": (
        POOLER, {"phase": "failed", "phaseReason": "no image"},
        State(ready=False, usable=False, failed=True, why="failed: no image"),
    ),
    "a ScheduledBackup was read": (SCHEDULE, {"lastCheckTime": "2026-11-01T00:00:00Z"}, READY),
    "a ScheduledBackup was not read yet": (SCHEDULE, {}, WORKING),
    "a postgresql runs": (ZALANDO, {"PostgresClusterStatus": "Running"}, READY),
    "a postgresql is made": (
        ZALANDO, {"PostgresClusterStatus": "Creating"}, State(ready=False, usable=False, why="Creating"),
    ),
    "a postgresql could not be made": (
        ZALANDO, {"PostgresClusterStatus": "CreateFailed"},
        State(ready=False, usable=False, failed=True, why="CreateFailed"),
    ),
    "a postgresql could not be updated": (
        ZALANDO, {"PostgresClusterStatus": "UpdateFailed"},
        State(ready=False, usable=True, failed=True, why="UpdateFailed"),
    ),
    "a DBInstance is available": (INSTANCE, _conditions(_SYNCED, dbInstanceStatus="available"), READY),
    "a DBInstance is made": (
        INSTANCE, _conditions(_UNSYNCED, dbInstanceStatus="creating"),
        State(ready=False, usable=False, why="resource not synced yet"),
    ),
    "a DBInstance is stopped in RDS": (
        INSTANCE, _conditions(_SYNCED, dbInstanceStatus="stopped"),
        State(ready=False, usable=False, why="it is stopped in RDS"),
    ),
    "a DBInstance whose edit RDS refuses": (
        INSTANCE, _conditions(_UNSYNCED, _TERMINAL, dbInstanceStatus="available"),
        State(ready=False, usable=True, failed=True, why="ACK.Terminal: InvalidParameterValue: storage"),
    ),
    "a DBInstance that the controller may not make": (
        INSTANCE, _conditions(_UNSYNCED, _DENIED),
        State(ready=False, usable=False, why="ACK.Recoverable: AccessDenied: rds:CreateDBInstance"),
    ),
    "a DBInstance with a status and no condition yet": (
        INSTANCE, {"ackResourceMetadata": {}}, State(ready=False, usable=False),
    ),
    "a DBCluster is changed": (
        AURORA, _conditions(_UNSYNCED, status="modifying"),
        State(ready=False, usable=True, why="resource not synced yet"),
    ),
    "a DBParameterGroup is synced": (GROUP, _conditions(_SYNCED), READY),
    "a SQLInstance is up to date": (
        SQL_INSTANCE, _conditions(_condition("Ready", "True", "UpToDate"), observedGeneration=2), READY,
    ),
    "a SQLInstance could not be updated": (
        SQL_INSTANCE,
        _conditions(_condition("Ready", "False", "UpdateFailed", "Error 400: tier"), observedGeneration=2),
        State(ready=False, usable=True, failed=True, why="UpdateFailed: Error 400: tier"),
    ),
    "a SQLInstance waits for another resource": (
        SQL_INSTANCE,
        _conditions(_condition("Ready", "False", "DependencyNotReady", "network"), observedGeneration=2),
        State(ready=False, usable=True, why="DependencyNotReady: network"),
    ),
    "a SQLInstance was edited": (
        SQL_INSTANCE, _conditions(_condition("Ready", "True", "UpToDate"), observedGeneration=1),
        State(ready=False, usable=True, why="its edit was not carried out yet"),
    ),
    "a FlexibleServer is ready": (
        SERVER, _conditions(_condition("Ready", "True", "Succeeded", observedGeneration=2), state="Ready"), READY,
    ),
    "a FlexibleServer is made": (
        SERVER, _conditions(_condition("Ready", "False", "Reconciling", "under way", severity="Info")),
        State(ready=False, usable=True, why="Info Reconciling: under way"),
    ),
    "a FlexibleServer is refused": (
        SERVER, _conditions(_condition("Ready", "False", "InvalidParameter", "sku", severity="Error"), state="Ready"),
        State(ready=False, usable=True, failed=True, why="Error InvalidParameter: sku"),
    ),
    "a FlexibleServer waits for its owner": (
        SERVER, _conditions(_condition("Ready", "False", "WaitingForOwner", "group", severity="Warning")),
        State(ready=False, usable=True, why="Warning WaitingForOwner: group"),
    ),
    "a FlexibleServer is stopped in Azure": (
        SERVER, _conditions(_condition("Ready", "True", "Succeeded"), state="Stopped"),
        State(ready=False, usable=False, failed=True, why="it is Stopped in Azure"),
    ),
    "a firewall rule was edited": (
        RULE, _conditions(_condition("Ready", "True", "Succeeded", observedGeneration=1)),
        State(ready=False, usable=True, why="its edit was not carried out yet"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("group_kind", "status", "expected"), STATES.values(), ids=STATES)
def test_state_of_an_operators_object(group_kind: str, status: Any, expected: State) -> None:
    live = _live(group_kind, status)

    assert state_of(live) == expected
    assert is_current(live, is_silent=False) is expected.ready


@pytest.mark.parametrize("group_kind", KINDS)
@pytest.mark.parametrize("status", [{}, {"conditions": "none"}, "Running", {"phase": 7, "instancesStatus": []}])
def test_an_odd_status_is_of_no_ready_object(group_kind: str, status: Any) -> None:
    assert not is_current(_live(group_kind, status), is_silent=False)


def test_an_object_that_is_deleted_is_not_ready() -> None:
    live = _live(ZALANDO, {"PostgresClusterStatus": "Running"})
    live["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"

    assert not is_current(live, is_silent=False)


def test_kinds_with_data_are_those_that_people_would_lose_data_with() -> None:
    without_data = {group_kind.partition(".")[0] for group_kind, kind in KINDS.items() if not kind.holds_data}

    assert without_data == {
        "Pooler", "ScheduledBackup", "DBParameterGroup", "DBClusterParameterGroup", "DBSubnetGroup",
        "FlexibleServersFirewallRule", "FlexibleServersConfiguration",
    }  # fmt: skip


def test_the_longest_names_are_those_of_the_operators_webhooks() -> None:
    shorter = {group_kind: kind.longest_name for group_kind, kind in KINDS.items() if kind.longest_name < LONGEST_NAME}

    assert shorter == {CLUSTER: 50, ZALANDO: 58}


@pytest.mark.parametrize("group_kind", KINDS)
def test_the_page_says_what_a_deletion_does_and_how_long_a_name_may_be(group_kind: str) -> None:
    kind = KINDS[group_kind]

    assert f"| `{group_kind}` | {kind.on_deletion} | {kind.longest_name} |\n" in _PAGE.read_text(encoding="utf-8")
