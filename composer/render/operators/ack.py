"""AWS Controllers for Kubernetes, RDS: `rds.services.k8s.aws/v1alpha1`. Pure.

Conditions: `apis/core/v1alpha1/conditions.go` of its runtime; states of instances and clusters: the User Guides of RDS
and Aurora, "Viewing DB instance status", "Viewing DB cluster status".
"""

from __future__ import annotations

from typing import Final

from composer.render.operators.state import OperatorKind, ReadState, State, text_at, words_of
from runtime.conditions import find, is_true
from runtime.objects import Object

_SYNCED, _TERMINAL, _RECOVERABLE = "ACK.ResourceSynced", "ACK.Terminal", "ACK.Recoverable"
_USABLE: Final = frozenset({
    "available", "backing-up", "configuring-associated-roles", "configuring-enhanced-monitoring",
    "configuring-iam-database-auth", "configuring-log-exports", "maintenance", "modifying",
    "resetting-master-credentials", "storage-config-upgrade", "storage-initialization", "storage-optimization",
})  # fmt: skip


def _by_conditions(live: Object) -> State:
    """Judge a kind without a state of its own: a group of parameters or subnets."""
    failed = is_true(live, _TERMINAL)
    if is_true(live, _SYNCED) and not failed:
        return State(ready=True, usable=True)
    return State(ready=False, usable=True, failed=failed, why=_words(live))


def _by_state(field: str) -> ReadState:
    """Return what judges a kind whose state in RDS is in a field of its status."""

    def read(live: Object) -> State:
        by_conditions, state = _by_conditions(live), text_at(live, field)
        if by_conditions.ready and state in _USABLE:
            return by_conditions
        words = by_conditions.why or (f"it is {state} in RDS" if state else "")
        return State(ready=False, usable=state in _USABLE, failed=by_conditions.failed, why=words)

    return read


def _words(live: Object) -> str:
    """Return what the controller says: of an error first, else of the work under way."""
    for type_ in (_TERMINAL, _RECOVERABLE):
        if is_true(live, type_):
            return f"{type_}: {words_of(live, type_)}"
    synced = find(live, _SYNCED)
    return words_of(live, _SYNCED) if synced is not None and synced["status"] != "True" else ""


_NO_DATA = "no data is in it"
_DATABASE = (
    "its controller deletes the database in RDS at once and takes no final snapshot, unless annotation"
    " services.k8s.aws/deletion-policy is retain"
)

KINDS: Final = (
    OperatorKind(
        "DBInstance.rds.services.k8s.aws", _by_state("dbInstanceStatus"), holds_data=True, on_deletion=_DATABASE
    ),
    OperatorKind("DBCluster.rds.services.k8s.aws", _by_state("status"), holds_data=True, on_deletion=_DATABASE),
    OperatorKind("DBParameterGroup.rds.services.k8s.aws", _by_conditions, holds_data=False, on_deletion=_NO_DATA),
    OperatorKind(
        "DBClusterParameterGroup.rds.services.k8s.aws", _by_conditions, holds_data=False, on_deletion=_NO_DATA
    ),
    OperatorKind("DBSubnetGroup.rds.services.k8s.aws", _by_conditions, holds_data=False, on_deletion=_NO_DATA),
)
"""The kinds of ACK's RDS controller that may be composed."""
