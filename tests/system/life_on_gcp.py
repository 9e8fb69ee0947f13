"""A claim in a namespace of Google Cloud: its instance, database and user; by an account that may do no more."""

from __future__ import annotations

import asyncio
from typing import Any

from devcloud.gcp.platform import PROJECT
from fairlead import psql
from tests.support.api import JsonObject
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    Gcp,
)
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.system import decoded
from tests.support.waiting import eventually

LIMIT_S = 180.0


async def ready(gcp: Gcp, namespace: str, name: str, **spec: Any) -> JsonObject:
    await gcp.system.create(CLAIM, claim(namespace, name, **spec))
    return await gcp.system.until(CLAIM, namespace, name, is_ready, limit_s=LIMIT_S)


async def server_of(gcp: Gcp, namespace: str, name: str) -> str:
    child = await gcp.child(namespace, name, CLOUD_SQL_INSTANCE.kind)
    return str(child["status"]["externalName"])


async def actions(gcp: Gcp, since: int) -> list[str]:
    return [str(call["action"]) for call in await gcp.changes(since)]


async def live(gcp: Gcp) -> None:
    """Serve a claim, put drift back, rotate its password, and take it away with a backup."""
    system = gcp.system
    async with gcp.namespace() as namespace:
        since = await gcp.mark()
        made = await ready(gcp, namespace, "orders", parameters={"work_mem": "8MB"}, deletionPolicy="Snapshot")
        assert await actions(gcp, since) == ["instances.insert", "databases.insert", "users.insert"]
        binding = await system.binding(namespace, "orders")
        assert (binding["provider"], binding["database"], binding["username"]) == ("gcp", "orders", "orders_app")
        assert made["status"]["endpoint"] == binding["host"]
        server = await server_of(gcp, namespace, "orders")

        await _psql_opens_it(gcp, namespace, server)
        await _drift_is_put_back(gcp, server)
        await _another_password_follows(gcp, namespace)
        await _it_is_restored_to_a_time(gcp, namespace)
        await _its_row_is_read_back(gcp, namespace, await _a_final_backup_is_kept(gcp, namespace, server))


async def _psql_opens_it(gcp: Gcp, namespace: str, server: str) -> None:
    """Prove that psql opens the database by the Secret, and that its authority and its name are the instance's."""
    secret = await gcp.system.api.get(SECRET.path(namespace, "orders-connection"))
    login = psql.login_in(secret, "orders-connection")
    statements = "CREATE TABLE goods AS SELECT 'canary' AS name; SELECT name FROM goods"
    answer = await asyncio.to_thread(psql.capture, login, ["--tuples-only", "--no-align", "--command", statements])
    assert (answer.returncode, answer.stdout.split()[-1]) == (0, "canary"), answer.stderr

    binding = decoded(secret)
    # Cloud SQL's certificate names the instance and no address: libpq verifies that name where it is given beside it.
    by_name = {"host": f"{PROJECT}:{server}", "hostaddr": binding["host"], "sslmode": "verify-full"}
    assert await gcp.logs_in(binding, **by_name)
    assert not await gcp.logs_in(binding, sslmode="verify-full")


async def _drift_is_put_back(gcp: Gcp, server: str) -> None:
    since = await gcp.mark()
    await gcp.person("PATCH", f"instances/{server}", {"settings": {"deletionProtectionEnabled": True}})
    await gcp.until(server, lambda shown: not shown["settings"]["deletionProtectionEnabled"])
    assert set(await actions(gcp, since)) == {"instances.patch"}


async def _another_password_follows(gcp: Gcp, namespace: str) -> None:
    before, since = await gcp.system.binding(namespace, "orders"), await gcp.mark()
    await gcp.system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "2026-11"}}})
    after = await _another_password(gcp, namespace, before)
    assert await gcp.logs_in(after)
    assert not await gcp.logs_in(before)
    assert await actions(gcp, since) == ["users.update"]


async def _another_password(gcp: Gcp, namespace: str, before: dict[str, str]) -> dict[str, str]:
    async def is_another() -> dict[str, str] | None:
        binding = await gcp.system.binding(namespace, "orders")
        return binding if binding["password"] != before["password"] else None

    after = await eventually(is_another, "the Secret has another password", limit_s=LIMIT_S)
    await gcp.system.until(CLAIM, namespace, "orders", is_ready, limit_s=LIMIT_S)
    return after


async def _it_is_restored_to_a_time(gcp: Gcp, namespace: str) -> None:
    """Prove that another claim begins as this one was, by a password of its own."""
    since, time = await gcp.mark(), (await gcp.control("GET", "clock"))["now"]
    await ready(gcp, namespace, "then", deletionPolicy="Delete", restoreFrom={"claim": "orders", "time": time})
    assert await actions(gcp, since) == ["instances.clone", "instances.patch", "users.update"]
    binding = await gcp.system.binding(namespace, "then")
    assert await gcp.rows(binding, "SELECT name FROM goods") == [("canary",)]
    assert binding["password"] != (await gcp.system.binding(namespace, "orders"))["password"]
    await gcp.system.delete(CLAIM, namespace, "then")


async def _a_final_backup_is_kept(gcp: Gcp, namespace: str, server: str) -> str:
    since = await gcp.mark()
    await gcp.system.delete(CLAIM, namespace, "orders")
    assert await actions(gcp, since) == ["instances.delete"]
    assert await gcp.instance(server) is None
    for kind in (CLOUD_SQL_INSTANCE, CLOUD_SQL_DATABASE, CLOUD_SQL_USER):
        assert await gcp.system.api.items(kind.path(namespace)) == []
    (backup,) = (await gcp.person("GET", "backups"))["backups"]
    assert (backup["type"], backup["state"]) == ("FINAL", "SUCCESSFUL")
    return str(backup["name"])


async def _its_row_is_read_back(gcp: Gcp, namespace: str, backup: str) -> None:
    """Prove that a new claim begins with the data of the backup, by a password of its own."""
    since = await gcp.mark()
    kept = {"databaseName": "orders", "username": "orders_app", "deletionPolicy": "Delete"}
    await ready(gcp, namespace, "again", **kept, restoreFrom={"backup": backup})
    assert await actions(gcp, since) == ["instances.restoreBackup", "users.update"]
    binding = await gcp.system.binding(namespace, "again")
    assert await gcp.rows(binding, "SELECT name FROM goods") == [("canary",)]
    await gcp.system.delete(CLAIM, namespace, "again")
