"""CloudNativePG: `postgresql.cnpg.io/v1`. Pure.

Phases and conditions: `api/v1/cluster_types.go`; names of 50 characters: `internal/webhook/v1/cluster_webhook.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from composer.render.operators import values
from composer.render.operators.fields import fields_of
from composer.render.operators.state import OperatorKind, State, number_at, text_at, words_of
from runtime.conditions import is_true
from runtime.objects import Object, generation_of, observed_generation_of, status_of

_LOST: Final = frozenset({
    "Cluster is in an unrecoverable state, needs manual intervention",
    "Cluster is unrecoverable and needs manual intervention",
})  # fmt: skip
"""The phases of what cannot be recovered, whatever the condition says; earlier releases have the first one."""
_FAILING: Final = _LOST | frozenset({
    "Cluster cannot proceed to reconciliation due to an unknown plugin being required",
    "Cluster cannot proceed to reconciliation due to an error while interacting with plugins",
    "Cluster has incomplete or invalid image catalog",
    "Cluster cannot execute instance online upgrade due to missing architecture binary",
    "Unable to create required cluster objects",
    "Waiting for user action",
})  # fmt: skip
"""The phases that do not end by themselves."""


def _cluster(live: Object) -> State:
    """Judge a Cluster: it can be used while its primary is healthy, with fewer replicas than it should have, too."""
    phase = text_at(live, "phase")
    failed, is_up = phase in _FAILING, is_true(live, "Ready")
    if is_up and not failed:
        return State(ready=True, usable=True)
    words = ": ".join(filter(None, (phase, text_at(live, "phaseReason")))) or words_of(live, "Ready")
    is_usable = phase not in _LOST and (is_up or _has_primary(live))
    return State(ready=False, usable=is_usable, failed=failed, why=words)


def _has_primary(live: Object) -> bool:
    by_state = status_of(live).get("instancesStatus")
    healthy = by_state.get("healthy") if isinstance(by_state, Mapping) else None
    primary = text_at(live, "currentPrimary")
    is_stable = bool(primary) and text_at(live, "targetPrimary") in ("", primary)
    return is_stable and isinstance(healthy, list) and primary in healthy


def _database(live: Object) -> State:
    """Judge a Database; one that could not be brought to its spec is still there."""
    applied = status_of(live).get("applied")
    observed = observed_generation_of(live)
    if observed is not None and observed != generation_of(live):
        return State(ready=False, usable=applied is not None, why="its edit was not applied yet")
    if applied is True:
        return State(ready=True, usable=True)
    return State(ready=False, usable=applied is False, failed=applied is False, why=text_at(live, "message"))


def _pooler(live: Object) -> State:
    """Judge a Pooler; releases without a phase say how many pods there are."""
    phase = text_at(live, "phase")
    if not phase:
        has_pods = number_at(live, "instances") > 0
        return State(ready=has_pods, usable=has_pods)
    if phase == "active":
        return State(ready=True, usable=True)
    words = ": ".join(filter(None, (phase, text_at(live, "phaseReason") or text_at(live, "error"))))
    return State(ready=False, usable=False, failed=phase in ("failed", "paused"), why=words)


def _scheduled_backup(live: Object) -> State:
    """Judge a ScheduledBackup: the operator has read its schedule, unless it is suspended."""
    spec = live.get("spec")
    is_suspended = isinstance(spec, Mapping) and spec.get("suspend") is True
    is_read = bool(text_at(live, "lastCheckTime") or text_at(live, "nextScheduleTime"))
    return State(ready=is_suspended or is_read, usable=True)


_CLUSTER: Final = fields_of(
    "description instances storage.size storage.storageClass storage.resizeInUseVolumes walStorage.size"
    " walStorage.storageClass walStorage.resizeInUseVolumes resources affinity.enablePodAntiAffinity"
    " affinity.topologyKey affinity.podAntiAffinityType affinity.nodeSelector minSyncReplicas maxSyncReplicas"
    " postgresql.synchronous bootstrap.initdb.database bootstrap.initdb.dataChecksums bootstrap.initdb.encoding"
    " bootstrap.initdb.locale bootstrap.initdb.localeCollate bootstrap.initdb.localeCType"
    " bootstrap.initdb.localeProvider bootstrap.initdb.icuLocale bootstrap.initdb.builtinLocale"
    " bootstrap.initdb.walSegmentSize backup.volumeSnapshot backup.retentionPolicy backup.target enablePDB logLevel"
    " maxStopDelay maxSwitchoverDelay startDelay stopDelay smartShutdownTimeout switchoverDelay failoverDelay"
    " primaryUpdateMethod primaryUpdateStrategy monitoring.enablePodMonitor nodeMaintenanceWindow",
    {
        "imageName": values.beginning("ghcr.io/cloudnative-pg/postgresql:", "ghcr.io/cloudnative-pg/postgresql@"),
        "enableSuperuserAccess": values.off,
        "bootstrap.initdb.owner": values.login,
        "bootstrap.initdb.postInitApplicationSQL": values.creation,
        "postgresql.parameters.*": values.parameter,
    },
)
_DATABASE: Final = fields_of(
    "name ensure databaseReclaimPolicy encoding locale localeCollate localeCType localeProvider icuLocale builtinLocale"
    " template allowConnections connectionLimit schemas.name schemas.ensure extensions.ensure extensions.version"
    " extensions.schema",
    {
        "cluster.name": values.own_name,
        "owner": values.login,
        "schemas.owner": values.login,
        "extensions.name": values.extension,
    },
)
_POOLER: Final = fields_of(
    "instances type deploymentStrategy pgbouncer.poolMode pgbouncer.paused monitoring.enablePodMonitor",
    {"cluster.name": values.own_name, "pgbouncer.parameters.*": values.pooler_parameter},
)
_SCHEDULED_BACKUP: Final = fields_of(
    "schedule method backupOwnerReference immediate suspend target online onlineConfiguration",
    {"cluster.name": values.own_name},
)

KINDS: Final = (
    OperatorKind(
        "Cluster.postgresql.cnpg.io",
        _cluster,
        holds_data=True,
        on_deletion="its pods and volumes are deleted with it, by the garbage collector",
        fields=_CLUSTER,
        longest_name=50,
    ),
    OperatorKind(
        "Database.postgresql.cnpg.io",
        _database,
        holds_data=True,
        on_deletion="its database stays, unless spec.databaseReclaimPolicy is delete: then it is dropped at once",
        fields=_DATABASE,
    ),
    OperatorKind(
        "Pooler.postgresql.cnpg.io", _pooler, holds_data=False, on_deletion="no data is in it", fields=_POOLER
    ),
    OperatorKind(
        "ScheduledBackup.postgresql.cnpg.io",
        _scheduled_backup,
        holds_data=False,
        on_deletion="no further backup is made; those that were made stay in their store",
        fields=_SCHEDULED_BACKUP,
    ),
)
"""The kinds of CloudNativePG that may be composed."""
