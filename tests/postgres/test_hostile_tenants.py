"""What a hostile tenant may try on a shared server: it gains nothing, harms no other, and fools none of our sessions.

Each attack is run by the tenant's own login, with the tenant's rights alone; then its neighbour and the administrator
are looked at by the superuser, who is not under test. An attack that the server lets through must have changed nothing
outside of the tenant's own database, and the provider must still read and repair that database as if nothing
were there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import psycopg
import pytest
import pytest_asyncio

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.diff import diff
from providers.external.observation import Change, Phase, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import broken_rules
from providers.onprem.incarnations import oid_of
from providers.onprem.translate import wanted
from runtime.errors import Blocked, Transient
from tests.postgres.attacks import ALLOWED, ATTACKS
from tests.postgres.conftest import FENCE, Where, config_of, credential, log_in, new_target, secrets_of, session

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]


@dataclass(frozen=True)
class Street:
    """A tenant who attacks, its neighbour, and where both live; `spare` are tenants who could do nothing at all."""

    cloud: OnPremCloud
    server: OnPremServer
    superuser: psycopg.AsyncConnection
    tenant: Where
    neighbour: Where
    spare: list[Where]

    async def connect(self, where: Where, database: str = "", *, password: str = "") -> psycopg.AsyncConnection:
        return await session(self.server, where, database, password=password or credential(where).password)

    async def world(self) -> object:
        """Return all that a tenant must not be able to change, as the superuser sees it."""
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
                # What the administrator may do as a tenant is no tenant's gain.
                " FROM pg_catalog.pg_auth_members WHERE member <> '{admin}'::regrole ORDER BY 1, 2, 3"
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
        filled = (
            text.replace("{hash}", self.tenant.hash).replace("{admin}", self.server.username) for text in questions
        )
        rows = ", ".join(f"(SELECT pg_catalog.json_agg(q) FROM ({query}) AS q)" for query in filled)  # noqa: S608 - our own
        cursor = await self.superuser.execute(f"SELECT pg_catalog.json_build_array({rows})::text".encode())
        return await cursor.fetchall()

    async def observed(self) -> tuple[Change, ...]:
        seen = await self.cloud.observe(self.tenant)
        assert isinstance(seen, Present)
        drift = (*diff(self.tenant.spec, seen.observed.spec), *broken_rules(wanted(self.tenant), seen.observed.facts))
        if drift:
            await self.cloud.update(self.tenant, seen.observed, drift, FENCE)
        return drift


async def created(cloud: OnPremCloud, where: Where) -> Where:
    await cloud.create(where, credential(where), FENCE)
    return where


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(onprem_server: OnPremServer) -> AsyncIterator[Street]:
    """Yield one provider, one superuser and one neighbour for all attacks; the first tenant is spare."""
    superuser = await psycopg.AsyncConnection.connect(
        onprem_server.server.superuser_conninfo("postgres"), autocommit=True
    )
    async with superuser, connect(config_of(onprem_server), secrets_of(onprem_server)) as cloud:
        neighbour, tenant = await created(cloud, new_target()), await created(cloud, new_target(connectionLimit=9))
        yield Street(cloud, onprem_server, superuser, tenant, neighbour, [tenant])


@pytest_asyncio.fixture(loop_scope="module")
async def street(town: Street) -> AsyncIterator[Street]:
    cloud, spare = town.cloud, town.spare
    tenant = spare.pop() if spare else await created(cloud, new_target(connectionLimit=9))
    yield replace(town, tenant=tenant)
    if tenant in spare:
        return
    seen = await cloud.observe(tenant)
    assert isinstance(seen, Present)
    await cloud.delete(tenant, seen.observed, Policy.DELETE, FENCE)


async def attacked(street: Street, statements: tuple[str, ...]) -> bool:
    """Run an attack as the tenant; return whether the server took every statement."""
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


async def test_attacks_are_many() -> None:
    assert len(ATTACKS) >= 90
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
    assert await log_in(street.cloud, street.tenant, credential(street.tenant)) is Login.OK
    if not went_through and len(ATTACKS[attack]) == 1:
        street.spare.append(street.tenant)


@pytest.mark.parametrize("other", ["neighbour", "fairlead", "postgres", "template1"])
async def test_a_tenant_enters_no_other_database(street: Street, other: str) -> None:
    database = street.neighbour.name if other == "neighbour" else other

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        await street.connect(street.tenant, database)


async def test_all_connections_taken_neither_blind_the_provider_nor_count_as_a_refused_password(street: Street) -> None:
    taken = [await street.connect(street.tenant) for _ in range(9)]
    try:
        seen = await street.cloud.observe(street.tenant)

        assert isinstance(seen, Present)
        assert seen.observed.facts.inside is None
        assert broken_rules(wanted(street.tenant), seen.observed.facts) == ()
        assert await log_in(street.cloud, street.tenant, credential(street.tenant)) is Login.UNKNOWN
        assert await log_in(street.cloud, street.neighbour, credential(street.neighbour)) is Login.OK
        await street.cloud.delete(street.tenant, seen.observed, Policy.DELETE, FENCE)
        assert not isinstance(await street.cloud.observe(street.tenant), Present)
    finally:
        for connection in taken:
            await connection.close()
    await created(street.cloud, street.tenant)


async def test_a_grant_to_a_neighbours_role_does_not_hold_its_deletion_up(
    street: Street,
) -> None:
    cloud = street.cloud
    leaving = await created(cloud, new_target())
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
    await created(street.cloud, street.tenant)


# What a tenant may leave open, each holding a row or a lock that we need.
HELD: dict[str, tuple[str, ...]] = {
    "its login's row": ("SET ROLE none", "BEGIN", "ALTER ROLE {login} PASSWORD 'another-password-1'"),
    "its login's settings": ("SET ROLE none", "BEGIN", "ALTER ROLE {login} SET work_mem = '1MB'"),
    "its database's row": ("BEGIN", "GRANT ALL ON DATABASE {db} TO PUBLIC"),
    "its schema": ("BEGIN", "ALTER SCHEMA public RENAME TO gone"),
}


async def held(street: Street, statements: tuple[str, ...]) -> psycopg.AsyncConnection:
    """Run statements as the tenant and leave their transaction open."""
    connection = await street.connect(street.tenant)
    for statement in statements:
        text = statement.format(login=street.tenant.active, db=street.tenant.name)
        await connection.execute(text.encode())
    return connection


@pytest.mark.parametrize("holding", HELD)
async def test_a_tenants_open_work_does_not_keep_its_login_or_its_database_from_ending(
    street: Street, holding: str
) -> None:
    tenant, other = street.tenant, Credential(f"{street.tenant.active.removesuffix('_a')}_b", "Another1password2here3")
    seen = await street.cloud.observe(tenant)
    assert isinstance(seen, Present)
    holder = await held(street, HELD[holding])

    await street.cloud.set(tenant, seen.observed, other, FENCE)
    assert await log_in(street.cloud, tenant, other) is Login.OK
    await street.cloud.disable(tenant, seen.observed, tenant.active, FENCE)
    assert await log_in(street.cloud, tenant, credential(tenant)) is Login.REFUSED
    await holder.close()

    successor = replace(tenant, active=other.username)
    again = await street.connect(successor, password=other.password)
    await again.execute("BEGIN")
    await again.execute(f'GRANT ALL ON DATABASE "{tenant.name}" TO PUBLIC'.encode())
    await street.cloud.delete(successor, seen.observed, Policy.DELETE, FENCE)
    await again.close()
    assert not isinstance(await street.cloud.observe(tenant), Present)
    await created(street.cloud, tenant)


async def test_an_open_transaction_blinds_nobody_and_stops_one_repair_with_words_alone(street: Street) -> None:
    tenant = street.tenant
    holder = await held(
        street, (*ATTACKS["the schema in its login's name"], "BEGIN", "ALTER SCHEMA public RENAME TO x")
    )
    try:
        with pytest.raises(Transient, match="lock timeout"):
            await street.observed()
        assert await log_in(street.cloud, tenant, credential(tenant)) is Login.OK
        assert await log_in(street.cloud, street.neighbour, credential(street.neighbour)) is Login.OK
    finally:
        await holder.close()
    assert [change.shown for change in await street.observed()] == ["schemas.public.owner"]
    assert await street.observed() == ()


@pytest.mark.parametrize("policy", [Policy.DELETE, Policy.SNAPSHOT])
async def test_a_database_whose_drop_was_cut_off_is_reported_and_its_deletion_finished(
    street: Street, policy: Policy
) -> None:
    tenant, server = street.tenant, street.server.server
    before = await street.cloud.observe(tenant)
    assert isinstance(before, Present)
    oid = oid_of(before.observed.incarnation)
    await server.execute(f"UPDATE pg_catalog.pg_database SET datconnlimit = -2 WHERE oid = {oid}")  # noqa: S608 - a number
    seen = await street.cloud.observe(tenant)
    assert isinstance(seen, Present)
    assert (seen.observed.phase, seen.observed.usable) == (Phase.FAILED, False)
    assert "DROP DATABASE" in seen.observed.state

    if policy is Policy.SNAPSHOT:
        with pytest.raises(Blocked, match="only the policy Delete") as refusal:
            await street.cloud.delete(tenant, seen.observed, policy, FENCE)
        assert refusal.value.reason == "BackupImpossible"
        assert isinstance(await street.cloud.observe(tenant), Present)
    await street.cloud.delete(tenant, seen.observed, Policy.DELETE, FENCE)
    gone = await street.cloud.observe(tenant)
    assert not isinstance(gone, Present)
    assert gone.remains is False
    await created(street.cloud, tenant)
