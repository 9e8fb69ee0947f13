"""What others do in Azure, and what happens there behind ARM."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from devcloud.azure.platform import RESOURCE_GROUP
from devcloud.azure.state.catalog import FIRST_LOCATION
from devcloud.simulator.operations import OperationFailure
from fairlead.simulation.arm import SERVERS, Azure
from providers.azure import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.cast import Cast
from tests.simulation.cloud_acts import CloudActs
from tests.simulation.people import CLAIM_KEYS, INNER_NAMES

_SERVERS, _DATABASES, _RULES, _CONFIGURATIONS = (kind.resource for kind in PROVIDER.kinds)
_NAMES: Final = (*INNER_NAMES, *(key.name for key in CLAIM_KEYS))
_NOTHING: Final[dict[str, Any]] = {"properties": {}}


def _call(cast: Cast, verb: str, path: str, body: Any = None) -> str:
    return f"stranger {verb} {path}: {_cloud(cast).ask(verb, f'{SERVERS}/{path}', body).status}"


def _cloud(cast: Cast) -> Azure:
    cloud = cast.platform.cloud
    assert isinstance(cloud, Azure)
    return cloud


async def makes(cast: Cast) -> str:
    """Make a database, or let everybody in."""
    server = cast.server()
    if cast.happens(2 / 3):
        return _call(cast, "PUT", f"{server}/databases/{cast.draw(*_NAMES)}", _NOTHING)
    everybody = {"startIpAddress": "0.0.0.0", "endIpAddress": "255.255.255.255"}  # noqa: S104 - a firewall rule
    return _call(cast, "PUT", f"{server}/firewallRules/{cast.draw(*_NAMES)}", {"properties": everybody})


async def drops(cast: Cast) -> str:
    return _call(cast, "DELETE", f"{cast.server()}/databases/{cast.draw(*_NAMES)}")


async def replaces(cast: Cast) -> str:
    """Drop a database and make another one of its name."""
    path = f"{cast.server()}/databases/{cast.draw(*_NAMES)}"
    dropped = _call(cast, "DELETE", path)
    await asyncio.sleep(cast.chance.uniform(3, 30))
    return f"{dropped}, {_call(cast, 'PUT', path, _NOTHING)}"


async def edits(cast: Cast) -> str:
    """Change a setting or the password, take the tags by which a server is known, stop it or start it."""
    server = cast.server()
    change = cast.draw({"tags": {}}, {"tags": {"costs": "77"}}, {"sku": {"name": "Standard_D4ds_v5"}},
                       {"properties": {"backup": {"backupRetentionDays": 12}}},
                       {"properties": {"administratorLoginPassword": "Strangers-1"}}, "stop", "start")  # fmt: skip
    if isinstance(change, str):
        return _call(cast, "POST", f"{server}/{change}")
    return f"{_call(cast, 'PATCH', server, change)} {sorted(change)}"


async def deletes(cast: Cast) -> str:
    return _call(cast, "DELETE", cast.server())


async def cloud_changes(cast: Cast) -> str:
    """Have something happen to a server, to the next operation, or to what is known of those before."""
    server, cloud = cast.server(), _cloud(cast)
    change = cast.draw({"state": "Disabled"}, {"state": "Inaccessible"}, {"state": "Ready"}, {"vanish": True},
                       {"vanish": True}, {"autogrow": True}, {"minor": "99"}, {"replace": True},
                       "fails", "forgets")  # fmt: skip
    if change == "fails":
        cloud.resources.operations.failures.append(OperationFailure(code="InternalServerError"))
    elif change == "forgets":
        for operation in cloud.resources.operations.list_of():
            cloud.resources.operations.lose(operation.id)
    elif server:
        cloud.steer(server, **change)
    return f"{server} {change}"


STRANGERS: Final = (
    (makes, 9),
    (drops, 1),
    (replaces, 1),
    (edits, 3),
    (deletes, 1),
    (cloud_changes, 4),
)


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


ACTS: Final = CloudActs(
    policies=(("Delete", "Delete", "Orphan"), ("Delete", "Orphan"), ("Delete", "Orphan")),
    shared=_SHARED,
    inside=_inside,
    storage=(32, 64, 128),
    database_fields=lambda has_one: {"databaseName": "{{ vars.database }}" if has_one else "{{ none }}"},
    strangers=STRANGERS,
    size="skuName",
    sizes={"small": "Standard_B2s", "medium": "Standard_D2ds_v5", "large": "Standard_D4ds_v5"},
)
