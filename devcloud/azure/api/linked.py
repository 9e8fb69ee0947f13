"""What a request about a server names outside of it, and the right that each needs there.

"Actions required to create a flexible server in a virtual network" and "Data encryption" of Azure Database for
PostgreSQL; "Check linked access" of Azure Resource Manager.
"""

from collections.abc import Iterator

from devcloud.azure.api.calls import Call

_OF_NETWORK = {
    "delegatedSubnetResourceId": "Microsoft.Network/virtualNetworks/subnets/join/action",
    "privateDnsZoneArmResourceId": "Microsoft.Network/privateDnsZones/join/action",
}
_ASSIGN = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
_CHANGES = frozenset({"flexibleServers.put", "flexibleServers.patch"})


def linked_rights(call: Call) -> Iterator[tuple[str, str]]:
    """Yield the scope of each thing that a request names, and the action on it."""
    if call.action not in _CHANGES or not isinstance(call.body, dict):
        return
    network = _part(_part(call.body, "properties"), "network")
    for name, action in _OF_NETWORK.items():
        scope = network.get(name)
        if isinstance(scope, str):
            yield scope, action
    for identity in _part(_part(call.body, "identity"), "userAssignedIdentities"):
        yield identity, _ASSIGN


def _part(tree: dict[str, object], name: str) -> dict[str, object]:
    part = tree.get(name)
    return part if isinstance(part, dict) else {}
