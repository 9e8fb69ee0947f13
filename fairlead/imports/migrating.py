"""What another tool manages, read from what it prints: Terraform's state and Crossplane's managed resources. Pure.

Each becomes a thing that is written down as it is and adopted; then the other tool forgets it, by a command of its own
that destroys nothing. Sources: `terraform show -json` (JSON output format, version 1), the resources of the providers
hashicorp/aws, hashicorp/google, hashicorp/azurerm and cyrilgdn/postgresql; the annotation
`crossplane.io/external-name` and `deletionPolicy` of Crossplane's managed resources (v1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.imports.thing import Thing
from runtime.objects import Object, annotations_of, metadata

Fields = Mapping[str, Any]
_EXTERNAL: Final = "crossplane.io/external-name"
_AZURE_SERVER: Final = re.compile(r"/resourceGroups/([^/]+)/.*/flexibleServers/([^/]+)$", re.IGNORECASE)
_POSTGRES: Final = "postgres"


@dataclass(frozen=True, slots=True)
class Managed:
    """Something that another tool manages.

    Attributes:
        cloud: Whose provider would manage it: `aws`, `azure`, `gcp` or `onprem`.
        thing: Its kind here, and its name in the cloud.
        address: How the other tool calls it.
        forget: The commands by which that tool forgets it, in their order.
        fields: What its name does not say of something inside of a server, which nobody looks into before.
    """

    cloud: str
    thing: Thing
    address: str
    forget: tuple[str, ...]
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Migration:
    """What can be taken over, servers before what is inside of them; and sentences about what cannot be."""

    managed: tuple[Managed, ...]
    remarks: tuple[str, ...]


def of_terraform(state: object) -> Migration:
    """Read the output of `terraform show -json`. Raises ValueError for anything else."""
    values = state.get("values") if isinstance(state, dict) else None
    if not isinstance(values, dict) or "root_module" not in values:
        raise ValueError("no output of `terraform show -json`: it has no values.root_module")
    managed, remarks = [], []
    for resource in _resources(values["root_module"]):
        type_, address, fields = str(resource["type"]), str(resource["address"]), resource.get("values") or {}
        rule = _TERRAFORM.get(type_)
        if rule is None:
            if any(word in type_ for word in _OF_DATABASES):
                remarks.append(f"{address}: {type_} is not taken over; leave it to Terraform")
            continue
        cloud, kind, name = rule[0], rule[1], rule[2](fields)
        if not name:
            remarks.append(f"{address}: no {kind} of PostgreSQL, or its state has no name")
            continue
        forget = (f"terraform state rm {shlex.quote(address)}",)
        managed.append(Managed(cloud, Thing(kind, name), address, forget, _inner_fields(kind, fields)))
    return Migration(tuple(sorted(managed, key=_order)), tuple(remarks))


def of_crossplane(objects: Iterable[Object]) -> Migration:
    """Read Crossplane's managed resources, as `kubectl get managed -o yaml` prints them."""
    managed, remarks = [], []
    for obj in objects:
        group, kind = str(obj["apiVersion"]).partition("/")[0], str(obj["kind"])
        rule = _CROSSPLANE.get((_without_company(group), kind))
        address = f"{kind.lower()}.{group}/{metadata(obj).get('name', '')}"
        if rule is None:
            remarks.append(f"{address}: no kind of databases that is taken over")
            continue
        fields = (obj.get("spec") or {}).get("forProvider") or {}
        name = rule[2]({**fields, "name": annotations_of(obj).get(_EXTERNAL)})
        if not name:
            remarks.append(f"{address}: its annotation {_EXTERNAL} or its server's name is missing")
            continue
        orphaned = '{"spec":{"deletionPolicy":"Orphan"}}'
        forget = (f"kubectl patch {address} --type=merge -p {shlex.quote(orphaned)}", f"kubectl delete {address}")
        managed.append(Managed(rule[0], Thing(rule[1], name), address, forget, _inner_fields(rule[1], fields)))
    return Migration(tuple(sorted(managed, key=_order)), tuple(remarks))


def _resources(module: Fields) -> Iterator[Fields]:
    """Yield the managed resources of a module and of those below it; data sources are nobody's."""
    yield from (resource for resource in module.get("resources") or () if resource.get("mode") == "managed")
    for child in module.get("child_modules") or ():
        yield from _resources(child)


def _inner_fields(kind: str, fields: Fields) -> Fields:
    values = {ours: _text(fields, *theirs) for ours, theirs in _INNER.get(kind, {}).items()}
    return {name: value for name, value in values.items() if value}


def _order(managed: Managed) -> tuple[int, str]:
    return _ORDER.index(managed.thing.kind), managed.address


def _without_company(group: str) -> str:
    """Return the group of a provider without who publishes it: rds.aws of rds.aws.upbound.io and crossplane.io."""
    return group.removesuffix(".upbound.io").removesuffix(".crossplane.io").replace(".m", "")


def _text(fields: Fields, *names: str) -> str:
    return next((str(fields[name]) for name in names if fields.get(name)), "")


def _of_postgres(engine: str, *names: str) -> Callable[[Fields], str]:
    """Return the name of a server where it runs PostgreSQL."""
    return lambda fields: _text(fields, *names) if _POSTGRES in str(fields.get(engine, _POSTGRES)).lower() else ""


def _plain(*names: str) -> Callable[[Fields], str]:
    return lambda fields: _text(fields, *names)


def _inside(*servers: str) -> Callable[[Fields], str]:
    """Return `<server>/<name>` of what is inside of a server."""

    def name(fields: Fields) -> str:
        server, own = _text(fields, *servers), _text(fields, "name")
        return f"{server}/{own}" if server and own else ""

    return name


def _in_group(*groups: str) -> Callable[[Fields], str]:
    """Return `<resource group>/<server>` on Azure."""
    return _inside(*groups)


def _in_azure_server(*ids: str) -> Callable[[Fields], str]:
    """Return `<resource group>/<server>/<name>` of what names its server by the server's id."""

    def name(fields: Fields) -> str:
        server, own = _AZURE_SERVER.search(_text(fields, *ids)), _text(fields, "name")
        return f"{server[1]}/{server[2]}/{own}" if server and own else ""

    return name


# What is not in the name of what is inside of a server: our field, and what Terraform and Crossplane call it.
_INNER: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "FlexibleServerConfiguration": {"value": ("value",)},
    "FlexibleServerFirewallRule": {
        "startIpAddress": ("start_ip_address", "startIpAddress"), "endIpAddress": ("end_ip_address", "endIpAddress"),
    },
}  # fmt: skip
Rule = tuple[str, str, Callable[[Fields], str]]
_OF_DATABASES: Final = ("db_instance", "rds_", "sql_", "postgresql")
_TERRAFORM: Final[Mapping[str, Rule]] = {
    "aws_db_parameter_group": ("aws", "DBParameterGroup", _plain("name")),
    "aws_db_subnet_group": ("aws", "DBSubnetGroup", _plain("name")),
    "aws_db_instance": ("aws", "RDSInstance", _of_postgres("engine", "identifier")),
    "google_sql_database_instance": ("gcp", "CloudSQLInstance", _of_postgres("database_version", "name")),
    "google_sql_database": ("gcp", "CloudSQLDatabase", _inside("instance")),
    "google_sql_user": ("gcp", "CloudSQLUser", _inside("instance")),
    "azurerm_postgresql_flexible_server": ("azure", "FlexibleServer", _in_group("resource_group_name")),
    "azurerm_postgresql_flexible_server_configuration": (
        "azure", "FlexibleServerConfiguration", _in_azure_server("server_id")),
    "azurerm_postgresql_flexible_server_database": ("azure", "FlexibleServerDatabase", _in_azure_server("server_id")),
    "azurerm_postgresql_flexible_server_firewall_rule": (
        "azure", "FlexibleServerFirewallRule", _in_azure_server("server_id")),
    "postgresql_database": ("onprem", "PostgresDatabase", _plain("name")),
}  # fmt: skip
_CROSSPLANE: Final[Mapping[tuple[str, str], Rule]] = {
    ("rds.aws", "ParameterGroup"): ("aws", "DBParameterGroup", _plain("name")),
    ("rds.aws", "DBParameterGroup"): ("aws", "DBParameterGroup", _plain("name")),
    ("rds.aws", "SubnetGroup"): ("aws", "DBSubnetGroup", _plain("name")),
    ("database.aws", "DBSubnetGroup"): ("aws", "DBSubnetGroup", _plain("name")),
    ("rds.aws", "Instance"): ("aws", "RDSInstance", _of_postgres("engine", "name")),
    ("rds.aws", "DBInstance"): ("aws", "RDSInstance", _of_postgres("engine", "name")),
    ("database.aws", "RDSInstance"): ("aws", "RDSInstance", _of_postgres("engine", "name")),
    ("sql.gcp", "DatabaseInstance"): ("gcp", "CloudSQLInstance", _of_postgres("databaseVersion", "name")),
    ("database.gcp", "CloudSQLInstance"): ("gcp", "CloudSQLInstance", _of_postgres("databaseVersion", "name")),
    ("sql.gcp", "Database"): ("gcp", "CloudSQLDatabase", _inside("instance")),
    ("sql.gcp", "User"): ("gcp", "CloudSQLUser", _inside("instance")),
    ("dbforpostgresql.azure", "FlexibleServer"): ("azure", "FlexibleServer", _in_group("resourceGroupName")),
    ("dbforpostgresql.azure", "FlexibleServerConfiguration"): (
        "azure", "FlexibleServerConfiguration", _in_azure_server("serverId")),
    ("dbforpostgresql.azure", "FlexibleServerDatabase"): (
        "azure", "FlexibleServerDatabase", _in_azure_server("serverId")),
    ("dbforpostgresql.azure", "FlexibleServerFirewallRule"): (
        "azure", "FlexibleServerFirewallRule", _in_azure_server("serverId")),
    ("postgresql.sql", "Database"): ("onprem", "PostgresDatabase", _plain("name")),
}  # fmt: skip
_ORDER: Final = (
    "DBParameterGroup", "DBSubnetGroup", "RDSInstance", "CloudSQLInstance", "FlexibleServer",
    "FlexibleServerConfiguration", "FlexibleServerFirewallRule", "CloudSQLDatabase", "FlexibleServerDatabase",
    "PostgresDatabase", "CloudSQLUser",
)  # fmt: skip
