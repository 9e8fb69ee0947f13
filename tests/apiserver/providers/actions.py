"""What the tests of a provider do again and again."""

from __future__ import annotations

import base64
from typing import Any

from providers.external.credential import Credential, Login
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.login import try_login
from tests.support.api import JsonObject, connect
from tests.support.kinds import DATABASE, SECRET, database, is_ready
from tests.support.system import System
from tests.support.waiting import eventually


async def ready(system: System, namespace: str, name: str) -> JsonObject:
    return await system.until(DATABASE, namespace, name, is_ready)


async def made(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(DATABASE, database(namespace, name, **spec))
    return await ready(system, namespace, name)


async def kept(system: System, namespace: str, name: str) -> dict[str, str]:
    """Return the decoded credentials of a resource."""
    secret = await system.api.get(SECRET.path(namespace, f"{name}-credentials"))
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


async def login(system: System, obj: JsonObject, *, username: str = "", password: str = "") -> Login:
    """Log in with what is published, or with another login and password."""
    connection, meta = obj["status"]["connection"], obj["metadata"]
    credentials = await kept(system, meta["namespace"], meta["name"])
    endpoint = Endpoint(connection["host"], connection["port"], connection["database"], VERIFIED, credentials["ca.crt"])
    credential = Credential(username or credentials["username"], password or credentials["current"])
    answer, _ = await try_login(endpoint, credential)
    return answer


async def databases(system: System) -> set[str]:
    rows = await system.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    return {str(name) for (name,) in rows}


async def annotate(system: System, namespace: str, name: str, **annotations: str | None) -> None:
    values = {f"fairlead.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    await system.edit(DATABASE, namespace, name, {"metadata": {"annotations": values}})


async def instruct(system: System, namespace: str, name: str, instruction: str) -> None:
    """Write the teardown instruction as the composer: nobody else may."""
    kubeconfig = await system.plane.service_account_kubeconfig("fairlead-system", "fairlead-composer")
    async with connect(kubeconfig) as composer:
        annotations = {"fairlead.dev/teardown": instruction}
        await composer.merge(DATABASE.path(namespace, name), {"metadata": {"annotations": annotations}})


async def poke(system: System, namespace: str, name: str) -> JsonObject:
    """Ask for a pass and wait for its echo."""
    await system.ask_for_a_pass(DATABASE, namespace, name)
    obj = await system.api.get(DATABASE.path(namespace, name))
    token = obj["metadata"]["annotations"]["fairlead.dev/reconcile-requested-at"]

    def echoed(obj: JsonObject) -> bool:
        return bool(obj["status"].get("lastHandledReconcileAt") == token)

    return await system.until(DATABASE, namespace, name, echoed)


async def refused(system: System, obj: JsonObject, username: str, password: str) -> None:
    """Wait until a login is refused."""

    async def is_refused() -> bool:
        return await login(system, obj, username=username, password=password) is Login.REFUSED

    await eventually(is_refused, f"{username} is refused")
