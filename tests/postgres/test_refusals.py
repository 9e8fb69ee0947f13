"""What a server refuses stops nothing else, is reported for what it is, and lets a deletion go on where it can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec
import psycopg
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Login
from providers.external.observation import Absent, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.names import retired_name
from runtime.errors import Blocked, Terminal
from tests.postgres.conftest import FENCE, Database, config_of, credential, new_target, secrets_of

Make = Callable[..., Awaitable[Database]]


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
