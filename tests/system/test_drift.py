"""Drift made by hand in PostgreSQL is corrected and reported; a database that is gone is lost, and never made again."""

from dataclasses import dataclass

import psycopg
import pytest

from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, DATABASE, EVENT, claim, condition, in_trouble, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_PASSES = 3


async def ready(system: System, namespace: str) -> JsonObject:
    await system.create(CLAIM, claim(namespace, "orders"))
    await system.until(CLAIM, namespace, "orders", is_ready)
    (child,) = await system.children(namespace, "orders")
    async with await system.login(namespace, "orders") as connection:
        await connection.execute("CREATE TABLE canary AS SELECT 'still here' AS word")
    return child


@dataclass(frozen=True)
class Drift:
    """A change behind our back, the question that shows it, and the word that its report must hold.

    In both texts {database}, {owner} and {login} stand for the names on the server.
    """

    change: str
    question: str
    word: str
    within: str = "{database}"


DRIFTS: dict[str, Drift] = {
    "a connection limit": Drift(
        "ALTER DATABASE {database} CONNECTION LIMIT 1",
        "SELECT datconnlimit FROM pg_database WHERE datname = '{database}'",
        "connectionLimit",
    ),
    "a setting of the database": Drift(
        "ALTER DATABASE {database} SET work_mem = '123kB'",
        "SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
        " WHERE datname = '{database}' AND setrole = 0",
        "work_mem",
    ),
    "a foreign setting of the database": Drift(
        "ALTER DATABASE {database} SET search_path = 'elsewhere'",
        "SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
        " WHERE datname = '{database}' AND setrole = 0",
        "search_path",
    ),
    "a grant taken away": Drift(
        "REVOKE CONNECT ON DATABASE {database} FROM {owner}",
        "SELECT has_database_privilege('{owner}', '{database}', 'CONNECT')",
        "CONNECT",
    ),
    "a grant to everybody": Drift(
        "GRANT CONNECT ON DATABASE {database} TO PUBLIC",
        "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a WHERE datname = '{database}' AND a.grantee = 0",
        "PUBLIC",
    ),
    "a membership taken away": Drift(
        "REVOKE {owner} FROM {login} GRANTED BY fairlead_admin",
        "SELECT pg_has_role('{login}', '{owner}', 'SET')",
        "{login}",
    ),
    "a login made powerless": Drift(
        "ALTER ROLE {login} NOLOGIN",
        "SELECT rolcanlogin FROM pg_roles WHERE rolname = '{login}'",
        "{login}",
    ),
    "a login made powerful": Drift(
        "ALTER ROLE {login} CREATEDB CREATEROLE",
        "SELECT rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = '{login}'",
        "{login}",
    ),
    "a login dropped": Drift(
        "DROP ROLE {login}",
        "SELECT count(*) FROM pg_roles WHERE rolname = '{login}'",
        "{login}",
    ),
    "a password": Drift(
        "ALTER ROLE {login} PASSWORD 'of-somebody-else-entirely'",
        "SELECT 1",
        "{login}",
    ),
    "the owner of the schema": Drift(
        "ALTER SCHEMA public OWNER TO pg_database_owner",
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'public'",
        "public",
    ),
}


async def is_corrected_and_reported(sweeping: System, namespace: str, case: Drift) -> None:
    """Change a database behind our back, and prove that it is put back, and said in event and status."""
    child = await ready(sweeping, namespace)
    database = child["status"]["externalName"]
    login = (await sweeping.binding(namespace, "orders"))["username"]
    names = {"database": database, "owner": child["status"]["atProvider"]["owner"], "login": login}
    question, server = case.question.format(**names), sweeping.server.server
    before = await server.execute(question, database=database)
    await server.execute(case.change.format(**names), database=database)

    async def is_back() -> bool:
        if await server.execute(question, database=database) != before:
            return False
        try:
            async with await sweeping.login(namespace, "orders") as connection:
                cursor = await connection.execute("SELECT word FROM canary")
                return await cursor.fetchone() == ("still here",)
        except psycopg.Error:
            return False

    await eventually(is_back, "the database is as it was")

    async def corrections() -> list[str]:
        events = await sweeping.api.items(EVENT.path(namespace))
        return [event["note"] for event in events if event["reason"] == "DriftCorrected"]

    word = case.word.format(**names)
    notes = await eventually(corrections, "an event DriftCorrected")
    assert any(word in note for note in notes), notes
    name = child["metadata"]["name"]
    after = await sweeping.until(DATABASE, namespace, name, lambda obj: is_ready(obj) and bool(obj["status"]["drift"]))
    assert any(word in str(entry) for entry in after["status"]["drift"])
    assert "of-somebody-else-entirely" not in str(after) + str(notes)


@pytest.mark.parametrize("kind", ["a connection limit", "a password"])
async def test_drift_is_corrected_and_reported(sweeping: System, namespace: str, kind: str) -> None:
    await is_corrected_and_reported(sweeping, namespace, DRIFTS[kind])


async def exists(system: System, database: str) -> bool:
    rows = await system.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    return (database,) in rows


async def test_a_dropped_database_is_reported_lost_and_never_made_anew(sweeping: System, namespace: str) -> None:
    child = await ready(sweeping, namespace)
    database, name = child["status"]["externalName"], child["metadata"]["name"]
    binding = await sweeping.binding(namespace, "orders")
    await sweeping.server.server.execute(f"DROP DATABASE {database} WITH (FORCE)")
    mark = sweeping.sql.mark()
    lost = await sweeping.until(DATABASE, namespace, name, in_trouble("DatabaseLost"))
    claimed = await sweeping.until(CLAIM, namespace, "orders", in_trouble("DatabaseLost"))
    for obj in (lost, claimed):
        assert condition(obj, "Ready")["status"] == "False"
        assert condition(obj, "Stalled")["status"] == "True"
        # The way on is named, with the incarnation that the consent must name.
        assert (
            f"recreate={lost['metadata']['annotations']['fairlead.dev/incarnation']}"
            in (condition(obj, "Synced")["message"])
        )
    for _ in range(_PASSES):
        await sweeping.ask_for_a_pass(DATABASE, namespace, name)
        await sweeping.at_rest(for_s=1.0)
    assert not await exists(sweeping, database)
    assert not [statement for statement in sweeping.sql.changes(mark) if "CREATE DATABASE" in statement.upper()]
    assert await sweeping.binding(namespace, "orders") == binding
