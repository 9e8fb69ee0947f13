"""What becomes of a database when its resource goes, and what is never done without an instruction or a proof."""

from __future__ import annotations

import psycopg
import pytest

from providers.external.credential import Login
from tests.apiserver.providers.actions import annotate, databases, instruct, kept, login, made, poke, ready
from tests.support.api import JsonObject
from tests.support.kinds import DATABASE, NAMESPACE, PROVIDER_CONFIG, SECRET, condition, database, in_trouble, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def state_of(system: System, name: str) -> list[tuple[object, ...]]:
    """Return the ownership rows about a database, its present name first."""
    rows = await system.server.server.execute(
        "SELECT database, state, kept_as FROM fairlead.ownership", database=system.server.database
    )
    return [row for row in rows if name in row]


async def test_orphan_lets_the_database_live_and_work(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "orphan", deletionPolicy="Orphan")
    name, credentials = obj["status"]["externalName"], await kept(system, namespace, "orphan")

    await system.delete(DATABASE, namespace, "orphan")

    assert name in await databases(system)
    assert await state_of(system, name) == [(name, "released", None)]
    assert await kept(system, namespace, "orphan") == credentials
    assert await login(system, obj) is Login.OK


async def test_snapshot_retires_and_keeps_every_row(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "retired", deletionPolicy="Snapshot")
    name = obj["status"]["externalName"]
    await system.server.server.execute("CREATE TABLE public.kept AS SELECT 'canary' AS line", database=name)

    await system.delete(DATABASE, namespace, "retired")

    ((now_called, state, formerly),) = await state_of(system, name)
    assert (state, formerly) == ("retired", name)
    assert name not in await databases(system)
    assert await system.api.find(SECRET.path(namespace, "retired-credentials")) is None
    await system.server.server.execute(f'ALTER DATABASE "{now_called}" ALLOW_CONNECTIONS true')
    rows = await system.server.server.execute("SELECT line FROM public.kept", database=str(now_called))
    assert rows == [("canary",)]


async def test_delete_drops_while_sessions_are_open(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "dropped")
    credentials = await kept(system, namespace, "dropped")
    connection = obj["status"]["connection"]
    held = await psycopg.AsyncConnection.connect(
        host=connection["host"], port=connection["port"], dbname=connection["database"], user=credentials["username"],
        password=credentials["current"], sslmode="require",
    )  # fmt: skip

    await system.delete(DATABASE, namespace, "dropped")

    assert connection["database"] not in await databases(system)
    assert await state_of(system, connection["database"]) == []
    await held.close()


async def test_the_deletion_of_its_namespace_destroys_nothing(system: System) -> None:
    async with system.namespace() as namespace:
        obj = await made(system, namespace, "kept")
        await system.api.delete(NAMESPACE.path("", namespace))
        await system.api.until_gone(DATABASE.path(namespace, "kept"))

        name = obj["status"]["externalName"]
        assert name in await databases(system)
        assert await state_of(system, name) == [(name, "ready", None)]


async def test_the_deletion_of_an_ephemeral_namespace_follows_the_policy(system: System) -> None:
    async with system.namespace(**{"fairlead.dev/ephemeral": "true"}) as namespace:
        obj = await made(system, namespace, "gone")
        await system.api.delete(NAMESPACE.path("", namespace))
        await system.api.until_gone(DATABASE.path(namespace, "gone"))

        assert obj["status"]["externalName"] not in await databases(system)


async def test_a_child_without_a_teardown_instruction_stays_and_works(system: System, namespace: str) -> None:
    obj = database(namespace, "child")
    obj["metadata"]["labels"] = {"fairlead.dev/claim": "11111111-2222-3333-4444-555555555555"}
    obj["metadata"]["annotations"] = {"fairlead.dev/claim-name": "shop", "fairlead.dev/resource": "database"}
    await system.create(DATABASE, obj)
    living = await ready(system, namespace, "child")
    mark = system.sql.mark()

    await system.api.delete(DATABASE.path(namespace, "child"))
    waiting = await system.until(
        DATABASE, namespace, "child", lambda now: condition(now, "Synced").get("reason") == "AwaitingTeardown"
    )

    assert condition(waiting, "Ready")["status"] == "True"
    assert await login(system, living) is Login.OK
    await instruct(system, namespace, "child", "another-uid/Delete")
    await poke(system, namespace, "child")
    assert system.sql.changes(mark) == []
    await instruct(system, namespace, "child", f"{living['metadata']['uid']}/Delete")
    await system.api.until_gone(DATABASE.path(namespace, "child"))
    assert living["status"]["externalName"] not in await databases(system)


async def test_a_paused_resource_gets_nothing_not_even_its_deletion(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "paused")
    name = obj["status"]["externalName"]
    await annotate(system, namespace, "paused", paused="true", paused_reason="moving the rack")
    obj = await system.until(
        DATABASE, namespace, "paused", lambda now: condition(now, "Synced").get("reason") == "Paused"
    )
    assert "moving the rack" in condition(obj, "Synced")["message"]
    assert condition(obj, "Ready")["status"] == "True"
    await system.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')
    await system.edit(DATABASE, namespace, "paused", {"spec": {"forProvider": {"connectionLimit": 9}}})
    await poke(system, namespace, "paused")
    assert await system.connection_limit(name) == 3
    await system.api.delete(DATABASE.path(namespace, "paused"))
    await poke(system, namespace, "paused")
    assert name in await databases(system)

    await annotate(system, namespace, "paused", paused=None, paused_reason=None)
    await system.api.until_gone(DATABASE.path(namespace, "paused"))
    assert name not in await databases(system)


async def test_observe_shows_and_corrects_nothing_and_releases(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "observed", forProvider={
        "databaseName": "app", "username": "app", "connectionLimit": 5,
    })  # fmt: skip
    name = obj["status"]["externalName"]
    await system.edit(DATABASE, namespace, "observed", {"spec": {"managementPolicy": "Observe"}})
    await system.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')

    def shown(now: JsonObject) -> bool:
        drift = now["status"].get("drift", [])
        return any(entry["path"] == "connectionLimit" and entry["action"] == "Observed" for entry in drift)

    await system.until(DATABASE, namespace, "observed", shown)
    assert await system.connection_limit(name) == 3
    await system.delete(DATABASE, namespace, "observed")
    assert name in await databases(system)


async def test_ignored_fields_are_left_alone(system: System, namespace: str) -> None:
    spec = {"databaseName": "app", "username": "app", "connectionLimit": 5}
    obj = await made(system, namespace, "ignoring", forProvider=spec, ignoreFields=["connectionLimit"])
    name = obj["status"]["externalName"]

    await system.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')
    obj = await poke(system, namespace, "ignoring")

    assert is_ready(obj)
    assert await system.connection_limit(name) == 3


async def test_a_namespace_no_longer_allowed_keeps_what_it_has_and_changes_nothing(system: System) -> None:
    async with system.namespace(team="a") as namespace:
        config = f"closing-{namespace}"
        selector = {"selector": {"matchLabels": {"team": "a"}}}
        await system.create(PROVIDER_CONFIG, system.provider_config(config, allowedNamespaces=selector))
        obj = await made(system, namespace, "tenant", config=config)
        await system.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": None}}})
        await system.edit(DATABASE, namespace, "tenant", {"spec": {"forProvider": {"connectionLimit": 4}}})

        await system.until(DATABASE, namespace, "tenant", in_trouble("NotAllowed"))
        assert await login(system, obj) is Login.OK
        await system.api.delete(DATABASE.path(namespace, "tenant"))
        await poke(system, namespace, "tenant")
        assert obj["status"]["externalName"] in await databases(system)
        await system.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": "a"}}})
        await system.api.until_gone(DATABASE.path(namespace, "tenant"))


async def test_a_wiped_external_reference_comes_back_from_status(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "wiped")
    annotations = {
        key: value for key, value in obj["metadata"]["annotations"].items() if key.startswith("fairlead.dev/")
    }

    await system.edit(
        DATABASE, namespace, "wiped", {"metadata": {"annotations": dict.fromkeys(annotations), "finalizers": None}}
    )

    async def back() -> bool:
        now = await system.api.get(DATABASE.path(namespace, "wiped"))
        there = now["metadata"].get("annotations", {})
        return all(there.get(key) == value for key, value in annotations.items()) and bool(
            now["metadata"].get("finalizers")
        )

    await eventually(back, "annotations and finalizer are back")


async def test_a_predecessor_is_named_and_taken_over_by_consent(system: System, namespace: str) -> None:
    old = database(namespace, "child", deletionPolicy="Orphan")
    labels = {"fairlead.dev/claim": "11111111-2222-3333-4444-000000000001"}
    annotations = {"fairlead.dev/claim-name": "shop", "fairlead.dev/resource": "database"}
    old["metadata"] |= {"labels": labels, "annotations": dict(annotations)}
    await system.create(DATABASE, old)
    former = await ready(system, namespace, "child")
    uid, incarnation = former["metadata"]["uid"], former["status"]["incarnation"]
    await system.api.delete(DATABASE.path(namespace, "child"))
    await instruct(system, namespace, "child", f"{uid}/Detach")
    await system.api.until_gone(DATABASE.path(namespace, "child"))

    again = database(namespace, "child2")
    again["metadata"] |= {
        "labels": {"fairlead.dev/claim": "11111111-2222-3333-4444-000000000002"},
        "annotations": dict(annotations),
    }
    await system.create(DATABASE, again)
    obj = await system.until(DATABASE, namespace, "child2", in_trouble("PredecessorFound"))
    assert incarnation in condition(obj, "Synced")["message"]

    await annotate(system, namespace, "child2", adopt=incarnation)
    await system.until(DATABASE, namespace, "child2", in_trouble("PasswordUnknown"))
    await system.edit(DATABASE, namespace, "child2", {"spec": {"passwordRotation": {"token": "mine"}}})
    adopted = await ready(system, namespace, "child2")
    assert adopted["status"]["incarnation"] == incarnation
    assert adopted["status"]["externalName"] == former["status"]["externalName"]
    assert await login(system, adopted) is Login.OK
