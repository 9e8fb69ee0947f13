"""A database on the server in memory, through the provider's own clients, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from apis.teardown import Policy
from fairlead.simulation import virtual_time
from fairlead.simulation.onprem import CONFIG, SECRET, SERVER, OnPrem
from fairlead.simulation.postgres.engine import execute
from fairlead.simulation.postgres.refusals import UnmodelledError
from fairlead.simulation.postgres.server import SUPERUSER, Backend
from fairlead.simulation.process_life import ProcessLife
from providers.external.client import Fence, Target
from providers.external.credential import Credential, Login
from providers.external.diff import diff
from providers.external.observation import Absent, Observed, Present
from providers.external.ownership import Owner
from providers.external.sql.session import Unreached
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import Facts, broken_rules
from providers.onprem.models import PostgresDatabaseParameters, ProviderConfigSpec
from providers.onprem.translate import wanted
from runtime import clock

PASSWORD = "Correct1horse2battery3"
SPEC = msgspec.convert({"databaseName": "orders", "username": "app", "connectionLimit": 5}, PostgresDatabaseParameters)
OWNER = Owner("installation", "uid", "claim", "team", "orders", "database")
TARGET = Target("orders_0123456789", SPEC, OWNER, "0123456789", active="app_0123456789_a")


def fence() -> Fence:
    return Fence(until=clock.monotonic() + 3600, leads=lambda: True, monotonic=clock.monotonic)


@asynccontextmanager
async def connected(made: OnPrem) -> AsyncIterator[OnPremCloud]:
    config = msgspec.convert(CONFIG, ProviderConfigSpec)
    async with connect(config, {"onprem-admin": SECRET}, transport=made.transport(ProcessLife())) as cloud:
        yield cloud


async def look(
    cloud: OnPremCloud, target: Target[PostgresDatabaseParameters]
) -> Observed[PostgresDatabaseParameters, Facts]:
    seen = await cloud.observe(target)
    assert isinstance(seen, Present)
    return seen.observed


def new() -> OnPrem:
    return OnPrem(lambda *_words: None, virtual_time.chance_of("1", "cloud"))


async def life_of_a_database() -> None:
    made, login = new(), Credential(TARGET.active, PASSWORD)
    async with connected(made) as cloud:
        assert await cloud.observe(TARGET) == Absent()
        await cloud.create(TARGET, login, fence())
        assert (await cloud.try_login(cloud.endpoint(TARGET.name), login)).login is Login.OK
        assert made.admits(SERVER, login.username, login.password, TARGET.name)

        made.ask(f"ALTER DATABASE {TARGET.name} CONNECTION LIMIT 50")
        seen = await look(cloud, TARGET)
        changes = (*diff(SPEC, seen.spec), *broken_rules(wanted(TARGET), seen.facts))
        assert [change.path for change in changes] == [("connectionLimit",)]
        await cloud.update(TARGET, seen, changes, fence())
        seen = await look(cloud, TARGET)
        assert seen.spec.connection_limit == 5

        await cloud.delete(TARGET, seen, Policy.DELETE, fence())
        assert await cloud.observe(TARGET) == Absent()
        assert not made.admits(SERVER, login.username, login.password, TARGET.name)


def test_a_database_is_made_changed_and_deleted_on_virtual_time() -> None:
    virtual_time.run("1", life_of_a_database)


def test_a_statement_that_nobody_modelled_is_an_error_of_the_simulation() -> None:
    backend = Backend(new().server, SUPERUSER, 5, SUPERUSER, SUPERUSER)

    with pytest.raises(UnmodelledError, match="VACUUM"):
        execute(backend, "VACUUM", None)


def test_a_change_of_a_role_is_written_down_by_its_name() -> None:
    cloud = new()
    for statement in ('CREATE ROLE "anna" LOGIN', 'ALTER ROLE "anna" SUPERUSER'):
        cloud.ask(statement)

    last = cloud.history[-1]
    assert (last.principal, last.action, last.name) == ("stranger", "roles.change", "anna")


def test_several_statements_are_one_transaction() -> None:
    server = new().server
    backend = Backend(server, SUPERUSER, 5, SUPERUSER, SUPERUSER)

    with pytest.raises(Exception, match='role "nobody" does not exist'):
        execute(backend, "CREATE ROLE anna LOGIN; GRANT anna TO nobody", None)

    assert server.role_or_none("anna") is None


async def login_without_an_answer() -> None:
    made = new()
    made.weather.cut_after = 1.0
    with pytest.raises(Unreached):
        async with connected(made):
            pass
    assert made.server.backends == []


def test_a_login_whose_answer_is_lost_leaves_no_session() -> None:
    virtual_time.run("1", login_without_an_answer)
