"""What operations bring about, as data that outlives a process, and servers after it. Pure."""

from datetime import datetime
from typing import Any

import msgspec

from devcloud.azure.lifecycle.fields import merged
from devcloud.azure.state import catalog
from devcloud.azure.state.configurations import CONFIGURATIONS
from devcloud.azure.state.model import Database, Properties, Rule, Server, Sku


class CreateServer(msgspec.Struct, frozen=True, tag=True):
    """Make a server's database: empty, or with the data of another server (its `resource_id`)."""

    server: str
    password: str | None
    source: str | None


class UpdateServer(msgspec.Struct, frozen=True, tag=True):
    """Change a server; what cuts its sessions says so."""

    server: str
    properties: dict[str, Any]
    sku: Sku
    tags: dict[str, str] | None
    password: str | None
    cuts_sessions: bool


class DropServer(msgspec.Struct, frozen=True, tag=True):
    """Delete a server; it can be revived for some days."""

    server: str


class StartServer(msgspec.Struct, frozen=True, tag=True):
    """Start a stopped server."""

    server: str


class StopServer(msgspec.Struct, frozen=True, tag=True):
    """Stop a server."""

    server: str


class RestartServer(msgspec.Struct, frozen=True, tag=True):
    """Restart a server: static parameters count from then on."""

    server: str


class PutDatabase(msgspec.Struct, frozen=True, tag=True):
    """Create a database."""

    server: str
    name: str
    database: Database


class DropDatabase(msgspec.Struct, frozen=True, tag=True):
    """Delete a database."""

    server: str
    name: str


class PutRule(msgspec.Struct, frozen=True, tag=True):
    """Create or change a firewall rule."""

    server: str
    name: str
    rule: Rule


class DropRule(msgspec.Struct, frozen=True, tag=True):
    """Delete a firewall rule."""

    server: str
    name: str


class SetConfiguration(msgspec.Struct, frozen=True, tag=True):
    """Choose a server parameter; None is the default again."""

    server: str
    name: str
    value: str | None


class TakeBackup(msgspec.Struct, frozen=True, tag=True):
    """Take a backup that somebody asked for."""

    server: str
    name: str


class DropGroup(msgspec.Struct, frozen=True, tag=True):
    """Delete a resource group and all in it."""

    subscription: str
    group: str
    job: str


ServerEffect = (
    CreateServer
    | UpdateServer
    | DropServer
    | StartServer
    | StopServer
    | RestartServer
    | PutDatabase
    | DropDatabase
    | PutRule
    | DropRule
    | SetConfiguration
    | TakeBackup
)
Effect = ServerEffect | DropGroup


def effect_from(content: dict[str, Any]) -> Effect:
    """Return an effect out of the data of an operation."""
    effect: Effect = msgspec.convert(content, Effect)
    return effect


_STATES: dict[type, str] = {
    CreateServer: "Provisioning",
    DropServer: "Dropping",
    StartServer: "Starting",
    StopServer: "Stopping",
    RestartServer: "Restarting",
}


def state_during(effect: Effect) -> str:
    """Return the state that a server shows while an operation works on it or on something in it."""
    return _STATES.get(type(effect), "Updating")


def server_after(server: Server, effect: ServerEffect, now: datetime) -> Server | None:  # noqa: C901, PLR0911 - rows
    """Return a server after an operation; None when it is gone."""
    match effect:
        case CreateServer():
            return msgspec.structs.replace(_with_backup(server, now), is_created=True)
        case UpdateServer():
            return _updated(server, effect)
        case DropServer():
            return None
        case StartServer():
            return _in_state(server, "Ready")
        case StopServer():
            return _in_state(server, "Stopped")
        case RestartServer():
            return msgspec.structs.replace(server, pending_restart=())
        case PutDatabase(name=name, database=database):
            return msgspec.structs.replace(server, databases={**server.databases, name: database})
        case DropDatabase(name=name):
            return msgspec.structs.replace(server, databases=_without(server.databases, name))
        case PutRule(name=name, rule=rule):
            return msgspec.structs.replace(server, rules={**server.rules, name: rule})
        case DropRule(name=name):
            return msgspec.structs.replace(server, rules=_without(server.rules, name))
        case SetConfiguration():
            return _configured(server, effect)
        case TakeBackup(name=name):
            return msgspec.structs.replace(server, backups={**server.backups, name: now})


def _updated(server: Server, effect: UpdateServer) -> Server:
    tree = merged(msgspec.to_builtins(server.properties), effect.properties)
    size = effect.properties.get("storage", {})
    if "tier" not in size and "storageSizeGB" in size:
        disk = catalog.DISKS.get(tree["storage"]["storageSizeGB"])
        if disk is not None:
            tree["storage"] |= {"tier": disk.tier, "iops": disk.iops}
    elif "tier" in size:
        tree["storage"]["iops"] = catalog.iops_of(tree["storage"]["tier"])
    tree["minorVersion"] = catalog.MINORS[tree["version"]]
    tree["highAvailability"] = standby(tree["highAvailability"], tree["availabilityZone"])
    return msgspec.structs.replace(
        server,
        properties=msgspec.convert(tree, Properties),
        sku=effect.sku,
        tags=effect.tags,
        pending_restart=() if effect.cuts_sessions else server.pending_restart,
    )


def standby(shown: dict[str, Any], zone: str) -> dict[str, Any]:
    """Return `highAvailability` with the state and the zone of its standby."""
    if shown.get("mode", "Disabled") == "Disabled":
        return {"mode": "Disabled", "state": "NotEnabled"}
    other = next(other for other in catalog.ZONES if other != zone)
    wanted = shown.get("standbyAvailabilityZone") or (zone if shown["mode"] == "SameZone" else other)
    return {"mode": shown["mode"], "state": "Healthy", "standbyAvailabilityZone": wanted}


def _configured(server: Server, effect: SetConfiguration) -> Server:
    overrides = _without(server.overrides, effect.name)
    if effect.value is not None:
        overrides[effect.name] = effect.value
    pending = set(server.pending_restart)
    if not CONFIGURATIONS[effect.name].is_dynamic and overrides != server.overrides:
        pending.add(effect.name)
    return msgspec.structs.replace(server, overrides=overrides, pending_restart=tuple(sorted(pending)))


def _in_state(server: Server, state: str) -> Server:
    properties = msgspec.structs.replace(server.properties, state=state)
    return msgspec.structs.replace(server, properties=properties, pending_restart=())


def _with_backup(server: Server, now: datetime) -> Server:
    backup = msgspec.structs.replace(server.properties.backup, earliest_restore_date=now.isoformat())
    return msgspec.structs.replace(server, properties=msgspec.structs.replace(server.properties, backup=backup))


def _without(entries: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if key.lower() != name.lower()}
