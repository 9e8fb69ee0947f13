"""AWS Controllers for Kubernetes, RDS: `rds.services.k8s.aws/v1alpha1`. Pure.

Conditions: `apis/core/v1alpha1/conditions.go` of its runtime; states of instances and clusters: the User Guides of RDS
and Aurora, "Viewing DB instance status", "Viewing DB cluster status".
"""

from __future__ import annotations

from typing import Final

from composer.render.operators import values
from composer.render.operators.fields import fields_of
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

_ANNOTATIONS: Final = ("services.k8s.aws/deletion-policy",)
_OF_BOTH: Final = (
    "engine engineVersion engineMode allocatedStorage iops storageType storageEncrypted dbSubnetGroupName"
    " vpcSecurityGroupIDs backupRetentionPeriod preferredBackupWindow preferredMaintenanceWindow deletionProtection"
    " autoMinorVersionUpgrade copyTagsToSnapshot port networkType enableCloudwatchLogsExports"
    " performanceInsightsEnabled performanceInsightsRetentionPeriod"
    " manageMasterUserPassword masterUserPassword.key tags"
)
_JUDGED_OF_BOTH: Final = {
    "masterUsername": values.login,
    "masterUserPassword.name": values.own_name,
    "masterUserPassword.namespace": values.own_namespace,
    "publiclyAccessible": values.off,
    "dbSubnetGroupRef.from.name": values.own_name,
}
_INSTANCE: Final = fields_of(
    f"{_OF_BOTH} dbInstanceClass dbName maxAllocatedStorage storageThroughput multiAZ"
    " availabilityZone dbParameterGroupName caCertificateIdentifier licenseModel allowMajorVersionUpgrade",
    {
        **_JUDGED_OF_BOTH,
        "dbInstanceIdentifier": values.own_name,
        "dbClusterIdentifier": values.own_name,
        "dbParameterGroupRef.from.name": values.own_name,
    },
    _ANNOTATIONS,
)
_CLUSTER: Final = fields_of(
    f"{_OF_BOTH} dbClusterInstanceClass databaseName availabilityZones dbClusterParameterGroupName"
    " serverlessV2ScalingConfiguration scalingConfiguration",
    {
        **_JUDGED_OF_BOTH,
        "dbClusterIdentifier": values.own_name,
        "dbClusterParameterGroupRef.from.name": values.own_name,
    },
    _ANNOTATIONS,
)
_PARAMETERS: Final = fields_of("description family parameterOverrides tags", {"name": values.own_name}, _ANNOTATIONS)
_SUBNETS: Final = fields_of("description subnetIDs tags", {"name": values.own_name}, _ANNOTATIONS)

KINDS: Final = (
    OperatorKind(
        "DBInstance.rds.services.k8s.aws",
        _by_state("dbInstanceStatus"),
        holds_data=True,
        on_deletion=_DATABASE,
        fields=_INSTANCE,
    ),
    OperatorKind(
        "DBCluster.rds.services.k8s.aws",
        _by_state("status"),
        holds_data=True,
        on_deletion=_DATABASE,
        fields=_CLUSTER,
    ),
    OperatorKind(
        "DBParameterGroup.rds.services.k8s.aws",
        _by_conditions,
        holds_data=False,
        on_deletion=_NO_DATA,
        fields=_PARAMETERS,
    ),
    OperatorKind(
        "DBClusterParameterGroup.rds.services.k8s.aws",
        _by_conditions,
        holds_data=False,
        on_deletion=_NO_DATA,
        fields=_PARAMETERS,
    ),
    OperatorKind(
        "DBSubnetGroup.rds.services.k8s.aws",
        _by_conditions,
        holds_data=False,
        on_deletion=_NO_DATA,
        fields=_SUBNETS,
    ),
)
"""The kinds of ACK's RDS controller that may be composed."""
