"""A database on a real server from its creation to its end, as its provider makes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.observation import Absent
from providers.onprem.client import connect
from providers.onprem.incarnations import oid_of
from runtime.errors import Blocked, Conflict
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
