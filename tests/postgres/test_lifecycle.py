"""A database on a real server from its creation to its end, as its provider makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.diff import diff
from providers.external.observation import Absent, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import broken_rules
from providers.onprem.incarnations import oid_of
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.translate import wanted
from runtime.errors import Blocked, Conflict
from tests.postgres.conftest import FENCE, Where, config_of, credential, log_in, secrets_of

Make = Callable[..., Where]


async def present(cloud: OnPremCloud, where: Where) -> Present[PostgresDatabaseParameters, Any]:
    seen = await cloud.observe(where)
    assert isinstance(seen, Present)
    return seen


async def as_tenant(server: OnPremServer, where: Where, password: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(
        host=server.host, port=server.port, dbname=where.name, user=where.active, password=password,
        sslmode="verify-full", sslrootcert=str(server.certificate.with_name("authority.crt")), autocommit=True,
    )  # fmt: skip


async def test_a_new_database_has_no_difference_and_works(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target(connectionLimit=20, extensions=["plpgsql"], parameters={"work_mem": "8MB"}, version="16")
    assert await cloud.observe(where) == Absent()

    await cloud.create(where, credential(where), FENCE)

    seen = (await present(cloud, where)).observed
    assert diff(where.spec, seen.spec) == ()
    assert broken_rules(wanted(where), seen.facts) == ()
    assert where.owner.owns(seen.owner)
    assert await log_in(cloud, where, credential(where)) is Login.OK
    assert await log_in(cloud, where, credential(where, "wrong-password-1")) is Login.REFUSED
    async with await as_tenant(onprem_server, where, credential(where).password) as connection:
        cursor = await connection.execute("SHOW work_mem")
        assert await cursor.fetchone() == ("8MB",)
        await connection.execute("CREATE TABLE kept (line text)")
        cursor = await connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'kept'")
        assert await cursor.fetchone() == (where.name,)


async def test_two_logins_alternate_and_both_work(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    async with await as_tenant(onprem_server, where, credential(where).password) as connection:
        await connection.execute("CREATE TABLE kept (line text)")
    other = Credential(where.active.removesuffix("_a") + "_b", "Another1password2here3")

    await cloud.set(where, (await present(cloud, where)).observed, other, FENCE)

    assert await log_in(cloud, where, credential(where)) is Login.OK
    assert await log_in(cloud, where, other) is Login.OK
    rotated = replace(where, active=other.username, retiring=where.active)
    async with await as_tenant(onprem_server, rotated, other.password) as connection:
        await connection.execute("DROP TABLE kept")
    assert broken_rules(wanted(rotated), (await present(cloud, rotated)).observed.facts) == ()

    await cloud.disable(rotated, (await present(cloud, rotated)).observed, where.active, FENCE)

    assert await log_in(cloud, where, credential(where)) is Login.REFUSED
    done = replace(where, active=other.username)
    assert broken_rules(wanted(done), (await present(cloud, done)).observed.facts) == ()


async def test_a_database_that_somebody_renamed_is_absent_and_found_again(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    before = (await present(cloud, where)).observed.incarnation

    await onprem_server.server.execute(f'ALTER DATABASE "{where.name}" RENAME TO "{where.hash}_old"')
    known = replace(where, incarnation=before)
    assert await cloud.observe(known) == Absent(remains=True, renamed=f"{where.hash}_old")
    assert await cloud.observe(where) == Absent(remains=True, renamed=f"{where.hash}_old", recorded=before)
    assert await cloud.latest(where) == f"{where.hash}_old"
    for policy in (Policy.DELETE, Policy.SNAPSHOT):
        with pytest.raises(Blocked, match=f"it is called {where.hash}_old now; rename it back, or drop it") as refusal:
            await cloud.delete(where, None, policy, FENCE)
        assert refusal.value.reason == "DatabaseRenamed"
    assert await cloud.latest(where) == f"{where.hash}_old"

    await onprem_server.server.execute(f'ALTER DATABASE "{where.hash}_old" RENAME TO "{where.name}"')
    seen = (await present(cloud, where)).observed
    assert seen.incarnation == before
    assert broken_rules(wanted(where), seen.facts) == ()
    assert await cloud.latest(where) == ""


async def test_a_renamed_database_whose_row_was_lost_is_no_lost_database(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    known = replace(where, incarnation=(await present(cloud, where)).observed.incarnation)
    forget = f"DELETE FROM fairlead.ownership WHERE database = '{where.name}'"  # noqa: S608 - a name by rule
    await onprem_server.server.execute(forget, database=onprem_server.database)
    await onprem_server.server.execute(f'ALTER DATABASE "{where.name}" RENAME TO "{where.hash}_old"')

    assert await cloud.observe(known) == Absent(renamed=f"{where.hash}_old")
    assert await cloud.observe(where) == Absent()
    await onprem_server.server.execute(f'ALTER DATABASE "{where.hash}_old" RENAME TO "{where.name}"')
    assert (await present(cloud, known)).observed.incarnation == known.incarnation


async def test_the_server_remembers_a_finished_database_that_is_gone(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    incarnation = (await present(cloud, where)).observed.incarnation
    await onprem_server.server.execute(f'DROP DATABASE "{where.name}"')

    assert await cloud.observe(where) == Absent(remains=True, recorded=incarnation)
    assert await cloud.observe(replace(where, incarnation="9-another")) == Absent(remains=True, recorded=incarnation)
    for recorded in (incarnation, oid_of(incarnation)):
        assert await cloud.observe(replace(where, incarnation=recorded)) == Absent(remains=True)


async def test_an_incarnation_is_more_than_the_oid(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    first = (await present(cloud, where)).observed
    oid = oid_of(first.incarnation)
    await onprem_server.server.execute(f'DROP DATABASE "{where.name}"')

    await cloud.create(where, credential(where), FENCE)
    made = (await present(cloud, where)).observed
    # As on a server that was restored from a backup, and hands out the same oids again.
    same = f"UPDATE fairlead.ownership SET oid = {oid_of(made.incarnation)} WHERE database = '{where.name}'"  # noqa: S608 - our own
    await onprem_server.server.execute(same, database=onprem_server.database)

    assert oid
    assert made.incarnation.partition("-")[2] != first.incarnation.partition("-")[2]
    restored = f"{oid_of(made.incarnation)}-{first.incarnation.partition('-')[2]}"
    assert not made.is_recorded_as(restored)
    assert made.is_recorded_as(oid_of(made.incarnation))
    with pytest.raises(Conflict):
        await cloud.update(where, replace(made, facts=first.facts), (), FENCE)


async def test_a_lost_row_comes_back_with_the_random_that_was_recorded(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    known = replace(where, incarnation=(await present(cloud, where)).observed.incarnation)
    forget = f"DELETE FROM fairlead.ownership WHERE database = '{where.name}'"  # noqa: S608 - a name by rule
    await onprem_server.server.execute(forget, database=onprem_server.database)

    seen = (await present(cloud, known)).observed
    await cloud.update(known, seen, broken_rules(wanted(known), seen.facts), FENCE)

    assert (await present(cloud, where)).observed.incarnation == known.incarnation


async def test_rows_of_before_the_random_was_kept_each_get_one(onprem_server: OnPremServer, target: Make) -> None:
    places = [target(), target()]
    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        for where in places:
            await cloud.create(where, credential(where), FENCE)
    drop = "ALTER TABLE fairlead.ownership DROP COLUMN incarnation"
    await onprem_server.server.execute(drop, database=onprem_server.database)

    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        seen = [(await present(cloud, where)).observed for where in places]

    randoms = {database.incarnation.partition("-")[2] for database in seen}
    assert len(randoms - {""}) == 2
    for database in seen:
        assert database.is_recorded_as(oid_of(database.incarnation))
