"""A database on a real server from its creation to its end, and what the server refuses on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.incarnations import oid_of
from providers.onprem.names import retired_name
from runtime.errors import Conflict, Terminal
from tests.postgres.conftest import FENCE, Database, config_of, credential, new_target, secrets_of

Make = Callable[..., Awaitable[Database]]


async def test_a_new_database_has_no_difference_and_works(make: Make) -> None:
    database = await make(connectionLimit=20, extensions=["pgcrypto"], parameters={"work_mem": "8MB"}, version="16")

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
