"""Zalando's postgres-operator: `acid.zalan.do/v1`. Pure.

Phases and the length of names: `pkg/apis/acid.zalan.do/v1/const.go`; deletion: `pkg/controller/postgresql.go`.
"""

from __future__ import annotations

from typing import Final

from composer.render.operators import values
from composer.render.operators.fields import fields_of
from composer.render.operators.state import OperatorKind, State, text_at
from runtime.objects import Object

_USABLE: Final = frozenset({"Running", "Updating", "UpdateFailed", "SyncFailed"})
_FAILING: Final = frozenset({"CreateFailed", "UpdateFailed", "SyncFailed", "Invalid"})


def _postgresql(live: Object) -> State:
    """Judge a postgresql by its phase; it has no conditions."""
    phase = text_at(live, "PostgresClusterStatus")
    if phase == "Running":
        return State(ready=True, usable=True)
    return State(ready=False, usable=phase in _USABLE, failed=phase in _FAILING, why=phase)


_FIELDS: Final = fields_of(
    "teamId numberOfInstances postgresql.version volume.size volume.storageClass volume.iops volume.throughput"
    " volume.type resources allowedSourceRanges maintenanceWindows enableConnectionPooler enableReplicaConnectionPooler"
    " connectionPooler.numberOfInstances connectionPooler.mode connectionPooler.maxDBConnections"
    " connectionPooler.resources enableLogicalBackup logicalBackupSchedule patroni.ttl patroni.loop_wait"
    " patroni.retry_timeout patroni.maximum_lag_on_failover patroni.synchronous_mode patroni.synchronous_mode_strict"
    " patroni.synchronous_node_count patroni.failsafe_mode",
    {"postgresql.parameters.*": values.parameter, "users.*": values.user, "databases.*": values.owner},
)

KINDS: Final = (
    OperatorKind(
        "postgresql.acid.zalan.do",
        _postgresql,
        holds_data=True,
        on_deletion="its operator deletes pods, Secrets and volumes at once, whatever finalizer is on it",
        fields=_FIELDS,
        longest_name=58,
    ),
)
"""The kinds of Zalando's operator that may be composed."""
