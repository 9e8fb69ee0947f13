"""Azure Service Operator: `dbforpostgresql.azure.com`. Pure.

Its condition Ready has a severity: `v2/pkg/genruntime/conditions/conditions.go`. An Error is not tried again before an
edit, a Warning is, an Info is work under way.
"""

from __future__ import annotations

from typing import Final

from composer.render.operators import values
from composer.render.operators.fields import fields_of
from composer.render.operators.state import OperatorKind, State, text_at, words_of
from runtime.conditions import find
from runtime.objects import Object, generation_of

_USABLE: Final = frozenset({"", "Ready", "Updating"})
"""The states of a flexible server in which it takes logins; empty while the operator has read none."""


def _by_ready(live: Object) -> State:
    """Judge any of its kinds by its condition Ready."""
    ready = find(live, "Ready")
    if ready is None:
        return State(ready=False, usable=False)
    observed = ready.get("observedGeneration")
    if observed is not None and observed != generation_of(live):
        return State(ready=False, usable=True, why="its edit was not carried out yet")
    is_ready, severity = ready["status"] == "True", str(ready.get("severity") or "")
    words = " ".join(filter(None, (severity, words_of(live, "Ready"))))
    return State(
        ready=is_ready, usable=True, failed=not is_ready and severity == "Error", why="" if is_ready else words
    )


def _server(live: Object) -> State:
    """Judge a FlexibleServer: it may be stopped or disabled in Azure while its resource is as its spec says."""
    by_ready, state = _by_ready(live), text_at(live, "state")
    if state in _USABLE:
        return by_ready
    return State(ready=False, usable=False, failed=state in ("Disabled", "Stopped"), why=f"it is {state} in Azure")


_DELETES = (
    "its operator deletes the {thing} at once, unless annotation serviceoperator.azure.com/reconcile-policy is"
    " detach-on-delete"
)

_ANNOTATIONS: Final = ("serviceoperator.azure.com/reconcile-policy",)
_SERVER: Final = fields_of(
    "owner.armId location version sku administratorLoginPassword.key storage highAvailability backup"
    " maintenanceWindow availabilityZone tags network.delegatedSubnetResourceReference.armId"
    " network.privateDnsZoneArmResourceReference.armId",
    {
        # Azure Service Operator takes over what is there under that name, and sets its password.
        "azureName": values.own_name,
        "administratorLogin": values.login,
        "administratorLoginPassword.name": values.own_name,
        "network.publicNetworkAccess": values.one_of("Disabled"),
    },
    _ANNOTATIONS,
)
_OWNED: Final = {"owner.name": values.own_name}
_DATABASE: Final = fields_of("azureName charset collation", _OWNED, _ANNOTATIONS)
_RULE: Final = fields_of(
    "azureName", {**_OWNED, "startIpAddress": values.address, "endIpAddress": values.address}, _ANNOTATIONS
)
_CONFIGURATION: Final = fields_of("azureName source value", _OWNED, _ANNOTATIONS)

KINDS: Final = (
    OperatorKind(
        "FlexibleServer.dbforpostgresql.azure.com",
        _server,
        holds_data=True,
        on_deletion=_DELETES.format(thing="server in Azure, with its backups,"),
        fields=_SERVER,
    ),
    OperatorKind(
        "FlexibleServersDatabase.dbforpostgresql.azure.com",
        _by_ready,
        holds_data=True,
        on_deletion=_DELETES.format(thing="database in Azure"),
        fields=_DATABASE,
    ),
    OperatorKind(
        "FlexibleServersFirewallRule.dbforpostgresql.azure.com",
        _by_ready,
        holds_data=False,
        on_deletion="no data is in it",
        fields=_RULE,
    ),
    OperatorKind(
        "FlexibleServersConfiguration.dbforpostgresql.azure.com",
        _by_ready,
        holds_data=False,
        on_deletion="no data is in it; the server keeps the value",
        fields=_CONFIGURATION,
    ),
)
"""The kinds of Azure Service Operator that may be composed."""
