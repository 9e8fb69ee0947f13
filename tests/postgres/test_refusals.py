"""What a server refuses stops nothing else, is reported for what it is, and lets a deletion go on where it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Login
from providers.external.diff import diff
from providers.external.observation import Absent, Change, Observed, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import broken_rules
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import retired_name
from providers.onprem.translate import wanted
from runtime.errors import Blocked, Terminal
from tests.postgres.conftest import FENCE, Where, config_of, credential, log_in, secrets_of

Make = Callable[..., Where]


async def look(cloud: OnPremCloud, where: Where) -> Observed[PostgresDatabaseParameters, Any]:
    seen = await cloud.observe(where)
    assert isinstance(seen, Present)
    return seen.observed


async def all_changes(cloud: OnPremCloud, where: Where) -> tuple[Change, ...]:
    seen = await look(cloud, where)
    return (*diff(where.spec, seen.spec), *broken_rules(wanted(where), seen.facts))


async def update(cloud: OnPremCloud, where: Where) -> None:
    await cloud.update(where, await look(cloud, where), await all_changes(cloud, where), FENCE)


async def test_one_refused_statement_leaves_the_others_to_be_made(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target(connectionLimit=20)
    await cloud.create(where, credential(where), FENCE)
    stranger = f"anna_{where.hash}"
    await onprem_server.server.execute(
        f'CREATE ROLE "{stranger}"',
        f'GRANT "{where.name}" TO "{stranger}"',
        f'ALTER DATABASE "{where.name}" SET log_min_duration_statement = 0',
        f'ALTER ROLE "{where.active}" NOLOGIN',
    )
    edited = replace(where, spec=msgspec.structs.replace(where.spec, connection_limit=33))

    with pytest.raises(Terminal) as refusal:
        await update(cloud, edited)

    assert refusal.value.reason == "AccessDenied"
    assert f"members.{where.name}.{stranger}" in str(refusal.value)
    assert "settings.log_min_duration_statement" in str(refusal.value)
    assert (await look(cloud, edited)).spec.connection_limit == 33
    assert await log_in(cloud, where, credential(where)) is Login.OK
    left = {change.path[0] for change in await all_changes(cloud, edited)}
    assert left == {"members", "settings"}

    await onprem_server.server.execute(
        f'REVOKE "{where.name}" FROM "{stranger}"', f'ALTER DATABASE "{where.name}" RESET log_min_duration_statement'
    )
    await update(cloud, edited)
    assert await all_changes(cloud, edited) == ()


async def test_a_database_is_not_opened_while_its_closing_is_refused(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    stranger = f"anna_{where.hash}"
    await onprem_server.server.execute(
        f'CREATE ROLE "{stranger}"',
        f'GRANT "{where.name}" TO "{stranger}"',
        f'ALTER DATABASE "{where.name}" ALLOW_CONNECTIONS false',
    )

    with pytest.raises(Terminal, match="members"):
        await update(cloud, where)

    assert ("database", "allowConnections") in {change.path for change in await all_changes(cloud, where)}


@pytest.mark.parametrize("lost", ["dropped", "renamed"])
async def test_a_missing_owner_role_comes_back_with_its_grants(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make, lost: str
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    if lost == "renamed":
        await onprem_server.server.execute(f'ALTER ROLE "{where.name}" RENAME TO "{where.hash}_elsewhere"')
    else:
        await onprem_server.server.execute(
            f'REASSIGN OWNED BY "{where.name}" TO postgres',
            f'DROP OWNED BY "{where.name}"',
            database=where.name,
        )
        await onprem_server.server.execute(f'DROP OWNED BY "{where.name}"', f'DROP ROLE "{where.name}"')

    with pytest.raises(Terminal, match=r"schemas\.public\.owner"):
        await update(cloud, where)

    # Only the schema, which belongs to another role now, is left to a person.
    assert {change.path[0] for change in await all_changes(cloud, where)} == {"schemas"}
    await onprem_server.server.execute(f'ALTER SCHEMA public OWNER TO "{where.name}"', database=where.name)
    assert await all_changes(cloud, where) == ()
    assert await log_in(cloud, where, credential(where)) is Login.OK


async def test_a_taken_name_does_not_stop_a_retirement(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    taken = retired_name(where.name, datetime.now(UTC).strftime("%Y%m%d"))
    await onprem_server.server.execute(f'CREATE DATABASE "{taken}"')

    await cloud.delete(where, await look(cloud, where), Policy.SNAPSHOT, FENCE)

    kept = await cloud.latest(where)
    assert kept.startswith("retired_")
    assert kept not in {"", taken}
    assert where.hash in kept


async def test_a_template_that_is_not_there_is_named(onprem_server: OnPremServer, target: Make) -> None:
    config = msgspec.structs.replace(config_of(onprem_server), template_database="nosuch")
    where = target()
    async with connect(config, secrets_of(onprem_server)) as cloud:
        with pytest.raises(Terminal, match=r"templateDatabase nosuch") as refusal:
            await cloud.create(where, credential(where), FENCE)

    assert refusal.value.reason == "InvalidValue"


async def test_a_collation_that_is_not_there_is_an_invalid_value(cloud: OnPremCloud, target: Make) -> None:
    where = target(lcCollate="xx_YY")

    with pytest.raises(Terminal, match="xx_YY") as refusal:
        await cloud.create(where, credential(where), FENCE)

    assert refusal.value.reason == "InvalidValue"


@pytest.mark.parametrize("policy", [Policy.DELETE, Policy.SNAPSHOT])
async def test_a_deletion_repairs_a_lost_ownership_row(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make, policy: Policy
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    known = replace(where, incarnation=(await look(cloud, where)).incarnation)
    forget = f"DELETE FROM fairlead.ownership WHERE database = '{where.name}'"  # noqa: S608 - a name by rule
    await onprem_server.server.execute(forget, database=onprem_server.database)

    await cloud.delete(known, await look(cloud, known), policy, FENCE)

    assert await cloud.observe(known) == Absent()
    assert (await cloud.latest(known) != "") is (policy is Policy.SNAPSHOT)


async def test_a_lost_row_of_an_unrecorded_database_is_not_made_up_for_a_deletion(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    forget = f"DELETE FROM fairlead.ownership WHERE database = '{where.name}'"  # noqa: S608 - a name by rule
    await onprem_server.server.execute(forget, database=onprem_server.database)

    with pytest.raises(Blocked, match=r"no row of fairlead\.ownership") as refusal:
        await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)

    assert refusal.value.reason == "DeleteBlocked"
    assert isinstance(await cloud.observe(where), Present)


async def test_open_sessions_of_a_database_are_named(
    cloud: OnPremCloud, onprem_server: OnPremServer, target: Make
) -> None:
    where = target()
    await cloud.create(where, credential(where), FENCE)
    person = await psycopg.AsyncConnection.connect(onprem_server.server.superuser_conninfo(where.name), autocommit=True)
    async with person:
        with pytest.raises(Blocked, match=r"open in database .*: postgres") as refusal:
            await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)
    assert refusal.value.reason == "DeleteBlocked"

    await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)
    assert await cloud.observe(where) == Absent()
