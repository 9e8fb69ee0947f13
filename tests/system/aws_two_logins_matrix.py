"""Two logins of an application on RDS: created so, rotated, moved from one, kept true, restored, and never shut out."""

import asyncio
import contextlib
import secrets
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, Aws, instance
from tests.support.kinds import SECRET, is_ready
from tests.support.rds_instance import Instance, actions
from tests.support.simulated_cloud import QUICK
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
_GRACE_S = 15
_TWO = {"loginCheck": "Required", "logins": "Alternating"}
_AS_ROLE = "SELECT session_user::text, current_user::text"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alternating(aws: Aws) -> Aws:
    """Return the simulated RDS with a provider whose former logins end soon, and a ProviderConfig of two logins."""
    await aws.start_provider(*QUICK, f"--rotation-grace={_GRACE_S}")
    await aws.system.until(AWS_CONFIG, "", "default", is_ready)
    await aws.system.create(AWS_CONFIG, aws.config("two", **_TWO))
    return aws


async def _rows(orders: Instance, sql: str) -> list[tuple[Any, ...]]:
    async with await orders.login() as connection:
        cursor = await connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []


async def _binding(orders: Instance) -> dict[str, str]:
    obj = await orders.system.api.get(orders.path)
    kept, connection = await orders.credentials(), obj["status"]["connection"]
    binding = {key: str(connection[key]) for key in ("host", "port", "database", "username", "sslmode")}
    return {**binding, "password": kept["current"], "certificates": kept["ca.crt"]}


async def _rotate(orders: Instance, **rotation: Any) -> JsonObject:
    """Ask for a rotation and wait until another login is published."""
    before = (await orders.system.api.get(orders.path))["status"]["connection"]
    await orders.patch({"spec": {"passwordRotation": {"token": secrets.token_hex(4), **rotation}}})

    def is_another(obj: JsonObject) -> bool:
        return bool(obj["status"]["connection"]["passwordRef"] != before["passwordRef"]) and is_ready(obj)

    return await orders.until_seen(is_another)


async def _is_refused(orders: Instance, binding: dict[str, str]) -> bool:
    return not await orders.system.logs_in_by(binding)


async def created_with_a_login_of_its_own(orders: Instance) -> None:
    since = await orders.aws.mark()
    made = await orders.create(config="two")
    assert made["status"]["connection"]["username"] == "boss_a"
    assert actions(await orders.changes(since)) == ["CreateDBInstance"]
    assert await _rows(orders, _AS_ROLE) == [("boss_a", "boss_owner")]
    await _rows(orders, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    for role in ("rds_superuser", "boss"):
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            await _rows(orders, f"SET ROLE {role}")
            raise AssertionError(f"the application may become {role}")
    rights = await _rows(orders, "SELECT rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = session_user")
    assert rights == [(False, False)]

    first = await _binding(orders)
    rotated = await _rotate(orders)
    assert rotated["status"]["connection"]["username"] == "boss_b"
    assert actions(await orders.changes(since)) == ["CreateDBInstance"], "RDS is asked for nothing"
    assert await orders.system.logs_in_by(first), "the former login works for its grace"
    await _rows(orders, "ALTER TABLE harvest ADD COLUMN year int")
    await eventually(lambda: _is_refused(orders, first), "the former login has ended", limit_s=60)
    assert (await orders.until())["status"]["connection"]["username"] == "boss_b"


async def moved_at_its_next_rotation(orders: Instance) -> None:
    name = f"later-{orders.namespace}"
    await orders.system.create(AWS_CONFIG, orders.aws.config(name, loginCheck="Required"))
    made = await orders.create(config=name)
    assert made["status"]["connection"]["username"] == "boss"
    await _rows(orders, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    first = await _binding(orders)
    await orders.system.edit(AWS_CONFIG, "", name, {"spec": {"logins": "Alternating"}})
    since = await orders.aws.mark()
    async with await orders.system.login_by(first) as running:
        moved = await _rotate(orders)
        assert moved["status"]["connection"]["username"] == "boss_a"
        assert actions(await orders.changes(since)) == [], "the administrator's password is the application's still"
        assert await _rows(orders, "SELECT bushels FROM harvest") == [(42,)]
        await _rows(orders, "ALTER TABLE harvest ADD COLUMN year int")
        # What has been running since before, and what comes anew with the former login, may go on.
        await running.execute("INSERT INTO harvest VALUES (43, 2026)")
        await running.execute("CREATE TABLE by_who_runs AS SELECT 1 AS number")
        async with await orders.system.login_by(first) as late:
            await late.execute("CREATE TABLE by_who_comes AS SELECT 2 AS number")
        assert await _rows(orders, "SELECT number FROM by_who_comes") == [(2,)]
    await eventually(lambda: _is_refused(orders, first), "the administrator's former password has ended", limit_s=90)
    owners = "SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = 'public'"

    async def is_all_the_owners() -> bool:
        return await _rows(orders, owners) == [("boss_owner",)]

    await eventually(is_all_the_owners, "all tables are the owner role's", limit_s=90)
    settled = await orders.until()
    assert settled["status"]["connection"]["username"] == "boss_a"
    assert "retiring" not in settled["status"].get("rotation", {})
    assert actions(await orders.changes(since)) == ["ModifyDBInstance"]
    assert (await _rotate(orders))["status"]["connection"]["username"] == "boss_b"
    assert actions(await orders.changes(since)) == ["ModifyDBInstance"]


async def put_back_when_a_person_took_the_administrator(orders: Instance) -> None:
    await orders.create(config="two")
    binding = await _binding(orders)
    await orders.aws.person(
        "modify_db_instance", DBInstanceIdentifier=await orders.external(), MasterUserPassword="by-hand-4711"
    )
    by_hand = {**binding, "username": "boss", "password": "by-hand-4711"}

    async def is_in() -> bool:
        return await orders.system.logs_in_by(by_hand)

    await eventually(is_in, "the person's password counts", limit_s=60)
    async with await orders.system.login_by(by_hand) as person:
        await person.execute("ALTER ROLE boss_a NOLOGIN CREATEROLE PASSWORD NULL")
        await person.execute("REVOKE boss_owner FROM boss_a")
        await person.execute("CREATE TABLE by_hand AS SELECT 1 AS number")
    await orders.annotate(**{"reconcile-requested-at": secrets.token_hex(4)})

    async def is_back() -> bool:
        return await orders.system.logs_in_by(binding) and await _is_refused(orders, by_hand)

    await eventually(is_back, "the application is in again, and the person is not", limit_s=120)
    await orders.until()
    assert await _rows(orders, _AS_ROLE) == [("boss_a", "boss_owner")]
    await _rows(orders, "DROP TABLE by_hand")


async def its_lost_secret_shuts_nobody_out(orders: Instance) -> None:
    await orders.create(config="two")
    first, since = await _binding(orders), await orders.aws.mark()
    await orders.system.api.delete(SECRET.path(orders.namespace, f"{orders.name}-credentials"))
    await orders.annotate(**{"reconcile-requested-at": secrets.token_hex(4)})
    await orders.until("PasswordUnknown")
    assert await orders.system.logs_in_by(first)
    rotated = await _rotate(orders)
    assert rotated["status"]["connection"]["username"] == "boss_b"
    assert await orders.system.logs_in_by(await _binding(orders))
    assert actions(await orders.changes(since)) == []


async def restored_with_its_data_and_another_password(orders: Instance) -> None:
    await orders.create(config="two", deletionPolicy="Snapshot")
    await _rows(orders, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    former = await _binding(orders)
    name, since = await orders.external(), await orders.aws.mark()
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    listed = (await orders.aws.person("describe_db_snapshots", DBInstanceIdentifier=name))["DBSnapshots"]
    (final,) = (snapshot for snapshot in listed if snapshot["SnapshotType"] == "manual")
    heir = Instance(orders.aws, orders.namespace, f"{orders.name}-heir")
    source = {"restoreFrom": {"dbSnapshotIdentifier": final["DBSnapshotIdentifier"]}}
    await heir.system.create(RDS_INSTANCE, instance(heir.namespace, heir.name, config="two", forProvider=source))
    made = await heir.until()
    assert made["status"]["connection"]["username"] == "boss_a"
    assert actions(await heir.changes(since)) == ["RestoreDBInstanceFromDBSnapshot", "ModifyDBInstance"]
    await _rows(heir, "UPDATE harvest SET bushels = 43")
    there = await _binding(heir)
    assert await _is_refused(heir, {**there, "password": former["password"]})


LIVES = (
    created_with_a_login_of_its_own,
    moved_at_its_next_rotation,
    put_back_when_a_person_took_the_administrator,
    its_lost_secret_shuts_nobody_out,
    restored_with_its_data_and_another_password,
)


async def test_lives_of_two_logins_side_by_side(alternating: Aws, namespace: str) -> None:
    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        for number, life in enumerate(LIVES):
            group.create_task(life(Instance(alternating, namespace, f"life-{number}")), name=life.__name__)
