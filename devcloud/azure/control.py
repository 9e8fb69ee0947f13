"""What Azure adds to the control API of tests (`devcloud.simulator.control`).

- `GET /servers`: those that there are, and the state of each; `GET /dropped`: those that can be revived.
- `GET /servers/NAME`: what the newest api-version shows of a server, without lag, and in `children` what is in it;
  `GET /views`: the same of all servers.
- `POST /servers/NAME`, one of: `{"vanish": true}` without a trace; `{"state": "Disabled"}` (or `Inaccessible`,
  `Ready`); `{"properties": {...}}`, `{"tags": {...}}` and `{"sku": {...}}`, changed by somebody else; `{"autogrow":
  true}`, the next size of disk; `{"minor": "12"}`, another minor version; `{"replace": true}`, by another server of
  the name, without tags.
- `POST /servers/NAME/configurations/NAME`, `{"value"}` (null is the default); `POST /servers/NAME/firewallRules/NAME`,
  `{"startIpAddress", "endIpAddress"}`; `POST /servers/NAME/databases/NAME`, `{"charset", "collation"}`: likewise by
  somebody else; `DELETE` of a rule or a database. A database is made and deleted in ARM alone, not in PostgreSQL.
- `GET|POST /principals` (see `directory.Principal`); `POST /roles` (see `directory.Assignment`);
  `DELETE /roles/OBJECT`. `POST /metadata`: `{"client_id"}`, whose token the metadata service gives; empty closes it.
- `POST /subscriptions/ID`, `{"tenant"}`: one more. `POST /tokens`, `{"expired": true}`: the time of those that were
  given out is up; `DELETE /tokens`: they are forgotten.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from devcloud.azure.api.calls import Cloud
from devcloud.azure.entra.directory import Assignment, Principal
from devcloud.azure.lifecycle.effects import (
    DropDatabase,
    DropRule,
    PutDatabase,
    PutRule,
    ServerEffect,
    SetConfiguration,
    server_after,
)
from devcloud.azure.lifecycle.fields import merged
from devcloud.azure.state import catalog
from devcloud.azure.state.api_versions import VERSIONS
from devcloud.azure.state.model import SYSTEM_DATABASES, Database, Properties, Rule, Server, Sku
from devcloud.azure.state.views import server_view, time_text
from devcloud.simulator.messages import ControlError, no_route
from runtime import randomness


def answer(cloud: Cloud, method: str, path: tuple[str, ...], content: Any) -> Any:
    """Carry out a request of a test and return what becomes JSON.

    Raises:
        ControlError: There is none of it, or it makes no sense.
    """
    match method, path:
        case "GET", ("servers",):
            return {name: cloud.resources.state_of(server) for name, server in cloud.resources.servers.items()}
        case "GET", ("views",):
            return [_shown(cloud, server) for server in cloud.resources.servers.values()]
        case "GET", ("dropped",):
            return {entry.server.arm_id: time_text(entry.until) for entry in cloud.resources.dropped.values()}
        case _, ("servers", name, *rest):
            return _server(cloud, method, name, tuple(rest), content)
        case _, ("metadata" | "principals" | "roles" | "subscriptions" | "tokens", *_):
            return _identities(cloud, method, path, content)
        case _:
            raise no_route(method, path)


def _identities(cloud: Cloud, method: str, path: tuple[str, ...], content: Any) -> Any:
    directory = cloud.directory
    match method, path:
        case "GET", ("principals",):
            return {entry.client_id: entry.object_id for entry in directory.principals.values()}
        case "POST", ("principals",):
            directory.add(msgspec.convert(content, Principal))
        case "POST", ("metadata",):
            directory.run_as(msgspec.convert(content["client_id"], str))
        case "POST", ("roles",):
            directory.assign(msgspec.convert(content, Assignment))
        case "DELETE", ("roles", object_id):
            directory.revoke(object_id)
        case "POST", ("subscriptions", subscription):
            directory.subscriptions[subscription.lower()] = msgspec.convert(content["tenant"], str)
            directory.changes += 1
        case "POST", ("tokens",) if content.get("expired"):
            grants = cloud.tokens.grants
            past = datetime.fromtimestamp(0, UTC)
            cloud.tokens.grants = {key: msgspec.structs.replace(grants[key], expires_at=past) for key in grants}
        case "DELETE", ("tokens",):
            cloud.tokens.grants.clear()
        case _:
            raise no_route(method, path)
    return {}


def _server(cloud: Cloud, method: str, name: str, rest: tuple[str, ...], content: Any) -> Any:
    server = cloud.resources.servers.get(name)
    if server is None:
        raise ControlError(f"there is no server {name!r}")
    match method, rest:
        case "GET", ():
            return _shown(cloud, server)
        case "POST", () if content.get("vanish"):
            cloud.resources.vanish(name)
        case "POST", ():
            cloud.resources.keep(_changed(cloud, server, content))
        case "POST", ("configurations", parameter):
            _keep_after(cloud, server, SetConfiguration(name, parameter, msgspec.convert(content["value"], str | None)))
        case "POST", ("firewallRules", rule):
            _keep_after(cloud, server, PutRule(name, rule, msgspec.convert(content, Rule)))
        case "DELETE", ("firewallRules", rule):
            _keep_after(cloud, server, DropRule(name, rule))
        case "POST", ("databases", database):
            _keep_after(cloud, server, PutDatabase(name, database, msgspec.convert(content, Database)))
        case "DELETE", ("databases", database):
            _keep_after(cloud, server, DropDatabase(name, database))
        case _:
            raise no_route(method, ("servers", name, *rest))
    return {}


def _shown(cloud: Cloud, server: Server) -> dict[str, Any]:
    children = {
        "databases": server.databases,
        "firewallRules": server.rules,
        "configurations": server.overrides,
    }
    return {**server_view(server, cloud.resources.state_of(server), VERSIONS[-1]), "children": children}


def _keep_after(cloud: Cloud, server: Server, effect: ServerEffect) -> None:
    after = server_after(server, effect, cloud.clock.now())
    if after is not None:
        cloud.resources.keep(after)
        cloud.resources.set_access(after)


def _changed(cloud: Cloud, server: Server, content: Any) -> Server:
    """Return a server that somebody, or Azure itself, has changed."""
    properties: dict[str, Any] = msgspec.to_builtins(server.properties)
    match content:
        case {"state": "Disabled" | "Inaccessible" | "Ready" as state}:
            properties["state"] = state
        case {"properties": dict() as changes}:
            properties = merged(properties, changes)
        case {"tags": dict() as tags}:
            return msgspec.structs.replace(server, tags=msgspec.convert(tags, dict[str, str]))
        case {"sku": dict() as sku}:
            return msgspec.structs.replace(server, sku=msgspec.convert(sku, Sku))
        case {"autogrow": True}:
            size = min(gib for gib in catalog.DISKS if gib > server.properties.storage.storage_size_gb)
            properties["storage"] |= {
                "storageSizeGB": size,
                "tier": catalog.DISKS[size].tier,
                "iops": catalog.DISKS[size].iops,
            }
        case {"minor": str() as minor}:
            properties["minorVersion"] = minor
        case {"replace": True}:
            return msgspec.structs.replace(
                server,
                resource_id=randomness.token_hex(8),
                created_at=cloud.clock.now(),
                tags=None,
                databases=SYSTEM_DATABASES,
                rules={},
                overrides={},
            )
        case _:
            raise ControlError(f"a server is not changed by {content!r}")
    return msgspec.structs.replace(server, properties=msgspec.convert(properties, Properties))
