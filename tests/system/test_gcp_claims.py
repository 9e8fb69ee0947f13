"""A claim in a namespace of Google Cloud: its instance, database and user; by an account that may do no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from devcloud.gcp.platform import ACCOUNT, PROJECT
from fairlead import psql
from tests.support.api import JsonObject
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    Gcp,
    at_work,
    instance,
    simulated_cloud_sql,
    user,
)
from tests.support.kinds import CLAIM, SECRET, claim, condition, is_ready
from tests.support.system import System, decoded
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

IAM = Path(__file__).resolve().parents[2] / "deploy" / "iam" / "gcp"
_LIMIT_S = 180.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gcp(system: System) -> AsyncIterator[Gcp]:
    """Yield composer and provider at work, the provider with the rights of the shipped roles."""
    async with simulated_cloud_sql(system) as made:
        roles = []
        for path in sorted(IAM.glob("*.json")):
            role = json.loads(await asyncio.to_thread(path.read_text, encoding="utf-8"))
            name = f"projects/{PROJECT}/roles/{path.stem}"
            await made.control("POST", "roles", {"name": name, "permissions": role["includedPermissions"]})
            roles.append(name)
        await made.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": roles})
        await at_work(made)
        yield made


async def _ready(gcp: Gcp, namespace: str, name: str, **spec: Any) -> JsonObject:
    await gcp.system.create(CLAIM, claim(namespace, name, **spec))
    return await gcp.system.until(CLAIM, namespace, name, is_ready, limit_s=_LIMIT_S)


async def _server_of(gcp: Gcp, namespace: str, name: str) -> str:
    child = await gcp.child(namespace, name, CLOUD_SQL_INSTANCE.kind)
    return str(child["status"]["externalName"])


async def _actions(gcp: Gcp, since: int) -> list[str]:
    return [str(call["action"]) for call in await gcp.changes(since)]


async def test_a_claim_is_served_mended_and_kept_in_a_backup(gcp: Gcp) -> None:
    system = gcp.system
    async with gcp.namespace() as namespace:
        since = await gcp.mark()
        made = await _ready(gcp, namespace, "orders", parameters={"work_mem": "8MB"}, deletionPolicy="Snapshot")
        assert await _actions(gcp, since) == ["instances.insert", "databases.insert", "users.insert"]
        binding = await system.binding(namespace, "orders")
        assert (binding["provider"], binding["database"], binding["username"]) == ("gcp", "orders", "orders_app")
        assert made["status"]["endpoint"] == binding["host"]
        server = await _server_of(gcp, namespace, "orders")

        await _psql_opens_it(gcp, namespace, server)
        await _drift_is_put_back(gcp, server)
        await _the_next_authority_is_published_before_it_signs(gcp, namespace, server)
        await _a_replaced_authority_is_published(gcp, namespace, server)
        await _another_password_follows(gcp, namespace)
        await _a_password_set_by_hand_is_said(gcp, namespace, server)
        backup = await _a_final_backup_is_kept(gcp, namespace, server)
        await _its_row_is_read_back(gcp, namespace, backup)


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
    assert set(await _actions(gcp, since)) == {"instances.patch"}


async def _the_next_authority_is_published_before_it_signs(gcp: Gcp, namespace: str, server: str) -> None:
    """Prove that a rotation as Google makes it refuses no login: the Secret has the next authority before."""
    before, since = await gcp.system.binding(namespace, "orders"), await gcp.mark()
    await gcp.person("POST", f"instances/{server}/addServerCa")
    child = await gcp.child(namespace, "orders", CLOUD_SQL_USER.kind)
    await gcp.system.ask_for_a_pass(CLOUD_SQL_USER, namespace, child["metadata"]["name"])
    both = await _with_authorities(gcp, namespace, server)
    assert both["certificates"].count("BEGIN CERTIFICATE") == 2

    await gcp.person("POST", f"instances/{server}/rotateServerCa", {})
    assert await gcp.logs_in(both)
    assert not await gcp.logs_in(before)
    assert both["password"] == before["password"]
    assert await _actions(gcp, since) == []


async def _a_replaced_authority_is_published(gcp: Gcp, namespace: str, server: str) -> None:
    """Prove that an authority that nobody announced reaches the Secret by the list of instances."""
    before, since = await gcp.system.binding(namespace, "orders"), await gcp.mark()
    former = await gcp.instance(server)
    assert former is not None
    await gcp.strike(server, rotate=True)
    await gcp.until(server, lambda shown: bool(shown["serverCaCert"] != former["serverCaCert"]))
    after = await _with_authorities(gcp, namespace, server)
    assert after["password"] == before["password"]
    assert await gcp.logs_in(after)
    assert not await gcp.logs_in(before)
    assert await _actions(gcp, since) == []


async def _with_authorities(gcp: Gcp, namespace: str, server: str) -> dict[str, str]:
    """Wait until the Secret has the authorities that a client is to trust now, and no other; return it."""
    listed = await gcp.person("GET", f"instances/{server}/listServerCas")
    trusted = sorted(str(certificate["cert"]).strip() for certificate in listed["certs"])

    async def is_published() -> dict[str, str] | None:
        binding = await gcp.system.binding(namespace, "orders")
        return binding if binding["certificates"] == "".join(f"{pem}\n" for pem in trusted) else None

    return await eventually(is_published, "the instance's authorities are in the Secret", limit_s=_LIMIT_S)


async def _another_password_follows(gcp: Gcp, namespace: str) -> None:
    before, since = await gcp.system.binding(namespace, "orders"), await gcp.mark()
    await gcp.system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "2026-11"}}})
    after = await _another_password(gcp, namespace, before)
    assert await gcp.logs_in(after)
    assert not await gcp.logs_in(before)
    assert await _actions(gcp, since) == ["users.update"]


async def _another_password(gcp: Gcp, namespace: str, before: dict[str, str]) -> dict[str, str]:
    async def is_another() -> dict[str, str] | None:
        binding = await gcp.system.binding(namespace, "orders")
        return binding if binding["password"] != before["password"] else None

    after = await eventually(is_another, "the Secret has another password", limit_s=_LIMIT_S)
    await gcp.system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)
    return after


async def _a_password_set_by_hand_is_said(gcp: Gcp, namespace: str, server: str) -> None:
    """Prove that the one login's password is never put back against whoever changed it, until a rotation is wanted."""
    before = await gcp.system.binding(namespace, "orders")
    await gcp.person("PUT", f"instances/{server}/users?name=orders_app", {"password": "changed-by-hand"})
    child = await gcp.child(namespace, "orders", CLOUD_SQL_USER.kind)
    await gcp.system.ask_for_a_pass(CLOUD_SQL_USER, namespace, child["metadata"]["name"])
    await gcp.system.until(
        CLAIM,
        namespace,
        "orders",
        lambda obj: condition(obj, "Ready").get("reason") == "PasswordUnknown",
        limit_s=_LIMIT_S,
    )
    await gcp.system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "2026-12"}}})
    assert await gcp.logs_in(await _another_password(gcp, namespace, before))


async def _a_final_backup_is_kept(gcp: Gcp, namespace: str, server: str) -> str:
    since = await gcp.mark()
    await gcp.system.delete(CLAIM, namespace, "orders")
    assert await _actions(gcp, since) == ["instances.delete"]
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
    await _ready(gcp, namespace, "again", **kept, restoreFrom={"backup": backup})
    assert await _actions(gcp, since) == ["instances.restoreBackup", "users.update"]
    binding = await gcp.system.binding(namespace, "again")
    assert await gcp.rows(binding, "SELECT name FROM goods") == [("canary",)]
    assert not await gcp.logs_in({**binding, "password": "changed-by-hand"})

    server, since = await _server_of(gcp, namespace, "again"), await gcp.mark()
    await gcp.system.delete(CLAIM, namespace, "again")
    assert await gcp.instance(server) is None
    assert (await _actions(gcp, since))[-1] == "instances.delete"


async def test_a_claim_that_is_orphaned_leaves_its_database_at_work(gcp: Gcp) -> None:
    async with gcp.namespace() as namespace:
        await _ready(gcp, namespace, "orders", deletionPolicy="Orphan")
        binding, server = await gcp.system.binding(namespace, "orders"), await _server_of(gcp, namespace, "orders")
        await gcp.rows(binding, "CREATE TABLE goods AS SELECT 'canary' AS name")
        since = await gcp.mark()

        await gcp.system.delete(CLAIM, namespace, "orders")

        assert await _actions(gcp, since) == ["instances.patch"]
        assert await gcp.rows(binding, "SELECT name FROM goods") == [("canary",)]
        left = await gcp.instance(server)
        assert left is not None
        assert "fairlead-released" in left["settings"]["userLabels"]


async def test_a_user_of_iam_has_no_password(gcp: Gcp) -> None:
    system = gcp.system
    async with gcp.namespace() as namespace:
        flags = {"databaseFlags": {"cloudsql.iam_authentication": "on"}}
        await system.create(CLOUD_SQL_INSTANCE, instance(namespace, "shared", forProvider=flags))
        names = {"CLOUD_IAM_USER": "dev@example.com", "CLOUD_IAM_SERVICE_ACCOUNT": f"app@{PROJECT}.iam"}
        for number, (kind, name) in enumerate(names.items()):
            obj = user(namespace, f"iam-{number}", server="shared", name=name, type=kind)
            await system.create(CLOUD_SQL_USER, obj)
        for number in range(len(names)):
            made = await system.until(CLOUD_SQL_USER, namespace, f"iam-{number}", is_ready, limit_s=_LIMIT_S)
            assert "passwordRef" not in made["status"].get("connection", {})
        server = await gcp.external(CLOUD_SQL_INSTANCE, namespace, "shared")
        users = (await gcp.person("GET", f"instances/{server}/users"))["items"]
        assert {item["name"]: item["type"] for item in users if "type" in item} == {
            name: kind for kind, name in names.items()
        }
        assert [secret["metadata"]["name"] for secret in await system.api.items(SECRET.path(namespace))] == []
        await system.delete(CLOUD_SQL_INSTANCE, namespace, "shared")


async def test_the_shipped_roles_suffice_and_delete_by_a_role_of_their_own(gcp: Gcp) -> None:
    """Prove that without the role for deletion a claim's deletion waits, and says what is missing."""
    system, viewer = gcp.system, f"projects/{PROJECT}/roles/fairlead-provider-gcp"
    async with gcp.namespace() as namespace:
        await _ready(gcp, namespace, "orders", deletionPolicy="Delete")
        binding = await system.binding(namespace, "orders")
        await gcp.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": [viewer]})
        await system.api.delete(CLAIM.path(namespace, "orders"))

        def is_denied(obj: JsonObject) -> bool:
            return condition(obj, "Synced").get("reason") == "AccessDenied"

        child = await gcp.child(namespace, "orders", CLOUD_SQL_INSTANCE.kind)
        name = child["metadata"]["name"]
        await system.until(CLOUD_SQL_INSTANCE, namespace, name, is_denied, limit_s=_LIMIT_S)
        assert await gcp.logs_in(binding)
        both = [viewer, f"{viewer}-delete"]
        await gcp.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": both})
        await system.ask_for_a_pass(CLOUD_SQL_INSTANCE, namespace, name)
        await system.api.until_gone(CLAIM.path(namespace, "orders"), limit_s=_LIMIT_S)
        with pytest.raises(psycopg.OperationalError):
            await gcp.login(binding)
