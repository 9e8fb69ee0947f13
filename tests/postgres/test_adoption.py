"""Databases that were not made here are taken over as they are: their users keep what they had."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.diff import diff
from providers.external.observation import Change, Observed, Present
from providers.external.ownership import Owner
from providers.onprem import DATABASES
from providers.onprem.client import OnPremCloud
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.translate import invariants, target_names
from runtime.errors import Terminal
from tests.postgres.conftest import FENCE, PASSWORD, Where, credential, log_in

Make = Callable[..., Where]


async def look(cloud: OnPremCloud, where: Where) -> Observed[PostgresDatabaseParameters, Any]:
    seen = await cloud.observe(where)
    assert isinstance(seen, Present)
    return seen.observed


async def all_changes(cloud: OnPremCloud, where: Where) -> tuple[Change, ...]:
    seen = await look(cloud, where)
    return (*diff(where.spec, seen.spec), *invariants(where, seen))


async def taken_over(cloud: OnPremCloud, where: Where) -> Where:
    """Adopt, converge as the reconciler does, give the login a password."""
    await cloud.adopt(where, await look(cloud, where), FENCE)
    for _ in range(3):
        if changes := await all_changes(cloud, where):
            await cloud.update(where, await look(cloud, where), changes, FENCE)
    login = credential(replace(where, active=target_names(where).logins[0]))
    await cloud.set(where, await look(cloud, where), login, FENCE)
    where = replace(where, active=login.username)
    assert await all_changes(cloud, where) == ()
    return where


async def legacy_database(server: OnPremServer, where: Where, *, owner: str) -> Where:
    """Make a database as a DBA does: an application of its own, which has rights by PUBLIC and by name."""
    name, app = f"legacy_{where.hash}", f"legacy_app_{where.hash}"
    await server.server.execute(
        f"CREATE ROLE \"{app}\" LOGIN PASSWORD '{PASSWORD}'",
        f'CREATE DATABASE "{name}" OWNER "{owner.format(app=app)}"',
        f'GRANT CONNECT, CREATE ON DATABASE "{name}" TO "{app}"',
    )
    await server.server.execute(f'CREATE SCHEMA app AUTHORIZATION "{app}"', database=name)
    return replace(where, name=name, active="")


async def grants(server: OnPremServer, where: Where) -> set[tuple[object, ...]]:
    sql = (
        "SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee) END, a.privilege_type"  # noqa: S608 - a name by rule
        " FROM pg_catalog.pg_database d, pg_catalog.aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a"
        f" WHERE d.datname = '{where.name}'"
    )
    return set(await server.server.execute(sql))


async def test_a_foreign_database_is_taken_over_and_takes_nothing_from_its_users(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = await legacy_database(onprem_server, target(), owner=onprem_server.username)
    app = Credential(f"legacy_app_{where.hash}", PASSWORD)
    before = await grants(onprem_server, where)
    announced = {change.path[:2] for change in await all_changes(cloud, where)}
    assert ("grants", "PUBLIC") not in announced
    assert ("grants", app.username) not in announced
    assert await log_in(cloud, where, app) is Login.OK

    where = await taken_over(cloud, where)

    assert before <= await grants(onprem_server, where)
    assert await log_in(cloud, where, app) is Login.OK
    assert await log_in(cloud, where, credential(where)) is Login.OK
    seen = await look(cloud, where)
    assert where.owner.owns(seen.owner)
    kept = {change.path for change in seen.tolerated}
    assert {("grants", app.username, "CONNECT"), ("grants", "PUBLIC", "CONNECT")} <= kept


async def test_a_grant_after_an_adoption_is_revoked(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = await taken_over(cloud, await legacy_database(onprem_server, target(), owner=onprem_server.username))
    stranger = f"anna_{where.hash}"
    await onprem_server.server.execute(
        f'CREATE ROLE "{stranger}"', f'GRANT CONNECT ON DATABASE "{where.name}" TO "{stranger}"'
    )

    changes = await all_changes(cloud, where)

    assert {change.path for change in changes} == {("grants", stranger, "CONNECT")}


async def test_a_database_that_is_anothers_is_refused_before_anything_is_written(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = await legacy_database(onprem_server, target(), owner="{app}")
    with pytest.raises(Terminal, match=f'ALTER DATABASE "{where.name}" OWNER TO') as refusal:
        await cloud.adopt(where, await look(cloud, where), FENCE)

    assert refusal.value.reason == "AccessDenied"
    assert (await look(cloud, where)).owner is None


async def test_a_former_owner_keeps_what_it_could_do(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = await legacy_database(onprem_server, target(), owner="{app}")
    app = f"legacy_app_{where.hash}"
    await onprem_server.server.execute(f'GRANT "{app}" TO "{onprem_server.username}"')

    where = await taken_over(cloud, where)

    held = await grants(onprem_server, where)
    assert {(app, "CONNECT"), (app, "CREATE"), (app, "TEMPORARY")} <= held


@pytest.mark.parametrize("cut_name", [False, True])
async def test_a_retired_database_is_brought_back_with_its_data(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make, *, cut_name: bool
) -> None:
    former = target(databaseName="d" * 50 if cut_name else "orders")
    await cloud.create(former, credential(former), FENCE)
    await onprem_server.server.execute(
        "CREATE TABLE public.kept (line text)",
        "INSERT INTO public.kept VALUES ('canary')",
        f'ALTER TABLE public.kept OWNER TO "{former.name}"',
        database=former.name,
    )
    await cloud.delete(former, await look(cloud, former), Policy.SNAPSHOT, FENCE)
    kept = await cloud.latest(former)
    tail = secrets.token_hex(5)
    hash_ = DATABASES.naming.hash_in(former.spec, kept)
    assert hash_ == former.hash
    owner = Owner("installation-1", f"uid-{tail}", f"claim-{tail}", "team-a", "orders", "database")
    again = replace(former, name=kept, owner=owner, hash=hash_, active="")

    again = await taken_over(cloud, again)

    assert await log_in(cloud, again, credential(again)) is Login.OK
    assert owner.owns((await look(cloud, again)).owner)
    rows = await onprem_server.server.execute(f'SET ROLE "{again.active}"', "SELECT line FROM kept", database=kept)
    assert rows == [("canary",)]
    assert await cloud.latest(former) == ""

    await cloud.delete(again, await look(cloud, again), Policy.SNAPSHOT, FENCE)
    assert (await cloud.latest(again)).count("retired_") == 1
