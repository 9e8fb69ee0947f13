"""A new server out of a request: what Azure fills in. Pure; the defaults are recorded (2022-12-01)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from devcloud.azure.lifecycle import rules
from devcloud.azure.lifecycle.effects import standby
from devcloud.azure.lifecycle.fields import merged
from devcloud.azure.refusals import invalid_value, missing_value
from devcloud.azure.state import catalog
from devcloud.azure.state.api_versions import ENGINES
from devcloud.azure.state.model import SYSTEM_DATABASES, Properties, Server, Sku

_DEFAULT_GIB = 32
# What a copy has of its source, unless its own request says otherwise.
_INHERITED = ("storage", "backup", "network", "authConfig", "dataEncryption", "maintenanceWindow")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A creation, whose properties are in Azure's letter case.

    Attributes:
        api_version: That it speaks.
        now: When it came.
        source: The server whose data it takes over, None for none.
    """

    name: str
    subscription: str
    group: str
    resource_id: str
    location: str
    tags: dict[str, str] | None
    sku: Sku
    properties: dict[str, Any]
    api_version: str
    now: datetime
    source: Server | None = None


def new_server(request: Request) -> Server:
    """Return the server that a creation begins with.

    Raises:
        Refusal: A value is missing, or none that a server may have.
    """
    requested = request.properties
    rules.refuse_values(requested, request.sku)
    tree = _of_source(request.source) if request.source is not None else _first(requested, request.api_version)
    tree = merged(tree, {name: value for name, value in requested.items() if name in _SHOWN})
    size = tree["storage"]["storageSizeGB"]
    if request.source is not None and size < request.source.properties.storage.storage_size_gb:
        raise invalid_value("storageSizeGB")
    return Server(
        name=request.name,
        subscription=request.subscription,
        group=request.group,
        resource_id=request.resource_id,
        location=request.location,
        tags=request.tags,
        sku=request.sku,
        properties=_completed(request.name, tree),
        created_at=request.now,
        databases=request.source.databases if request.source is not None else SYSTEM_DATABASES,
    )


_SHOWN = frozenset(field.encode_name for field in msgspec.structs.fields(Properties))


def _first(requested: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    version = requested.get("version", ENGINES[api_version][-1])
    rules.refuse_engine(version, api_version)
    if requested.get("authConfig", {}).get("passwordAuth", "Enabled") == "Enabled":
        login, password = requested.get("administratorLogin"), requested.get("administratorLoginPassword")
        if login is None or password is None:
            raise missing_value("administratorLogin" if login is None else "administratorLoginPassword")
        rules.refuse_login(login)
        rules.refuse_password(password, login)
    return {"version": version, "storage": {"storageSizeGB": _DEFAULT_GIB}}


def _of_source(source: Server) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(source.properties)
    tree = {name: shown[name] for name in _INHERITED}
    tree["backup"].pop("earliestRestoreDate", None)
    return {**tree, "version": source.properties.version, "administratorLogin": source.properties.administrator_login}


def _completed(name: str, tree: dict[str, Any]) -> Properties:
    storage = tree["storage"]
    disk = catalog.DISKS.get(storage["storageSizeGB"])
    tier = storage.get("tier") or (disk.tier if disk is not None else "")
    network = tree.get("network", {})
    if network.get("delegatedSubnetResourceId"):
        network = {**network, "publicNetworkAccess": "Disabled"}
    zone = tree.get("availabilityZone") or "1"
    complete = {
        **tree,
        "availabilityZone": zone,
        "fullyQualifiedDomainName": f"{name}.postgres.database.azure.com",
        "highAvailability": standby(tree.get("highAvailability", {}), zone),
        "minorVersion": catalog.MINORS[tree["version"]],
        "network": network,
        "state": "Ready",
        "storage": {**storage, "tier": tier, "iops": storage.get("iops") or catalog.iops_of(tier)},
    }
    return msgspec.convert(complete, Properties)
