"""The platform team's own server, as a life has it: the on-prem provider, a PostgreSQL in memory, and its superuser."""

from __future__ import annotations

from typing import Final

from providers.onprem import DATABASES, PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.clouds import CloudDescription
from tests.simulation.onprem import CONFIG, HOST, SECRET, SERVER, OnPrem
from tests.simulation.onprem_strangers import STRANGERS


def _inside(_resource: Resource, name: str) -> Object:
    return {"databaseName": name, "username": name, "connectionLimit": 10}


CLOUD: Final = CloudDescription(
    name="onprem",
    provider=PROVIDER,
    roles={DATABASES.resource: "databases"},
    login=DATABASES.resource,
    config={**CONFIG, "allowedNamespaces": {"selector": {}}},
    secrets={"onprem-admin": SECRET},
    place={},
    policies=(("Delete", "Delete", "Snapshot", "Orphan"), ("Delete", "Orphan"), ("Delete", "Orphan")),
    shared=_inside(DATABASES.resource, "shared"),
    inside=_inside,
    storage=(20, 25, 30),
    database_fields=lambda _has_one: {},
    place_of=lambda _resource, external: f"{SERVER}/{external}" if external else "",
    server_at=lambda host: SERVER if host == HOST else "",
    new=OnPrem,
    connector=OnPrem.connector,
    strangers=STRANGERS,
)
