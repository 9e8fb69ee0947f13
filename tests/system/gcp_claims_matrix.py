"""Ends of claims on Cloud SQL, users of IAM, and authorities that change; by the shipped roles."""

from __future__ import annotations

import psycopg
import pytest

from devcloud.gcp.platform import ACCOUNT, PROJECT
from tests.support.api import JsonObject
from tests.support.gcp import (
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    Gcp,
)
from tests.support.kinds import CLAIM, condition
from tests.support.waiting import eventually
from tests.system.life_on_gcp import LIMIT_S, a_final_backup_is_kept, actions, another_password, ready, server_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_shipped_roles_suffice_and_delete_by_a_role_of_their_own(fenced_gcp: Gcp) -> None:
    """Prove that without the role for deletion a claim's deletion waits, and says what is missing."""
    system, viewer = fenced_gcp.system, f"projects/{PROJECT}/roles/fairlead-provider-gcp"
    async with fenced_gcp.namespace() as namespace:
        await ready(fenced_gcp, namespace, "orders", deletionPolicy="Delete")
        binding = await system.binding(namespace, "orders")
        await fenced_gcp.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": [viewer]})
        await system.api.delete(CLAIM.path(namespace, "orders"))

        def is_denied(obj: JsonObject) -> bool:
            return condition(obj, "Synced").get("reason") == "AccessDenied"

        child = await fenced_gcp.child(namespace, "orders", CLOUD_SQL_INSTANCE.kind)
        name = child["metadata"]["name"]
        await system.until(CLOUD_SQL_INSTANCE, namespace, name, is_denied, limit_s=LIMIT_S)
        assert await fenced_gcp.logs_in(binding)
        both = [viewer, f"{viewer}-delete"]
        await fenced_gcp.control("POST", "bindings", {"project": PROJECT, "member": ACCOUNT, "roles": both})
        await system.ask_for_a_pass(CLOUD_SQL_INSTANCE, namespace, name)
        await system.api.until_gone(CLAIM.path(namespace, "orders"), limit_s=LIMIT_S)
        with pytest.raises(psycopg.OperationalError):
            await fenced_gcp.login(binding)


async def test_authorities_and_passwords_of_others_are_known_and_a_backups_row_is_read_back(fenced_gcp: Gcp) -> None:
    async with fenced_gcp.namespace() as namespace:
        await ready(fenced_gcp, namespace, "orders", deletionPolicy="Snapshot")
        binding, server = (
            await fenced_gcp.system.binding(namespace, "orders"),
            await server_of(fenced_gcp, namespace, "orders"),
        )
        await fenced_gcp.rows(binding, "CREATE TABLE goods AS SELECT 'canary' AS name")
        await _the_next_authority_is_published_before_it_signs(fenced_gcp, namespace, server)
        await _a_replaced_authority_is_published(fenced_gcp, namespace, server)
        await _a_password_set_by_hand_is_said(fenced_gcp, namespace, server)
        backup = await a_final_backup_is_kept(fenced_gcp, namespace, server)
        await _its_row_is_read_back(fenced_gcp, namespace, backup)


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
    assert await actions(gcp, since) == []


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
    assert await actions(gcp, since) == []


async def _with_authorities(gcp: Gcp, namespace: str, server: str) -> dict[str, str]:
    """Wait until the Secret has the authorities that a client is to trust now, and no other; return it."""
    listed = await gcp.person("GET", f"instances/{server}/listServerCas")
    trusted = sorted(str(certificate["cert"]).strip() for certificate in listed["certs"])

    async def is_published() -> dict[str, str] | None:
        binding = await gcp.system.binding(namespace, "orders")
        return binding if binding["certificates"] == "".join(f"{pem}\n" for pem in trusted) else None

    return await eventually(is_published, "the instance's authorities are in the Secret", limit_s=LIMIT_S)


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
        limit_s=LIMIT_S,
    )
    await gcp.system.edit(CLAIM, namespace, "orders", {"spec": {"passwordRotation": {"token": "2026-12"}}})
    assert await gcp.logs_in(await another_password(gcp, namespace, before))


async def _its_row_is_read_back(gcp: Gcp, namespace: str, backup: str) -> None:
    """Prove that a new claim begins with the data of the backup, by a password of its own."""
    since = await gcp.mark()
    kept = {"databaseName": "orders", "username": "orders_app", "deletionPolicy": "Delete"}
    await ready(gcp, namespace, "again", **kept, restoreFrom={"backup": backup})
    assert await actions(gcp, since) == ["instances.restoreBackup", "users.update"]
    binding = await gcp.system.binding(namespace, "again")
    assert await gcp.rows(binding, "SELECT name FROM goods") == [("canary",)]
    assert not await gcp.logs_in({**binding, "password": "changed-by-hand"})

    server, since = await server_of(gcp, namespace, "again"), await gcp.mark()
    await gcp.system.delete(CLAIM, namespace, "again")
    assert await gcp.instance(server) is None
    assert (await actions(gcp, since))[-1] == "instances.delete"
