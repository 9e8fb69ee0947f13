"""Google Cloud, as a life has it: its provider, the simulated Cloud SQL, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.gcp.server import PROJECT
from providers.gcp import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.cloud_sql import CloudSql, connector
from tests.simulation.cloud_sql_strangers import STRANGERS
from tests.simulation.clouds import CloudDescription

_INSTANCES, _DATABASES, _USERS = (kind.resource for kind in PROVIDER.kinds)
_SHARED: Final[Object] = {
    "region": "europe-west1",
    "databaseVersion": "POSTGRES_16",
    "tier": "db-custom-1-3840",
    "edition": "ENTERPRISE",
    "activationPolicy": "ALWAYS",
    "dataDiskSizeGb": 20,
    "ipv4Enabled": True,
}


def _inside(resource: Resource, name: str) -> Object:
    fields: Object = {"instanceRef": {"name": "shared"}, "name": name}
    return {**fields, "name": f"{name}_app", "database": "postgres"} if resource == _USERS else fields


CLOUD: Final = CloudDescription(
    name="gcp",
    provider=PROVIDER,
    roles={_INSTANCES: "servers", _DATABASES: "databases", _USERS: "logins"},
    login=_USERS,
    config={
        "project": PROJECT,
        "credentials": {"source": "MetadataServer"},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
        "loginCheck": "Off",
    },
    secrets={},
    place={"region": "europe-west1", "privateNetwork": "projects/p/global/networks/n"},
    policies=(
        ("Delete", "Delete", "Snapshot", "Orphan"),
        ("Delete", "Orphan", "Snapshot"),
        ("Delete", "Orphan"),
    ),
    shared=_SHARED,
    inside=_inside,
    storage=(20, 25, 30),
    database_fields=lambda _has_one: {},
    place_of=lambda _resource, external: external,
    server_at=lambda host: host.rpartition(":")[2],
    new=CloudSql,
    connector=connector,
    strangers=STRANGERS,
)
