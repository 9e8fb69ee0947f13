"""Resources as ARM shows them, by api-version. Pure; the shapes of 2021-06-01 and 2022-12-01 are recorded."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from devcloud.azure.refusals import SERVERS
from devcloud.azure.state.api_versions import STANDBY_STATE_SINCE, SYSTEM_DATA_SINCE, state_name, without_later
from devcloud.azure.state.catalog import location_name
from devcloud.azure.state.configurations import in_version
from devcloud.azure.state.model import Database, Group, Lock, Rule, Server, group_id


def time_text(moment: datetime) -> str:
    """Return a time as ARM writes it: UTC, with seven digits of a second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def server_view(server: Server, state: str, api_version: str) -> dict[str, Any]:
    """Return a server; its region is answered by its display name, whatever was sent."""
    properties = msgspec.to_builtins(server.properties)
    properties |= {
        "state": state_name(state, api_version),
        "replica": {"role": properties["replicationRole"], "capacity": properties["replicaCapacity"]},
        "privateEndpointConnections": [],
    }
    if server.host:
        properties["fullyQualifiedDomainName"] = server.host
    if not server.is_created:
        # What is not there before the machine is.
        for name in ("fullyQualifiedDomainName", "minorVersion"):
            del properties[name]
        if api_version >= STANDBY_STATE_SINCE:
            properties["highAvailability"]["state"] = ""
    shown: dict[str, Any] = {
        "sku": msgspec.to_builtins(server.sku),
        "properties": without_later(properties, api_version),
        "location": location_name(server.location),
        "id": server.arm_id,
        "name": server.name,
        "type": SERVERS,
    }
    if api_version >= SYSTEM_DATA_SINCE:
        shown["systemData"] = {"createdAt": time_text(server.created_at)}
    if server.tags is not None:
        shown["tags"] = server.tags
    return shown


def group_view(group: Group) -> dict[str, Any]:
    """Return a resource group; its region is answered as it was sent."""
    shown: dict[str, Any] = {
        "id": group_id(group.subscription, group.name),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": group.location,
        "properties": {"provisioningState": "Succeeded"},
    }
    return shown if group.tags is None else {**shown, "tags": group.tags}


def database_view(server: Server, name: str, database: Database) -> dict[str, Any]:
    """Return a database."""
    return _child(server, "databases", name, msgspec.to_builtins(database))


def rule_view(server: Server, name: str, rule: Rule) -> dict[str, Any]:
    """Return a firewall rule."""
    return _child(server, "firewallRules", name, msgspec.to_builtins(rule))


def configuration_view(server: Server, name: str) -> dict[str, Any]:
    """Return a server parameter; the value is answered in the letter case that was sent."""
    configuration = in_version(name, server.properties.version)
    default = server.properties.version if configuration.is_read_only else configuration.default
    override = server.overrides.get(name)
    properties = {
        "value": default if override is None else override,
        "description": configuration.description,
        "defaultValue": default,
        "dataType": configuration.data_type,
        "allowedValues": configuration.allowed,
        "source": "system-default" if override is None else "user-override",
        "isDynamicConfig": configuration.is_dynamic,
        "isReadOnly": configuration.is_read_only,
        "isConfigPendingRestart": name in server.pending_restart,
        "documentationLink": configuration.link,
    }
    if configuration.unit is not None:
        properties["unit"] = configuration.unit
    return _child(server, "configurations", name, properties)


def backup_view(server: Server, completed_at: datetime, name: str) -> dict[str, Any]:
    """Return a backup; those that somebody asked for say so."""
    is_asked_for = name in server.backups
    properties = {
        "backupType": "Customer On-Demand" if is_asked_for else "Full",
        "completedTime": time_text(completed_at),
        "source": "Customer Initiated" if is_asked_for else "Automatic",
    }
    return _child(server, "backups", name, properties)


def lock_view(lock: Lock) -> dict[str, Any]:
    """Return a management lock."""
    return {
        "properties": {"level": lock.level},
        "id": f"{lock.scope}/providers/Microsoft.Authorization/locks/{lock.name}",
        "type": "Microsoft.Authorization/locks",
        "name": lock.name,
    }


def _child(server: Server, kind: str, name: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "properties": properties,
        "id": f"{server.arm_id}/{kind}/{name}",
        "name": name,
        "type": f"{SERVERS}/{kind}",
    }
