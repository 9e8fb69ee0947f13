"""Config Connector: `sql.cnrm.cloud.google.com/v1beta1`. Pure.

Reasons of its condition Ready: `pkg/k8s/constants.go`. Ready says whether the spec was carried out, and nothing of the
database itself.
"""

from __future__ import annotations

from typing import Final

from composer.render.operators import values
from composer.render.operators.fields import fields_of
from composer.render.operators.state import OperatorKind, State, words_of
from runtime.conditions import find
from runtime.objects import Object, generation_of, observed_generation_of

_FAILING: Final = frozenset({
    "DeleteFailed", "DependencyInvalid", "ManagementConflict", "PostActuationTransformFailed",
    "PreActuationTransformFailed", "Unmanaged", "UpdateFailed",
})  # fmt: skip
"""The reasons that do not end by themselves; one that tries again all the same goes on when it succeeds."""
_GOING: Final = frozenset({"Deleted", "Deleting"})


def _by_ready(live: Object) -> State:
    """Judge any of its kinds."""
    ready = find(live, "Ready")
    if ready is None:
        return State(ready=False, usable=False)
    reason, observed = str(ready["reason"]), observed_generation_of(live)
    is_usable = reason not in _GOING
    if observed is not None and observed != generation_of(live):
        return State(ready=False, usable=is_usable, why="its edit was not carried out yet")
    if ready["status"] == "True":
        return State(ready=True, usable=True)
    return State(ready=False, usable=is_usable, failed=reason in _FAILING, why=words_of(live, "Ready"))


_DELETES = (
    "its controller deletes the {thing} at once, unless annotation cnrm.cloud.google.com/deletion-policy is abandon"
)

_ANNOTATIONS: Final = (
    "cnrm.cloud.google.com/deletion-policy",
    "cnrm.cloud.google.com/reconcile-interval-in-seconds",
    "cnrm.cloud.google.com/state-into-spec",
)
_INSTANCE: Final = fields_of(
    "region databaseVersion maintenanceVersion settings.tier settings.edition settings.availabilityType"
    " settings.activationPolicy settings.diskSize settings.diskType settings.diskAutoresize"
    " settings.diskAutoresizeLimit settings.deletionProtectionEnabled settings.databaseFlags settings.userLabels"
    " settings.locationPreference settings.pricingPlan settings.connectorEnforcement settings.dataCacheConfig"
    " settings.insightsConfig settings.maintenanceWindow settings.denyMaintenancePeriod"
    " settings.passwordValidationPolicy settings.backupConfiguration"
    " settings.ipConfiguration.privateNetworkRef.external"
    " settings.ipConfiguration.allocatedIpRange settings.ipConfiguration.requireSsl settings.ipConfiguration.sslMode",
    # Config Connector takes over what is there under that name.
    {"resourceID": values.own_name, "settings.ipConfiguration.ipv4Enabled": values.off},
    _ANNOTATIONS,
)
_DATABASE: Final = fields_of(
    "resourceID charset collation deletionPolicy", {"instanceRef.name": values.own_name}, _ANNOTATIONS
)
_USER: Final = fields_of(
    "password.valueFrom.secretKeyRef.key passwordPolicy deletionPolicy",
    {
        "resourceID": values.login,
        "instanceRef.name": values.own_name,
        "password.valueFrom.secretKeyRef.name": values.own_name,
        "type": values.one_of("BUILT_IN"),
    },
    _ANNOTATIONS,
)

KINDS: Final = (
    OperatorKind(
        "SQLInstance.sql.cnrm.cloud.google.com",
        _by_ready,
        holds_data=True,
        on_deletion=_DELETES.format(thing="instance in Cloud SQL, with its backups,"),
        fields=_INSTANCE,
    ),
    OperatorKind(
        "SQLDatabase.sql.cnrm.cloud.google.com",
        _by_ready,
        holds_data=True,
        on_deletion=_DELETES.format(thing="database in Cloud SQL"),
        fields=_DATABASE,
    ),
    OperatorKind(
        "SQLUser.sql.cnrm.cloud.google.com",
        _by_ready,
        holds_data=True,
        on_deletion=_DELETES.format(thing="user in Cloud SQL"),
        fields=_USER,
    ),
)
"""The kinds of Config Connector that may be composed."""
