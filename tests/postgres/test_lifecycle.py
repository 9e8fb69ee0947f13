"""A database on a real server from its creation to its end, and what the server refuses on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import psycopg
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.observation import Absent, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.incarnations import oid_of
from providers.onprem.names import retired_name
from runtime.errors import Blocked, Conflict, Terminal
from tests.postgres.conftest import FENCE, Database, config_of, credential, new_target, secrets_of

Make = Callable[..., Awaitable[Database]]


async def test_a_new_database_has_no_difference_and_works(make: Make) -> None:
    database = await make(connectionLimit=20, extensions=["plpgsql"], parameters={"work_mem": "8MB"}, version="16")

    assert await database.changes() == ()
    assert database.where.owner.owns((await database.look()).owner)
    assert await database.logs_in() is Login.OK
    assert await database.logs_in(credential(database.where, "wrong-password-1")) is Login.REFUSED
    async with await database.connect() as connection:
        cursor = await connection.execute("SHOW work_mem")
        assert await cursor.fetchone() == ("8MB",)
        await connection.execute("CREATE TABLE kept (line text)")
        cursor = await connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'kept'")
        assert await cursor.fetchone() == (database.name,)


async def test_two_logins_alternate_and_both_work(make: Make) -> None:
    database = await make()
    first = database.where.active
    async with await database.connect() as connection:
        await connection.execute("CREATE TABLE kept (line text)")
    other = Credential(first.removesuffix("_a") + "_b", "Another1password2here3")

    await database.cloud.set(database.where, await database.look(), other, FENCE)

    assert await database.logs_in() is Login.OK
    assert await database.logs_in(other) is Login.OK
    rotated = database.but(active=other.username, retiring=first)
    async with await rotated.connect(other.password) as connection:
        await connection.execute("DROP TABLE kept")
    assert await rotated.changes() == ()

    await database.cloud.disable(rotated.where, await rotated.look(), first, FENCE)

    assert await database.logs_in() is Login.REFUSED
    assert await database.but(active=other.username).changes() == ()


async def test_a_database_that_somebody_renamed_is_absent_and_found_again(make: Make) -> None:
    database = await make()
    before, moved = (await database.look()).incarnation, f"{database.where.hash}_old"
    known, cloud = database.but(incarnation=before), database.cloud

    await database.run(f'ALTER DATABASE "{database.name}" RENAME TO "{moved}"')
    assert await cloud.observe(known.where) == Absent(remains=True, renamed=moved)
    assert await cloud.observe(database.where) == Absent(remains=True, renamed=moved, recorded=before)
    assert await cloud.latest(database.where) == moved
    for policy in (Policy.DELETE, Policy.SNAPSHOT):
        with pytest.raises(Blocked, match=f"it is called {moved} now; rename it back, or drop it") as refusal:
            await cloud.delete(database.where, None, policy, FENCE)
        assert refusal.value.reason == "DatabaseRenamed"
    assert await cloud.latest(database.where) == moved

    await database.run(f'ALTER DATABASE "{moved}" RENAME TO "{database.name}"')
    assert (await database.look()).incarnation == before
    assert await database.changes() == ()
    assert await cloud.latest(database.where) == ""


async def test_a_renamed_database_whose_row_was_lost_is_no_lost_database(make: Make) -> None:
    database = await make()
    known, moved = database.but(incarnation=(await database.look()).incarnation), f"{database.where.hash}_old"
    await database.lose_its_row()
    await database.run(f'ALTER DATABASE "{database.name}" RENAME TO "{moved}"')

    assert await database.cloud.observe(known.where) == Absent(renamed=moved)
    assert await database.cloud.observe(database.where) == Absent()
    await database.run(f'ALTER DATABASE "{moved}" RENAME TO "{database.name}"')
    assert (await known.look()).incarnation == known.where.incarnation


async def test_the_server_remembers_a_finished_database_that_is_gone(make: Make) -> None:
    database = await make()
    incarnation, observe = (await database.look()).incarnation, database.cloud.observe
    await database.run(f'DROP DATABASE "{database.name}"')

    assert await observe(database.where) == Absent(remains=True, recorded=incarnation)
    assert await observe(database.but(incarnation="9-another").where) == Absent(remains=True, recorded=incarnation)
    for recorded in (incarnation, oid_of(incarnation)):
        assert await observe(database.but(incarnation=recorded).where) == Absent(remains=True)


async def test_an_incarnation_is_more_than_the_oid(make: Make) -> None:
    database = await make()
    first = await database.look()
    await database.run(f'DROP DATABASE "{database.name}"')

    made = await (await database.create()).look()
    # As on a server that was restored from a backup, and hands out the same oids again.
    oid = oid_of(made.incarnation)
    same = f"UPDATE fairlead.ownership SET oid = {oid} WHERE database = '{database.name}'"  # noqa: S608 - our own
    await database.server.server.execute(same, database=database.server.database)

    random = first.incarnation.partition("-")[2]
    assert oid_of(first.incarnation)
    assert made.incarnation.partition("-")[2] != random
    assert not made.is_recorded_as(f"{oid}-{random}")
    assert made.is_recorded_as(oid)
    with pytest.raises(Conflict):
        await database.cloud.update(database.where, replace(made, facts=first.facts), (), FENCE)


async def test_a_lost_row_comes_back_with_the_random_that_was_recorded(make: Make) -> None:
    database = await make()
    known = database.but(incarnation=(await database.look()).incarnation)
    await database.lose_its_row()

    await known.update()

    assert (await database.look()).incarnation == known.where.incarnation


async def test_rows_of_before_the_random_was_kept_each_get_one(onprem_server: OnPremServer) -> None:
    places = [new_target(), new_target()]
    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        for where in places:
            await cloud.create(where, credential(where), FENCE)
    drop = "ALTER TABLE fairlead.ownership DROP COLUMN incarnation"
    await onprem_server.server.execute(drop, database=onprem_server.database)

    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        seen = [await Database(cloud, onprem_server, where).look() for where in places]

    randoms = {observed.incarnation.partition("-")[2] for observed in seen}
    assert len(randoms - {""}) == 2
    for observed in seen:
        assert observed.is_recorded_as(oid_of(observed.incarnation))


async def test_one_refused_statement_leaves_the_others_to_be_made(make: Make) -> None:
    database = await make(connectionLimit=20)
    name, stranger = database.name, f"anna_{database.where.hash}"
    await database.run(
        f'CREATE ROLE "{stranger}"',
        f'GRANT "{name}" TO "{stranger}"',
        f'ALTER DATABASE "{name}" SET log_min_duration_statement = 0',
        f'ALTER ROLE "{database.where.active}" NOLOGIN',
    )
    edited = database.but(spec=msgspec.structs.replace(database.where.spec, connection_limit=33))

    with pytest.raises(Terminal) as refusal:
        await edited.update()

    assert refusal.value.reason == "AccessDenied"
    assert f"members.{name}.{stranger}" in str(refusal.value)
    assert "settings.log_min_duration_statement" in str(refusal.value)
    assert (await edited.look()).spec.connection_limit == 33
    assert await database.logs_in() is Login.OK
    assert {change.path[0] for change in await edited.changes()} == {"members", "settings"}

    await database.run(
        f'REVOKE "{name}" FROM "{stranger}"', f'ALTER DATABASE "{name}" RESET log_min_duration_statement'
    )
    await edited.update()
    assert await edited.changes() == ()


async def test_a_database_is_not_opened_while_its_closing_is_refused(make: Make) -> None:
    database = await make()
    stranger = f"anna_{database.where.hash}"
    await database.run(
        f'CREATE ROLE "{stranger}"',
        f'GRANT "{database.name}" TO "{stranger}"',
        f'ALTER DATABASE "{database.name}" ALLOW_CONNECTIONS false',
    )

    with pytest.raises(Terminal, match="members"):
        await database.update()

    assert ("database", "allowConnections") in {change.path for change in await database.changes()}


@pytest.mark.parametrize("lost", ["dropped", "renamed"])
async def test_a_missing_owner_role_comes_back_with_its_grants(make: Make, lost: str) -> None:
    database = await make()
    name = database.name
    if lost == "renamed":
        await database.run(f'ALTER ROLE "{name}" RENAME TO "{database.where.hash}_elsewhere"')
    else:
        await database.run_inside(f'REASSIGN OWNED BY "{name}" TO postgres', f'DROP OWNED BY "{name}"')
        await database.run(f'DROP OWNED BY "{name}"', f'DROP ROLE "{name}"')

    with pytest.raises(Terminal, match=r"schemas\.public\.owner"):
        await database.update()

    # Only the schema, which belongs to another role now, is left to a person.
    assert {change.path[0] for change in await database.changes()} == {"schemas"}
    await database.run_inside(f'ALTER SCHEMA public OWNER TO "{name}"')
    assert await database.changes() == ()
    assert await database.logs_in() is Login.OK


async def test_a_taken_name_does_not_stop_a_retirement(make: Make) -> None:
    database = await make()
    taken = retired_name(database.name, datetime.now(UTC).strftime("%Y%m%d"))
    await database.run(f'CREATE DATABASE "{taken}"')

    await database.delete(Policy.SNAPSHOT)

    kept = await database.cloud.latest(database.where)
    assert kept.startswith("retired_")
    assert kept not in {"", taken}
    assert database.where.hash in kept


async def test_a_template_that_is_not_there_is_named(onprem_server: OnPremServer) -> None:
    config, where = msgspec.structs.replace(config_of(onprem_server), template_database="nosuch"), new_target()
    async with connect(config, secrets_of(onprem_server)) as cloud:
        with pytest.raises(Terminal, match=r"templateDatabase nosuch") as refusal:
            await cloud.create(where, credential(where), FENCE)

    assert refusal.value.reason == "InvalidValue"


async def test_a_collation_that_is_not_there_is_an_invalid_value(cloud: OnPremCloud) -> None:
    where = new_target(lcCollate="xx_YY")

    with pytest.raises(Terminal, match="xx_YY") as refusal:
        await cloud.create(where, credential(where), FENCE)

    assert refusal.value.reason == "InvalidValue"


@pytest.mark.parametrize("policy", [Policy.DELETE, Policy.SNAPSHOT])
async def test_a_deletion_repairs_a_lost_ownership_row(make: Make, policy: Policy) -> None:
    database = await make()
    known = database.but(incarnation=(await database.look()).incarnation)
    await database.lose_its_row()

    await known.delete(policy)

    assert await database.cloud.observe(known.where) == Absent()
    assert (await database.cloud.latest(known.where) != "") is (policy is Policy.SNAPSHOT)


async def test_a_lost_row_of_an_unrecorded_database_is_not_made_up_for_a_deletion(make: Make) -> None:
    database = await make()
    await database.lose_its_row()

    with pytest.raises(Blocked, match=r"no row of fairlead\.ownership") as refusal:
        await database.delete()

    assert refusal.value.reason == "DeleteBlocked"
    assert isinstance(await database.cloud.observe(database.where), Present)


async def test_open_sessions_of_a_database_are_named(make: Make) -> None:
    database = await make()
    superuser = database.server.server.superuser_conninfo(database.name)
    async with await psycopg.AsyncConnection.connect(superuser, autocommit=True):
        with pytest.raises(Blocked, match=r"open in database .*: postgres") as refusal:
            await database.delete()
    assert refusal.value.reason == "DeleteBlocked"

    await database.delete()
    assert await database.cloud.observe(database.where) == Absent()
    roles = await database.run("SELECT rolname FROM pg_catalog.pg_roles")
    assert [name for (name,) in roles if database.where.hash in str(name)] == []
