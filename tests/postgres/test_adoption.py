"""Databases that were not made here are taken over as they are: their users keep what they had."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.ownership import Owner
from providers.onprem import DATABASES
from providers.onprem.adoption import former_owner_rights
from providers.onprem.client import OnPremCloud
from providers.onprem.translate import target_names
from tests.postgres.conftest import FENCE, PASSWORD, Database, credential, new_target


async def _taken_over(database: Database) -> Database:
    """Adopt, converge as the reconciler does, give the login a password; nothing is done that is not announced."""
    announced = {change.path for change in former_owner_rights((await database.look()).facts)}
    announced |= {change.path for change in await database.but(active=target_names(database.where).logins[0]).changes()}
    await database.cloud.adopt(database.where, await database.look(), FENCE)
    for _ in range(3):
        made = {change.path for change in await database.changes()}
        assert made <= announced
        if made:
            await database.update()
    ours = database.but(active=target_names(database.where).logins[0])
    await database.cloud.set(database.where, await database.look(), credential(ours.where), FENCE)
    assert await ours.changes() == ()
    return ours


@pytest.fixture
def legacy(cloud: OnPremCloud, onprem_server: OnPremServer) -> Callable[..., Awaitable[Database]]:
    """Make databases as a DBA does: an application of its own, which has rights by PUBLIC and by name."""

    async def made(owner: str = onprem_server.username) -> Database:
        where = new_target()
        app = _app_of(Database(cloud, onprem_server, where)).username
        database = Database(cloud, onprem_server, replace(where, name=f"legacy_{where.hash}", active=""))
        await database.run(
            f"CREATE ROLE \"{app}\" LOGIN PASSWORD '{PASSWORD}'",
            f'CREATE DATABASE "{database.name}" OWNER "{owner.format(app=app)}"',
            f'GRANT CONNECT, CREATE ON DATABASE "{database.name}" TO "{app}"',
        )
        await database.run_inside(f'CREATE SCHEMA app AUTHORIZATION "{app}"')
        return database

    return made


def _app_of(database: Database) -> Credential:
    return Credential(f"legacy_app_{database.where.hash}", PASSWORD)


async def _grants(database: Database) -> set[tuple[object, ...]]:
    sql = (
        "SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee) END, a.privilege_type"  # noqa: S608 - a name by rule
        " FROM pg_catalog.pg_database d, pg_catalog.aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a"
        f" WHERE d.datname = '{database.name}'"
    )
    return set(await database.run(sql))


Legacy = Callable[..., Awaitable[Database]]


async def test_a_foreign_database_is_taken_over_and_takes_nothing_from_its_users(legacy: Legacy) -> None:
    database = await legacy()
    app, before = _app_of(database), await _grants(database)
    announced = {change.path[:2] for change in await database.changes()}
    assert ("grants", "PUBLIC") not in announced
    assert ("grants", app.username) not in announced
    assert await database.logs_in(app) is Login.OK

    database = await _taken_over(database)

    assert before <= await _grants(database)
    assert await database.logs_in(app) is Login.OK
    assert await database.logs_in() is Login.OK
    seen = await database.look()
    assert database.where.owner.owns(seen.owner)
    kept = {change.path for change in seen.tolerated}
    assert {("grants", app.username, "CONNECT"), ("grants", "PUBLIC", "CONNECT")} <= kept


@pytest.mark.parametrize("cut_name", [False, True])
async def test_a_retired_database_is_brought_back_with_its_data(
    make: Callable[..., Awaitable[Database]], *, cut_name: bool
) -> None:
    former = await make(databaseName="d" * 50 if cut_name else "orders")
    await former.run_inside(
        "CREATE TABLE public.kept (line text)",
        "INSERT INTO public.kept VALUES ('canary')",
        f'ALTER TABLE public.kept OWNER TO "{former.name}"',
    )
    await former.delete(Policy.SNAPSHOT)
    kept, tail = await former.cloud.latest(former.where), secrets.token_hex(5)
    hash_ = DATABASES.naming.hash_in(former.where.spec, kept)
    assert hash_ == former.where.hash
    assert await former.but(name=kept).logs_in() is not Login.OK
    owner = Owner("installation-1", f"uid-{tail}", f"claim-{tail}", "team-a", "orders", "database")

    again = await _taken_over(former.but(name=kept, owner=owner, hash=hash_, active=""))

    assert await again.logs_in() is Login.OK
    assert owner.owns((await again.look()).owner)
    assert await again.run_inside(f'SET ROLE "{again.where.active}"', "SELECT line FROM kept") == [("canary",)]
    assert await former.cloud.latest(former.where) == ""

    await again.delete(Policy.SNAPSHOT)
    assert (await again.cloud.latest(again.where)).count("retired_") == 1
