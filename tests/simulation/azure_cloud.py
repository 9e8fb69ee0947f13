"""Azure, as a life has it: its provider, the simulated ARM, and what others do there."""

from __future__ import annotations

from typing import Final

from devcloud.azure.entra.directory import SUBSCRIPTION
from devcloud.azure.platform import ENVIRONMENT, RESOURCE_GROUP
from devcloud.azure.state.catalog import FIRST_LOCATION
from providers.azure import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.arm import CREDENTIALS, Azure
from tests.simulation.arm_strangers import STRANGERS
from tests.simulation.arm_transport import connector
from tests.simulation.clouds import CloudDescription

_SERVERS, _DATABASES, _RULES, _CONFIGURATIONS = (kind.resource for kind in PROVIDER.kinds)
_SECRET: Final = "azure-client"
_SHARED: Final[Object] = {
    "resourceGroupName": RESOURCE_GROUP,
    "location": FIRST_LOCATION,
    "administratorLogin": "shared_app",
    "skuName": "Standard_D2ds_v5",
    "skuTier": "GeneralPurpose",
    "version": "16",
    "storageSizeGB": 64,
    "publicNetworkAccess": "Enabled",
}


def _inside(resource: Resource, name: str) -> Object:
    server: Object = {"serverRef": {"name": "shared"}}
    if resource == _DATABASES:
        return {**server, "name": name}
    if resource == _RULES:
        return {**server, "cidr": "203.0.113.0/24"}
    return {**server, "name": "work_mem", "value": "8MB" if name == "app" else "16MB"}


CLOUD: Final = CloudDescription(
    name="azure",
    provider=PROVIDER,
    roles={_SERVERS: "servers", _DATABASES: "databases", _RULES: "rules", _CONFIGURATIONS: "settings"},
    login=_SERVERS,
    config={
        "subscriptionID": SUBSCRIPTION,
        "credentials": {"source": "ClientSecret", "secretRef": {"name": _SECRET}},
        "allowedNamespaces": {"selector": {}},
        "limits": {"publicAccess": True},
        "loginCheck": "Off",
    },
    secrets={_SECRET: CREDENTIALS},
    place=ENVIRONMENT,
    policies=(("Delete", "Delete", "Orphan"), ("Delete", "Orphan"), ("Delete", "Orphan")),
    shared=_SHARED,
    inside=_inside,
    storage=(32, 64, 128),
    database_fields=lambda has_one: {"databaseName": "{{ vars.database }}" if has_one else "{{ none }}"},
    place_of=lambda _resource, external: external.partition("/")[2],
    server_at=lambda host: host.partition(".")[0],
    new=Azure,
    connector=connector,
    strangers=STRANGERS,
)
