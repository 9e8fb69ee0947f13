"""What is lost although its claim lives comes back, and the same row of data stands in the same database.

A restored cluster, finalizers and claims that are forced away: tests/security/test_ways_to_lose.py.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.api import JsonObject
from tests.support.grants import allow_composer
from tests.support.home import claim, move_in, poke
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CRD,
    DATABASE,
    SECRET,
    Kind,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.staff import Absence, Staff, give_to_a_stranger, is_deleting
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


# While both processes are at work


async def test_what_is_lost_while_all_are_at_work_comes_back(staff: Staff, namespace: str) -> None:
    taken = ("connection", None), ("credentials", None), ("credentials", "orders-db")
    async with asyncio.TaskGroup() as group:
        group.create_task(_child_deleted_by_hand(staff, namespace))
        for number, (suffix, connection) in enumerate(taken):
            body = claim(namespace, f"secrets-{number}", connectionSecretName=connection)
            group.create_task(_secret_taken_by_the_collector(staff.system, body, suffix))


async def _child_deleted_by_hand(staff: Staff, namespace: str) -> None:
    home = await move_in(staff.system, claim(namespace, "byhand", deletionPolicy="Delete"))
    child = await home.child()

    await home.delete_child(child)

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def _secret_taken_by_the_collector(system: System, body: JsonObject, suffix: str) -> None:
    home = await move_in(system, body)
    namespace = home.namespace
    before = await system.binding(namespace, home.name)
    path = await home.secret_path(suffix)
    uid = (await system.api.get(path))["metadata"]["uid"]

    await give_to_a_stranger(system, path)
    await _until_another(system, path, uid)
    await poke(system, home.path)
    await poke(system, DATABASE.path(namespace, (await home.child())["metadata"]["name"]))
    await system.until(SECRET, namespace, path.rpartition("/")[2], lambda _secret: True)

    await home.until_home()
    assert (await system.binding(namespace, home.name))["password"] == before["password"]
    await home.untouched()


# While the composer is away


async def test_a_child_lost_while_the_composer_is_away_comes_back(staff: Staff, namespace: str) -> None:
    absence = Absence(staff.stop_composer, staff.start_composer, parties=2)
    async with asyncio.TaskGroup() as group:
        group.create_task(_child_waits_for_its_instruction(staff.system, namespace, absence))
        group.create_task(_child_taken_by_the_collector(staff.system, namespace, absence))


async def _child_waits_for_its_instruction(system: System, namespace: str, absence: Absence) -> None:
    home = await move_in(system, claim(namespace, "waits", deletionPolicy="Delete"))
    child = await home.child()
    async with absence.away():
        await home.delete_child(child)
        await home.until_child_says(child, "AwaitingTeardown")
        await home.untouched()

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def _child_taken_by_the_collector(system: System, namespace: str, absence: Absence) -> None:
    home = await move_in(system, claim(namespace, "collected", deletionPolicy="Delete"))
    child = await home.child()
    # A living composer would put its own ownerRef back before the collector looks.
    async with absence.away():
        await give_to_a_stranger(system, DATABASE.path(namespace, child["metadata"]["name"]))
        await system.until(DATABASE, namespace, child["metadata"]["name"], is_deleting)

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


# While nobody is at work


async def test_what_is_lost_while_nobody_is_at_work_costs_no_database(staff: Staff, namespace: str) -> None:
    absence = Absence(staff.stop, staff.complete, parties=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(_both_secrets_lost(staff.system, namespace, absence))
        for kind in (CLAIM, DATABASE):
            group.create_task(_memory_wiped(staff.system, namespace, absence, kind), name=kind.kind)


async def _both_secrets_lost(system: System, namespace: str, absence: Absence) -> None:
    home = await move_in(system, claim(namespace, "bothlost"))
    paths = [await home.secret_path(suffix) for suffix in ("connection", "credentials")]
    async with absence.away():
        for path in paths:
            await system.api.delete(path)

    await poke(system, DATABASE.path(namespace, (await home.child())["metadata"]["name"]))
    await home.until_stalled("PasswordUnknown")
    assert await home.rows_behind() == [home.row]
    assert (home.creates(), home.drops()) == (1, 0)

    await system.api.merge(home.path, {"spec": {"passwordRotation": {"token": "after-the-loss"}}})
    await home.until_home()


async def _memory_wiped(system: System, namespace: str, absence: Absence, kind: Kind) -> None:
    """What is remembered is put back without a new database."""
    name = "claim-wiped" if kind is CLAIM else "child-wiped"
    home = await move_in(system, claim(namespace, name, deletionPolicy="Delete"))
    child = await home.child()
    path = home.path if kind is CLAIM else DATABASE.path(namespace, child["metadata"]["name"])
    before = await system.api.get(path)
    async with absence.away():
        # Nothing is put back between the two removals.
        await _wipe(system, kind, before, "status-and-annotations")

    def is_put_back(obj: JsonObject) -> bool:
        return (
            is_ready(obj)
            and before["metadata"]["annotations"].items() <= obj["metadata"].get("annotations", {}).items()
        )

    await system.until(kind, namespace, before["metadata"]["name"], is_put_back)
    await home.until_home()
    await home.untouched()
    assert (await home.child())["metadata"]["uid"] == child["metadata"]["uid"]
    await home.delete()
    assert home.drops_carried_out() == 1


# What says that a kind holds data is lost


_SETTINGS: JsonObject = {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}}


async def test_a_database_is_kept_although_its_crd_does_not_say_any_more_that_it_holds_data(
    staff: Staff, namespace: str
) -> None:
    system, name = staff.system, f"{namespace}-c"
    await allow_composer(system, "", "configmaps")
    await system.create(COMPOSITION, _with_database(name))
    home = await move_in(system, claim(namespace, "label", compositionRef={"name": name}))
    try:
        await _label_kind(system, None)
        await system.api.merge(COMPOSITION.path("", name), {"spec": {"connection": None, "resources": [_SETTINGS]}})

        held = await home.until_stalled("HeldDeletion")
        assert "holds data" in condition(held, "Stalled")["message"]
        await home.untouched()

        # The label says the contrary, and what the claim remembered is lost: the provider is the second wall.
        async with staff.away():
            await _label_kind(system, "false")
            await _wipe(system, CLAIM, await system.api.get(home.path), "status")
        child = await home.child()
        held = await system.until(DATABASE, namespace, child["metadata"]["name"], in_trouble("HeldDeletion"))
        message = condition(held, "Synced")["message"]
        assert "the claim's word is Delete" in message
        assert "spec.deletionPolicy of this resource is Orphan" in message
        await home.untouched()
    finally:
        await _label_kind(system, "true")
    await home.delete()
    await home.untouched()
    await system.api.delete(COMPOSITION.path("", name))


def _with_database(name: str) -> JsonObject:
    texts = {key: f"{{{{ claim.spec.{key} | default('app') }}}}" for key in ("databaseName", "username", "version")}
    template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"forProvider": texts}}
    return composition(name, {"name": "database", "template": template}, _SETTINGS, connection={"from": "database"})


async def _label_kind(system: System, value: str | None) -> None:
    name = f"{DATABASE.plural}.{DATABASE.group}"
    await system.api.merge(CRD.path("", name), {"metadata": {"labels": {"fairlead.dev/stateful": value}}})


async def _wipe(system: System, kind: Kind, target: JsonObject, wiped: str) -> None:
    """Take away what we remember on an object, as `kubectl replace` and backups do."""
    meta = target["metadata"]
    path = kind.path(meta["namespace"], meta["name"])
    if "annotations" in wiped:
        ours = [key for key in meta["annotations"] if key.startswith("fairlead.dev/")]
        await system.api.merge(path, {"metadata": {"annotations": dict.fromkeys(ours)}})
    if "status" in wiped:
        bare = {**await system.api.get(path), "status": {"observedGeneration": -1}}
        await system.api.replace(f"{path}/status", bare)


async def _until_another(system: System, path: str, uid: str) -> None:
    namespace, name = path.split("/")[-3], path.rpartition("/")[2]

    async def another() -> bool:
        secret = await system.api.find(SECRET.path(namespace, name))
        return secret is None or secret["metadata"]["uid"] != uid

    await eventually(another, f"the collector took {path}")
