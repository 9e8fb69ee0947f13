"""Which servers and logins are accepted, and that a newer major version behaves as the oldest one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from devcloud import addresses, onprem
from devcloud.daemons import Lifetime
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.login import try_login
from providers.external.observation import Absent
from providers.external.provider import NO_ACCOUNT, RecordedAccount
from providers.external.sql.session import ConnectionSettings
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.session import Sessions
from runtime.errors import Failure, Terminal, Transient
from tests.postgres.conftest import FENCE, Database, config_of, credential, new_target, secrets_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def newer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OnPremServer]:
    folder = tmp_path_factory.mktemp("newer")
    lease = addresses.lease()
    yield await onprem.start(
        onprem.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False, major=18), lease
    )
    await onprem.stop(folder, grace_s=5.0)
    lease.release()


@pytest.fixture
def superuser(onprem_server: OnPremServer) -> dict[str, dict[str, str]]:
    login = {"username": "postgres", "password": onprem_server.server.superuser_password}
    return {"admin": {**secrets_of(onprem_server)["admin"], **login}}


async def refused(config: Any, secrets: dict[str, dict[str, str]], recorded: RecordedAccount = NO_ACCOUNT) -> Failure:
    with pytest.raises(Failure) as refusal:
        async with connect(config, secrets, recorded):
            pass
    return refusal.value


async def test_the_life_of_a_database_on_a_newer_server(newer: OnPremServer) -> None:
    async with connect(config_of(newer), secrets_of(newer)) as cloud:
        where = new_target(version="18", connectionLimit=5, parameters={"timezone": "UTC"})
        database = await Database(cloud, newer, where).create()
        assert await database.changes() == ()
        other = Credential(where.active.removesuffix("_a") + "_b", "Another1password2here3")
        await cloud.set(where, await database.look(), other, FENCE)
        assert await database.logs_in(other) is Login.OK
        await database.delete()
        assert await cloud.observe(where) == Absent()


async def test_a_superuser_is_refused_unless_allowed(
    onprem_server: OnPremServer, superuser: dict[str, dict[str, str]]
) -> None:
    refusal = await refused(config_of(onprem_server), superuser)
    assert isinstance(refusal, Terminal)
    assert refusal.reason == "CredentialsForbidden"
    assert "allowSuperuser" in refusal.message

    # Who comes first owns the table of owners: on the server that all tests share that is the administrator.
    async with connect(config_of(onprem_server), secrets_of(onprem_server)):
        pass
    config = msgspec.structs.replace(config_of(onprem_server), allow_superuser=True)
    async with connect(config, superuser) as cloud:
        assert isinstance(cloud, OnPremCloud)


async def test_another_server_than_the_recorded_one_is_refused_before_a_statement_changes_it(
    onprem_server: OnPremServer,
) -> None:
    refusal = await refused(config_of(onprem_server), secrets_of(onprem_server), RecordedAccount("1234567890"))

    assert isinstance(refusal, Terminal)
    assert refusal.reason == "AccountChanged"
    assert "fairlead.dev/consent=account=" in refusal.message


async def test_databases_that_everybody_may_enter_are_named(newer: OnPremServer) -> None:
    await newer.server.execute("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
    try:
        async with connect(config_of(newer), secrets_of(newer)) as cloud:
            assert "postgres" in "; ".join(cloud.warnings())
    finally:
        await newer.server.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
    async with connect(config_of(newer), secrets_of(newer)) as cloud:
        assert cloud.warnings() == ()


async def test_a_server_that_went_away_comes_back_to_the_same_sessions(newer: OnPremServer) -> None:
    async with connect(config_of(newer), secrets_of(newer)) as cloud:
        where = new_target()
        assert await cloud.observe(where) == Absent()
        await newer.server.execute(
            "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity"
            " WHERE usename = 'fairlead_admin'"
        )
        # The look that meets the end of its session may fail; the next one has a new session.
        with suppress(Transient):
            await cloud.observe(where)

        assert await cloud.observe(where) == Absent()


async def test_an_answer_that_does_not_come_is_given_up_and_its_session_never_used_again(newer: OnPremServer) -> None:
    endpoint = Endpoint(newer.host, newer.port, newer.database, VERIFIED, newer.authority_pem.decode())
    authority = newer.certificate.with_name("authority.crt")
    admin = Credential(newer.username, newer.password)
    sessions = Sessions(ConnectionSettings(endpoint, admin, authority, answer_s=0.5))
    try:
        with pytest.raises(Transient, match="cannot wait"):
            async with sessions.own("wait") as session:
                await session.rows("SELECT pg_catalog.pg_sleep(600)")
        async with sessions.own("look") as another:
            assert another is not session
            rows = await another.rows("SELECT datname, oid::int8 FROM pg_database WHERE NOT datistemplate ORDER BY oid")
        assert (await try_login(endpoint, admin, lists=True)).databases == tuple(rows) != ()
    finally:
        await sessions.close()


async def test_an_untrusted_extension_comes_from_a_template_alone(newer: OnPremServer) -> None:
    where = new_target(extensions=["vector"])
    async with connect(config_of(newer), secrets_of(newer)) as cloud:
        with pytest.raises(Terminal, match="vector") as refusal:
            await cloud.create(where, credential(where), FENCE)
        assert refusal.value.reason == "AccessDenied"

    await newer.server.execute(
        "CREATE DATABASE with_vector TEMPLATE template0", "ALTER DATABASE with_vector IS_TEMPLATE true"
    )
    await newer.server.execute("CREATE EXTENSION vector", database="with_vector")
    await newer.server.execute("REVOKE CONNECT ON DATABASE with_vector FROM PUBLIC")
    config = msgspec.structs.replace(config_of(newer), template_database="with_vector")
    where = new_target(extensions=["vector"])
    async with connect(config, secrets_of(newer)) as cloud:
        assert await (await Database(cloud, newer, where).create()).changes() == ()
