"""What a hostile tenant may try on a shared server: it gains nothing, harms no other, and fools none of our sessions.

Each attack is run by the tenant's own login, with the tenant's rights alone; then its neighbour and the administrator
are looked at by the superuser, who is not under test. An attack that the server lets through must have changed nothing
outside of the tenant's own database, and the provider must still read and repair that database as if nothing
were there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import psycopg
import pytest
import pytest_asyncio

from devcloud.onprem import OnPremServer
from providers.managed import Change, Present, diff
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import broken_rules
from providers.onprem.translate import wanted
from providers.passwords import Login
from providers.plan import Policy
from tests.postgres.conftest import FENCE, Where, config_of, credential, new_target, secrets_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]

ATTACKS: dict[str, tuple[str, ...]] = {
    # Our sessions
    "search_path of the database": ("ALTER DATABASE {db} SET search_path = public, pg_catalog",),
    "search_path of every role": ("ALTER ROLE ALL IN DATABASE {db} SET search_path = public",),
    "search_path of the administrator": ("ALTER ROLE {admin} SET search_path = public",),
    "an overloaded function in public": (
        (
            "CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS"
            " $$ SELECT pg_catalog.pg_terminate_backend(0)::text $$"
        ),
    ),
    "an overloaded operator in public": (
        (
            "CREATE FUNCTION public.trap(name, name) RETURNS bool LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; RETURN true; END $$"
        ),
        "CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = name, FUNCTION = public.trap)",
    ),
    "a cast with a trap": (
        "CREATE TYPE public.bait AS (line text)",
        (
            "CREATE FUNCTION public.trap(public.bait) RETURNS text LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; RETURN ''; END $$"
        ),
        "CREATE CAST (public.bait AS text) WITH FUNCTION public.trap(public.bait) AS IMPLICIT",
    ),
    "a view in the name of a catalog": ("CREATE VIEW public.pg_extension AS SELECT 'none'::name AS extname",),
    "a temporary table in the name of a catalog": ("CREATE TEMP TABLE pg_namespace (nspname name, nspowner oid)",),
    "a table in pg_catalog": ("CREATE TABLE pg_catalog.bait (line text)",),
    "a function in pg_catalog": (
        "CREATE FUNCTION pg_catalog.json_build_object(text, text) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$",
    ),
    "an event trigger": (
        (
            "CREATE FUNCTION public.caught() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$ BEGIN EXECUTE 'ALTER ROLE {login} SUPERUSER'; END $$"
        ),
        "CREATE EVENT TRIGGER caught ON ddl_command_end EXECUTE FUNCTION public.caught()",
    ),
    "a schema in the administrator's name": ("CREATE SCHEMA {admin}", 'CREATE SCHEMA "$user"'),
    "default privileges for everybody": (
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO PUBLIC",
        "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
    ),
    "default privileges of the administrator": (
        "ALTER DEFAULT PRIVILEGES FOR ROLE {admin} GRANT ALL ON TABLES TO {owner}",
    ),
    "all schemas gone": ("DROP SCHEMA public CASCADE",),
    "the schema renamed": ("ALTER SCHEMA public RENAME TO gone",),
    "the schema given away": ("ALTER SCHEMA public OWNER TO {admin}",),
    # Roles
    "SET role to the administrator": ("SET ROLE {admin}",),
    "SET role to the superuser": ("SET ROLE postgres",),
    "SET role to the neighbour": ("SET ROLE {neighbour}",),
    "SET session authorization": ("SET SESSION AUTHORIZATION {admin}",),
    "more attributes for itself": ("ALTER ROLE {login} CREATEDB CREATEROLE",),
    "superuser for itself": ("SET ROLE none", "ALTER ROLE {login} SUPERUSER"),
    "a role of its own": ("CREATE ROLE accomplice LOGIN",),
    "membership in the administrator": ("GRANT {admin} TO {login}",),
    "membership in a predefined role": ("GRANT pg_read_all_data TO {owner}", "GRANT pg_signal_backend TO {login}"),
    "its own role for the neighbour": ("GRANT {owner} TO {neighbour_login} WITH ADMIN OPTION",),
    "the neighbour's password": ("ALTER ROLE {neighbour_login} PASSWORD 'stolen-password-1'",),
    "the administrator's password": ("ALTER ROLE {admin} PASSWORD 'stolen-password-1'",),
    "the neighbour's role dropped": ("DROP ROLE {neighbour_login}", "DROP ROLE {neighbour}"),
    "its own roles dropped": ("SET ROLE none", "DROP ROLE {owner}", "DROP ROLE {login}"),
    "the passwords of all": ("SELECT rolname, rolpassword FROM pg_catalog.pg_authid",),
    "a setting of its own login": ("SET ROLE none", "ALTER ROLE {login} SET role = 'none'"),
    "its own login for others": ("SET ROLE none", "GRANT {login} TO {neighbour_login}"),
    "REASSIGN OWNED": ("REASSIGN OWNED BY {admin} TO {owner}",),
    "DROP OWNED of the administrator": ("DROP OWNED BY {admin} CASCADE",),
    # Databases
    "its database dropped": ("DROP DATABASE {db}",),
    "its database renamed": ("ALTER DATABASE {db} RENAME TO elsewhere",),
    "its database given to itself": ("ALTER DATABASE {db} OWNER TO {owner}",),
    "a forged comment": ("COMMENT ON DATABASE {db} IS 'fairlead: another owner'",),
    "no connection limit": ("ALTER DATABASE {db} CONNECTION LIMIT -1",),
    "its database as a template": ("ALTER DATABASE {db} IS_TEMPLATE true",),
    "GRANT to PUBLIC on its database": ("GRANT ALL ON DATABASE {db} TO PUBLIC",),
    "GRANT of its database to the neighbour": ("GRANT CONNECT ON DATABASE {db} TO {neighbour_login}",),
    "REVOKE of the administrator's rights": ("REVOKE ALL ON DATABASE {db} FROM {admin}",),
    "a database of its own": ("CREATE DATABASE accomplice",),
    "a copy of the neighbour": ("CREATE DATABASE accomplice TEMPLATE {neighbour_db}",),
    "the neighbour's database dropped": ("DROP DATABASE {neighbour_db} WITH (FORCE)",),
    "the neighbour's settings": ("ALTER DATABASE {neighbour_db} SET search_path = public",),
    "the ownership table from afar": ("SELECT * FROM fairlead.ownership",),
    # The server
    "a file read": ("SELECT pg_catalog.pg_read_file('/etc/passwd')",),
    "a file copied": ("COPY (SELECT 1) TO '/tmp/fairlead-hostile'",),
    "a program run": ("COPY (SELECT 1) TO PROGRAM 'true'",),
    "an untrusted language": ("CREATE FUNCTION public.evil() RETURNS int LANGUAGE c AS 'libc', 'system'",),
    "an extension that is not trusted": ("CREATE EXTENSION file_fdw",),
    "the server's settings": ("ALTER SYSTEM SET log_statement = 'none'",),
    "the server reloaded": ("SELECT pg_catalog.pg_reload_conf()",),
    "the neighbour's sessions ended": (
        (
            "SELECT 1 / pg_catalog.pg_terminate_backend(pid)::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{neighbour_login}'"
        ),
    ),
    "the administrator's sessions ended": (
        (
            "SELECT 1 / pg_catalog.pg_terminate_backend(pid)::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{admin}'"
        ),
    ),
    "the neighbour's statements read": (
        (
            "SELECT 1 / (query <> '<insufficient privilege>')::int FROM pg_catalog.pg_stat_activity"
            " WHERE usename = '{neighbour_login}'"
        ),
    ),
    "a tablespace": ("CREATE TABLESPACE evil LOCATION '/tmp'",),
    "a subscription": ("CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p",),
    "a replication slot": ("SELECT pg_catalog.pg_create_physical_replication_slot('held')",),
    "a prepared transaction": ("BEGIN", "CREATE TABLE public.held (line text)", "PREPARE TRANSACTION 'held'"),
}

# What the server allows: it stays within the tenant's own database, or is put back by the provider.
ALLOWED = frozenset({
    "an overloaded function in public", "an overloaded operator in public", "a cast with a trap",
    "a view in the name of a catalog", "a temporary table in the name of a catalog",
    "a schema in the administrator's name", "default privileges for everybody", "all schemas gone",
    "the schema renamed", "a setting of its own login",
    # With a warning and no effect: there is nothing that this role could grant or revoke.
    "GRANT to PUBLIC on its database", "GRANT of its database to the neighbour", "REVOKE of the administrator's rights",
})  # fmt: skip


@dataclass(frozen=True)
class Street:
    """A tenant who attacks, its neighbour, and where both live."""

    cloud: OnPremCloud
    server: OnPremServer
    tenant: Where
    neighbour: Where

    async def connect(self, where: Where, database: str = "") -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(
            host=self.server.host, port=self.server.port, dbname=database or where.name, user=where.active,
            password=credential(where).password, sslmode="verify-full", autocommit=True,
            sslrootcert=str(self.server.certificate.with_name("authority.crt")),
        )  # fmt: skip

    async def world(self) -> list[object]:
        """All that a tenant must not be able to change, as the superuser sees it."""
        questions = (
            (
                "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolcanlogin, rolreplication, rolbypassrls,"
                " rolpassword FROM pg_catalog.pg_authid WHERE rolname NOT LIKE '%{hash}%' ORDER BY 1"
            ),
            (
                "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
                " FROM pg_catalog.pg_roles ORDER BY 1"
            ),
            (
                "SELECT roleid::regrole::text, member::regrole::text, grantor::regrole::text, admin_option"
                " FROM pg_catalog.pg_auth_members ORDER BY 1, 2, 3"
            ),
            (
                "SELECT datname, datdba, datallowconn, datconnlimit, datistemplate, datacl::text, oid"
                " FROM pg_catalog.pg_database ORDER BY 1"
            ),
            (
                "SELECT setdatabase, setrole::regrole::text, setconfig FROM pg_catalog.pg_db_role_setting"
                " WHERE setrole NOT IN"
                " (SELECT oid FROM pg_catalog.pg_roles WHERE rolname LIKE '%{hash}%') ORDER BY 1, 2"
            ),
            "SELECT count(*) FROM pg_catalog.pg_replication_slots",
            "SELECT count(*) FROM pg_catalog.pg_prepared_xacts",
            "SELECT spcname FROM pg_catalog.pg_tablespace ORDER BY 1",
            "SELECT description FROM pg_catalog.pg_shdescription ORDER BY 1",
            "SELECT pg_catalog.current_setting('log_statement')",
        )
        return [await self.server.server.execute(one.replace("{hash}", self.tenant.hash)) for one in questions]

    async def observed(self) -> tuple[Change, ...]:
        seen = await self.cloud.observe(self.tenant)
        assert isinstance(seen, Present)
        found = (*diff(self.tenant.spec, seen.observed.spec), *broken_rules(wanted(self.tenant), seen.observed.facts))
        if found:
            await self.cloud.update(self.tenant, seen.observed, found, FENCE)
        return found


async def born(cloud: OnPremCloud, where: Where) -> Where:
    await cloud.create(where, credential(where), FENCE)
    return where


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(onprem_server: OnPremServer) -> AsyncIterator[tuple[OnPremCloud, Where]]:
    """One provider and one neighbour for all attacks."""
    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        yield cloud, await born(cloud, new_target())


@pytest_asyncio.fixture(loop_scope="module")
async def street(town: tuple[OnPremCloud, Where], onprem_server: OnPremServer) -> AsyncIterator[Street]:
    cloud, neighbour = town
    tenant = await born(cloud, new_target(connectionLimit=9))
    yield Street(cloud, onprem_server, tenant, neighbour)
    seen = await cloud.observe(tenant)
    assert isinstance(seen, Present)
    await cloud.delete(tenant, seen.observed, Policy.DELETE, FENCE)


async def attacked(street: Street, statements: tuple[str, ...]) -> bool:
    """Run an attack as the tenant; tell whether the server took every statement."""
    names = {
        "db": street.tenant.name, "owner": street.tenant.name, "login": street.tenant.active,
        "admin": street.server.username, "neighbour": street.neighbour.name,
        "neighbour_db": street.neighbour.name, "neighbour_login": street.neighbour.active,
    }  # fmt: skip
    async with await street.connect(street.tenant) as connection:
        for statement in statements:
            try:
                await connection.execute(statement.format(**names).encode())
            except psycopg.Error:
                return False
    return True


async def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 40
    assert set(ATTACKS) >= ALLOWED


@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_attack_gains_nothing_and_harms_nobody(street: Street, attack: str) -> None:
    before = await street.world()

    async with await street.connect(street.neighbour) as neighbour:
        await neighbour.execute("CREATE TEMP TABLE kept AS SELECT 'mine' AS line")
        went_through = await attacked(street, ATTACKS[attack])

        assert await street.world() == before
        cursor = await neighbour.execute("SELECT line FROM kept")
        assert await cursor.fetchone() == ("mine",)

    assert went_through == (attack in ALLOWED)
    # Our own sessions in that database read the truth, repair it, and give nothing away.
    await street.observed()
    assert await street.observed() == ()
    assert await street.world() == before
    assert await street.cloud.login(street.tenant, credential(street.tenant)) is Login.OK


@pytest.mark.parametrize("other", ["neighbour", "fairlead", "postgres", "template1"])
async def test_no_other_database_lets_a_tenant_in(street: Street, other: str) -> None:
    database = street.neighbour.name if other == "neighbour" else other

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        await street.connect(street.tenant, database)


async def test_all_connections_taken_do_not_blind_the_provider(street: Street) -> None:
    held = [await street.connect(street.tenant) for _ in range(9)]
    try:
        seen = await street.cloud.observe(street.tenant)

        assert isinstance(seen, Present)
        assert seen.observed.facts.inside is None
        assert broken_rules(wanted(street.tenant), seen.observed.facts) == ()
    finally:
        for connection in held:
            await connection.close()


async def test_a_grant_to_a_neighbours_role_does_not_hold_its_deletion_up(
    street: Street,
) -> None:
    cloud = street.cloud
    leaving = await born(cloud, new_target())
    async with await street.connect(street.tenant) as connection:
        await connection.execute("CREATE TABLE bait (line text)")
        await connection.execute(f'GRANT SELECT ON bait TO "{leaving.name}", "{leaving.active}"'.encode())
    seen = await cloud.observe(leaving)
    assert isinstance(seen, Present)

    await cloud.delete(leaving, seen.observed, Policy.DELETE, FENCE)

    gone = await cloud.observe(leaving)
    assert not isinstance(gone, Present)
    assert gone.remains is False
    roles = await street.server.server.execute("SELECT rolname, rolcanlogin FROM pg_catalog.pg_roles")
    assert {can for name, can in roles if leaving.hash in str(name)} == {False}


async def test_a_locked_database_does_not_hold_a_deletion_up(street: Street) -> None:
    holder = await street.connect(street.tenant)
    await holder.execute("CREATE TABLE busy (line text)")
    await holder.execute("BEGIN")
    await holder.execute("LOCK TABLE busy")
    seen = await street.cloud.observe(street.tenant)
    assert isinstance(seen, Present)

    await street.cloud.delete(street.tenant, seen.observed, Policy.DELETE, FENCE)

    assert not isinstance(await street.cloud.observe(street.tenant), Present)
    await holder.close()
    await born(street.cloud, street.tenant)
