"""No database is replaced by an empty one, or dropped, by a consent, a record or a name that meant another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from devcloud.postgres import server
from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    PROVIDER_CONFIG,
    REVISION,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_FLAGS = ("--no-elect", "--sweep", "1", "--resync", "5", "--grace", "2")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def watchful(system: System) -> System:
    """Return composer and a provider that looks often at work."""
    await system.start_composer("--no-elect", "--resync", "5")
    await system.start_provider(*_FLAGS)
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    return system


@asynccontextmanager
async def _provider_away(system: System) -> AsyncIterator[None]:
    """Have no provider for the length of a block."""
    await system.started[-1].kill9()
    try:
        yield
    finally:
        await system.start_provider(*_FLAGS)


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0, command


async def _drop(home: Home) -> None:
    await home.system.server.server.execute(f"DROP DATABASE {home.database} WITH (FORCE)")


async def _until_lost(home: Home) -> str:
    """Wait until the database is reported lost; return the incarnation that the way out names."""
    name = (await home.child())["metadata"]["name"]
    lost = await home.system.until(DATABASE, home.namespace, name, in_trouble("DatabaseLost"))
    assert condition(lost, "Ready")["status"] == "False"
    message = str(condition(lost, "Synced")["message"])
    return message.partition("fairlead.dev/consent=recreate=")[2].split()[0].rstrip("`")


async def _consent(home: Home, incarnation: str) -> None:
    name = (await home.child())["metadata"]["name"]
    annotations = {"fairlead.dev/consent": f"recreate={incarnation}"}
    await home.system.edit(DATABASE, home.namespace, name, {"metadata": {"annotations": annotations}})


async def _until_made_anew(home: Home, lost: str) -> str:
    """Wait until the claim has another database; return its incarnation."""
    name = (await home.child())["metadata"]["name"]

    def is_another(obj: JsonObject) -> bool:
        return is_ready(obj) and obj["metadata"]["annotations"]["fairlead.dev/incarnation"] not in {"", lost}

    made = await home.system.until(DATABASE, home.namespace, name, is_another)
    await home.system.until(CLAIM, home.namespace, home.name, is_ready)
    return str(made["metadata"]["annotations"]["fairlead.dev/incarnation"])


async def _is_not_replaced(home: Home, creates: int) -> None:
    """Let the provider look again, and prove that it made nothing."""
    name = (await home.child())["metadata"]["name"]
    for _ in range(3):
        await home.system.ask_for_a_pass(DATABASE, home.namespace, name)
        await home.system.at_rest(for_s=1.0)
    rows = await home.system.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    assert (home.database,) not in rows
    assert home.creates() == creates


async def test_a_consent_to_start_empty_counts_once_although_a_restored_server_gives_the_same_oid_again(
    watchful: System, namespace: str
) -> None:
    system = watchful
    data, backup = server.data_of(system.folder / "onprem" / "server"), system.folder / "base-backup"
    async with system.server_away():
        await _run("cp", "-a", str(data), str(backup))
    home = await move_in(system, claim(namespace, "restored"))
    async with _provider_away(system), system.server_away():
        await _run("rm", "-rf", str(data))
        await _run("cp", "-a", str(backup), str(data))

    first = await _until_lost(home)
    await _consent(home, first)
    second = await _until_made_anew(home, first)
    # What makes the test: the server gave the new database the lost one's oid.
    assert first.partition("-")[0] == second.partition("-")[0]
    await _drop(home)

    assert await _until_lost(home) == second
    await _is_not_replaced(home, creates=2)


async def test_a_database_that_is_gone_is_lost_although_its_resource_has_forgotten_it(
    watchful: System, namespace: str
) -> None:
    system = watchful
    home = await move_in(system, claim(namespace, "forgotten"))
    child = await home.child()
    path = DATABASE.path(namespace, child["metadata"]["name"])
    incarnation = child["metadata"]["annotations"]["fairlead.dev/incarnation"]

    async with _provider_away(system):
        await _drop(home)
        annotations = dict.fromkeys(f"fairlead.dev/{name}" for name in ("incarnation", "account", "external-name"))
        await system.api.merge(path, {"metadata": {"annotations": annotations}})
        bare = {**await system.api.get(path), "status": {"observedGeneration": -1}}
        await system.api.replace(f"{path}/status", bare)

    assert await _until_lost(home) == incarnation
    await _is_not_replaced(home, creates=1)
    await _consent(home, incarnation)
    await _until_made_anew(home, incarnation)


# A name that a moved resource's object has


def _databases(name: str, **resources: JsonObject) -> JsonObject:
    """Return a Composition of databases by their resources' names; the first one is the claim's connection."""
    texts = {key: f"{{{{ claim.spec.{key} | default('app') }}}}" for key in ("databaseName", "username", "version")}

    def resource(called: str, fields: JsonObject) -> JsonObject:
        spec = {"forProvider": {**texts, **fields.get("forProvider", {})}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        rest: dict[str, Any] = {key: value for key, value in fields.items() if key != "forProvider"}
        return {"name": called, "template": template, **rest}

    connected = next(iter(resources))
    made = [resource(called, fields) for called, fields in resources.items()]
    return composition(name, *made, connection={"from": connected})


def _is_on_another(former: JsonObject) -> Callable[[JsonObject], bool]:
    """Return a test whether a claim is Ready with another revision than it had."""
    revision = former["status"]["composition"]["revision"]
    return lambda obj: is_ready(obj) and obj["status"]["composition"]["revision"] != revision


async def _publish(system: System, body: JsonObject) -> None:
    await system.api.merge(COMPOSITION.path("", body["metadata"]["name"]), {"spec": body["spec"]})


async def test_a_name_that_a_moved_database_was_made_under_never_means_another_one(
    watchful: System, namespace: str
) -> None:
    system, name = watchful, f"{namespace}-c"
    another: JsonObject = {"forProvider": {"connectionLimit": 7}}
    async with system.composition(_databases(name, a={})):
        spec = {"compositionRef": {"name": name}, "deletionPolicy": "Delete"}
        home = await move_in(system, claim(namespace, "moved", **spec))
        before = await home.child()
        await _publish(system, _databases(name, b={"movedFrom": ["a"]}))

        def is_moved(obj: JsonObject) -> bool:
            entries = [(entry["resource"], entry.get("origin")) for entry in obj["status"]["inventory"]]
            return is_ready(obj) and entries == [("b", "a")]

        moved = await system.until(CLAIM, namespace, "moved", is_moved)

        # The Composition is refused while the move is on record,
        await _publish(system, _databases(name, b={}, a=another))
        refused = await system.until(COMPOSITION, "", name, in_trouble("DuplicateResource"))
        assert "give this resource another name" in condition(refused, "Stalled")["message"]
        # and the claim where it is not: the revision that said so was removed by force.
        revision = REVISION.path("", moved["status"]["composition"]["revision"])
        await _publish(system, _databases(name, b={}))
        await system.until(COMPOSITION, "", name, is_ready)
        await system.until(CLAIM, namespace, "moved", _is_on_another(moved))
        await system.api.merge(revision, {"metadata": {"finalizers": None}})
        if await system.api.find(revision) is not None:
            await system.api.delete(revision)
        await _publish(system, _databases(name, b={}, a=another))
        obj = await system.until(CLAIM, namespace, "moved", in_trouble("DuplicateResource"))
        assert "are both PostgresDatabase" in condition(obj, "Synced")["message"]

        # Out again: there is nothing to consent to, and a consent drops nothing.
        await _publish(system, _databases(name, b={}))
        await system.until(CLAIM, namespace, "moved", is_ready)
        consent = {"fairlead.dev/consent": f"a={before['metadata']['uid']}"}
        await system.edit(CLAIM, namespace, "moved", {"metadata": {"annotations": consent}})
        await system.ask_for_a_pass(CLAIM, namespace, "moved")
        await system.at_rest(for_s=1.0)
        after = await home.child()
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"]["forProvider"] == before["spec"]["forProvider"]
        await home.until_home()
        await home.untouched()
        await home.delete()
