"""Two logins of a user of Cloud SQL alternate, run by `make faults`."""

from __future__ import annotations

import pytest

from tests.support.api import JsonObject
from tests.support.gcp import CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, Gcp, at_work, instance, user
from tests.support.kinds import SECRET, condition, is_ready
from tests.support.system import decoded
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

_LIMIT_S = 180.0


async def test_two_logins_alternate_and_none_is_refused(gcp: Gcp) -> None:
    system = gcp.system
    await at_work(gcp)
    async with gcp.namespace() as namespace:
        await system.create(CLOUD_SQL_INSTANCE, instance(namespace, "shared"))
        await system.until(CLOUD_SQL_INSTANCE, namespace, "shared", is_ready, limit_s=_LIMIT_S)
        server = await gcp.external(CLOUD_SQL_INSTANCE, namespace, "shared")
        alternating = {"logins": "Alternating", "databaseRoles": ["shop_owner"]}

        await system.create(CLOUD_SQL_USER, user(namespace, "app", server="shared", **alternating))
        lacking = await system.until(
            CLOUD_SQL_USER,
            namespace,
            "app",
            lambda obj: condition(obj, "Synced").get("reason") == "ReferenceNotFound",
            limit_s=_LIMIT_S,
        )
        assert 'role "shop_owner" does not exist' in condition(lacking, "Synced")["message"]
        await gcp.make_role(server, "shop_owner")
        await system.ask_for_a_pass(CLOUD_SQL_USER, namespace, "app")
        first = await _login_of(gcp, namespace, "app_a")
        await gcp.rows(first, "ALTER ROLE CURRENT_USER SET role = shop_owner")
        await gcp.rows(first, "CREATE TABLE goods AS SELECT 'canary' AS name")

        rotation = {"spec": {"passwordRotation": {"token": "2026-11"}}}
        await system.edit(CLOUD_SQL_USER, namespace, "app", rotation)
        second = await _login_of(gcp, namespace, "app_b")
        # Both work for the former one's grace, and both are the owner.
        await gcp.rows(second, "ALTER ROLE CURRENT_USER SET role = shop_owner")
        await gcp.rows(second, "ALTER TABLE goods ADD COLUMN number int")
        assert await gcp.rows(first, "SELECT name, number FROM goods") == [("canary", None)]

        # Forced, the next one does not wait for the former login's hour, and that of before ends within a minute.
        force = {"spec": {"passwordRotation": {"token": "2026-12", "force": True}}}
        await system.edit(CLOUD_SQL_USER, namespace, "app", force)
        third = await _login_of(gcp, namespace, "app_a", other_than=first["password"])
        assert await gcp.rows(third, "SELECT name FROM goods") == [("canary",)]
        assert await gcp.rows(second, "SELECT name FROM goods") == [("canary",)]
        assert not await gcp.logs_in(first)

        async def has_ended() -> bool:
            return not await gcp.logs_in(second)

        await eventually(has_ended, "the former login has ended", limit_s=_LIMIT_S)
        assert await gcp.logs_in(third)
        for kind, name in ((CLOUD_SQL_USER, "app"), (CLOUD_SQL_INSTANCE, "shared")):
            await system.delete(kind, namespace, name)


async def _login_of(gcp: Gcp, namespace: str, username: str, *, other_than: str = "") -> dict[str, str]:
    """Wait until a login is published with another password, Ready and in sync; return it as a connection Secret."""

    async def published() -> tuple[JsonObject, dict[str, str]] | None:
        obj = await gcp.system.api.get(CLOUD_SQL_USER.path(namespace, "app"))
        connection = obj.get("status", {}).get("connection", {})
        if not is_ready(obj) or connection.get("username") != username:
            return None
        kept = decoded(await gcp.system.api.get(SECRET.path(namespace, "app-credentials")))
        return (obj, kept) if kept["current"] != other_than else None

    obj, kept = await eventually(published, f"login {username} is published", limit_s=_LIMIT_S)
    connection = obj["status"]["connection"]
    binding = {key: str(connection[key]) for key in ("host", "port", "database", "username", "sslmode")}
    return {**binding, "password": kept["current"], "certificates": kept["ca.crt"]}
