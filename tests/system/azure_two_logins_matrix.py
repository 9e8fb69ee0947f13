"""Two logins of an application on Azure: made before the database, given their rights in it, rotated, kept true."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.support.api import JsonObject
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, SERVER_DATABASE, Azure
from tests.support.kinds import CLAIM, SECRET, claim, is_ready
from tests.support.simulated_cloud import QUICK
from tests.support.system import decoded
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
_GRACE_S = 15
_TWO = {"loginCheck": "Required", "logins": "Alternating"}
_ONE = {"loginCheck": "Required", "logins": "Administrator"}
_SERVER = "flexibleServers"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alternating(azure: Azure) -> AsyncIterator[Azure]:
    """Yield composer and provider at work, with former logins that end soon and a ProviderConfig of two logins."""
    await asyncio.gather(azure.system.start_composer(), azure.start_provider(*QUICK, f"--rotation-grace={_GRACE_S}"))
    await azure.system.until(AZURE_CONFIG, "", "default", is_ready)
    await azure.system.edit(AZURE_CONFIG, "", "default", {"spec": _TWO})
    yield azure


async def _made(azure: Azure, namespace: str, **spec: Any) -> dict[str, str]:
    """Make a claim and wait until it is Ready; return its binding."""
    await azure.system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete", **spec))
    await azure.system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
    return await azure.system.binding(namespace, "orders")


async def _rows(azure: Azure, binding: Mapping[str, str], sql: str) -> list[tuple[Any, ...]]:
    async with await azure.system.login_by(binding) as connection:
        cursor = await connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []


async def _rotated(azure: Azure, namespace: str) -> dict[str, str]:
    """Ask for a rotation and wait until another password is published; return the binding."""
    before = await azure.system.binding(namespace, "orders")
    spec = {"passwordRotation": {"token": secrets.token_hex(4)}}
    await azure.system.edit(CLAIM, namespace, "orders", {"spec": spec})

    async def followed() -> dict[str, str] | None:
        now = await azure.system.binding(namespace, "orders")
        return now if now["password"] != before["password"] else None

    return await eventually(followed, "another password is published", limit_s=120)


async def _until_refused(azure: Azure, binding: Mapping[str, str]) -> None:
    async def is_refused() -> bool:
        return not await azure.system.logs_in_by(binding)

    await eventually(is_refused, f"{binding['username']} is refused", limit_s=120)


async def _patches(azure: Azure, namespace: str, since: int) -> list[str]:
    """Return what was sent to the claim's server itself."""
    name = await azure.name_of(namespace, "orders")
    calls = [call for call in await azure.changes(since) if str(call["identifier"]).endswith(name)]
    return [str(call["action"]) for call in calls if call["action"].startswith(f"{_SERVER}.")]


async def _server(azure: Azure, namespace: str) -> JsonObject:
    return await azure.server_of(namespace, "orders")


async def _wake(azure: Azure, namespace: str) -> None:
    name = (await _server(azure, namespace))["metadata"]["name"]
    metadata = {"annotations": {"fairlead.dev/reconcile-requested-at": secrets.token_hex(4)}}
    await azure.system.edit(FLEXIBLE_SERVER, namespace, name, {"metadata": metadata})


async def made_with_rights_in_a_database_that_came_later(azure: Azure, namespace: str) -> None:
    since = await azure.mark()
    first = await _made(azure, namespace)
    assert first["username"] == "orders_app_a"
    # Whoever is told that the claim is Ready may make tables at once.
    await _rows(azure, first, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    assert await _rows(azure, first, "SELECT session_user::text, current_user::text") == [
        ("orders_app_a", "orders_app_owner")
    ]
    for role in ("azure_pg_admin", "orders_app"):
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            await _rows(azure, first, f"SET ROLE {role}")
            raise AssertionError(f"the application may become {role}")
    assert await _patches(azure, namespace, since) == [f"{_SERVER}.put"]

    second = await _rotated(azure, namespace)
    assert second["username"] == "orders_app_b"
    assert await _patches(azure, namespace, since) == [f"{_SERVER}.put"], "ARM is asked for nothing"
    assert await azure.system.logs_in_by(first), "the former login works for its grace"
    await _rows(azure, second, "ALTER TABLE harvest ADD COLUMN year int")
    await _until_refused(azure, first)
    assert await azure.system.logs_in_by(second)


async def moved_from_one_login_at_its_next_rotation(azure: Azure, namespace: str) -> None:
    await azure.system.edit(AZURE_CONFIG, "", "default", {"spec": _ONE})
    first = await _made(azure, namespace)
    assert first["username"] == "orders_app"
    await _rows(azure, first, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    await azure.system.edit(AZURE_CONFIG, "", "default", {"spec": _TWO})
    since = await azure.mark()
    moved = await _rotated(azure, namespace)
    assert moved["username"] == "orders_app_a"
    assert await _patches(azure, namespace, since) == [], "the administrator's password is the application's still"
    assert await azure.system.logs_in_by(first)
    await _rows(azure, moved, "ALTER TABLE harvest ADD COLUMN year int")
    await _until_refused(azure, first)
    assert await azure.system.logs_in_by(moved)
    assert await _patches(azure, namespace, since) == [f"{_SERVER}.patch"]
    assert (await _rotated(azure, namespace))["username"] == "orders_app_b"
    assert await _patches(azure, namespace, since) == [f"{_SERVER}.patch"]


async def put_back_when_a_person_took_the_administrator(azure: Azure, namespace: str) -> None:
    binding = await _made(azure, namespace)
    name = await azure.name_of(namespace, "orders")
    await azure.person("PATCH", name, {"properties": {"administratorLoginPassword": "By-hand-4711"}})
    by_hand = {**binding, "username": "orders_app", "password": "By-hand-4711"}

    async def is_in() -> bool:
        return await azure.system.logs_in_by(by_hand)

    await eventually(is_in, "the person's password counts", limit_s=60)
    async with await azure.system.login_by(by_hand) as person:
        await person.execute("ALTER ROLE orders_app_a NOLOGIN PASSWORD NULL")
        await person.execute("REVOKE orders_app_owner FROM orders_app_a")
        await person.execute("CREATE TABLE by_hand AS SELECT 1 AS number")
    await _wake(azure, namespace)

    async def is_back() -> bool:
        return await azure.system.logs_in_by(binding) and not await azure.system.logs_in_by(by_hand)

    await eventually(is_back, "the application is in again, and the person is not", limit_s=180)

    async def owns_it() -> bool:
        sql = "SELECT tableowner::text FROM pg_tables WHERE tablename = 'by_hand'"
        return await _rows(azure, binding, sql) == [("orders_app_owner",)]

    await eventually(owns_it, "what the person made is the owner role's", limit_s=120)


async def restored_with_another_password_of_the_administrator(azure: Azure, namespace: str) -> None:
    source = await _made(azure, namespace)
    await _rows(azure, source, "CREATE TABLE harvest AS SELECT 42 AS bushels")
    heir = claim(namespace, "heir", deletionPolicy="Delete", databaseName="orders", username="orders_app")
    heir["spec"]["restoreFrom"] = {"claim": "orders"}
    await azure.system.create(CLAIM, heir)
    await azure.system.until(CLAIM, namespace, "heir", is_ready, limit_s=180)
    binding = await azure.system.binding(namespace, "heir")
    assert binding["username"] == "orders_app_a"
    await _rows(azure, binding, "UPDATE harvest SET bushels = 43")
    assert not await azure.system.logs_in_by({**binding, "password": source["password"]})
    assert await azure.system.logs_in_by(source)


SIDE_BY_SIDE = (
    made_with_rights_in_a_database_that_came_later,
    put_back_when_a_person_took_the_administrator,
    restored_with_another_password_of_the_administrator,
)


async def test_lives_of_two_logins(alternating: Azure) -> None:
    """The one that edits the ProviderConfig goes before the others."""
    async with asyncio.timeout(500):
        async with alternating.namespace() as namespace:
            await moved_from_one_login_at_its_next_rotation(alternating, namespace)
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            for life in SIDE_BY_SIDE:
                namespace = await stack.enter_async_context(alternating.namespace())
                group.create_task(life(alternating, namespace), name=life.__name__)


async def test_a_database_of_a_killed_provider_is_not_ready_before_the_logins_have_their_rights(
    alternating: Azure,
) -> None:
    """Kill -9 once ARM was asked for the database: the next process does not know that no rights were given in it."""
    system = alternating.system
    async with alternating.namespace() as namespace:
        since = await alternating.mark()
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))

        async def is_asked_for() -> bool:
            return any(call["action"] == "databases.put" for call in await alternating.changes(since))

        await eventually(is_asked_for, "ARM is asked for the database", limit_s=180)
        (provider,) = [
            program for program in system.started if program.is_running and "provider-azure" in program.log.name
        ]
        await provider.kill9()
        await alternating.start_provider(*QUICK, f"--rotation-grace={_GRACE_S}")

        child = await _child(alternating, namespace)
        await system.until(SERVER_DATABASE, namespace, child, is_ready, limit_s=180)
        login = await _published(alternating, namespace)
        await _rows(alternating, login, "CREATE TABLE harvest AS SELECT 42 AS bushels")
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        actions = [call["action"] for call in await alternating.changes(since)]
        assert [actions.count(action) for action in (f"{_SERVER}.put", "databases.put")] == [1, 1]


async def _published(azure: Azure, namespace: str) -> dict[str, str]:
    """Return what the server's object publishes; it reaches the claim's Secret after the database is Ready."""
    published = (await _server(azure, namespace))["status"]["connection"]
    name = published["passwordRef"]["name"]
    secret = decoded(await azure.system.api.get(SECRET.path(namespace, name)))
    files = {"password": secret[published["passwordRef"]["key"]], "certificates": secret[published["caRef"]["key"]]}
    return {**published, **files}


async def _child(azure: Azure, namespace: str) -> str:
    items = await azure.system.api.items(SERVER_DATABASE.path(namespace))
    return str(items[0]["metadata"]["name"]) if items else ""
