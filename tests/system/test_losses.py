"""What is lost although its claim lives comes back, and the same row of data is found in the same database."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.api import ApiError, JsonObject
from tests.support.grants import allow_composer
from tests.support.home import claim, move_in, poke, until_gone
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
from tests.support.staff import Staff, give_to_a_stranger, is_deleting, unless_gone
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


# A child that goes although its claim lives


async def test_a_child_deleted_by_hand_comes_back_with_its_database(staff: Staff, namespace: str) -> None:
    home = await move_in(staff.system, claim(namespace, "byhand", deletionPolicy="Delete"))
    child = await home.child()

    await home.delete_child(child)

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def test_a_child_whose_finalizer_is_removed_by_force_comes_back_with_its_database(
    staff: Staff, namespace: str
) -> None:
    home = await move_in(staff.system, claim(namespace, "byforce", deletionPolicy="Delete"))
    child = await home.child()
    await staff.stop_provider()

    await home.delete_child(child)
    with_finalizer = [{"op": "remove", "path": "/metadata/finalizers"}]
    await unless_gone(staff.system, DATABASE.path(namespace, child["metadata"]["name"]), with_finalizer)
    await staff.start_provider()

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def test_a_child_deleted_while_the_composer_is_away_waits_for_its_instruction(
    staff: Staff, namespace: str
) -> None:
    home = await move_in(staff.system, claim(namespace, "waits", deletionPolicy="Delete"))
    child = await home.child()
    await staff.stop_composer()

    await home.delete_child(child)

    await home.until_child_says(child, "AwaitingTeardown")
    await home.untouched()
    await staff.start_composer()
    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def test_a_child_taken_by_the_collector_comes_back_with_its_database(staff: Staff, namespace: str) -> None:
    home = await move_in(staff.system, claim(namespace, "collected", deletionPolicy="Delete"))
    child = await home.child()
    # A living composer would put its own ownerRef back before the collector looks.
    await staff.stop_composer()

    path = DATABASE.path(namespace, child["metadata"]["name"])
    await give_to_a_stranger(staff.system, path)
    await staff.system.until(DATABASE, namespace, child["metadata"]["name"], is_deleting)
    await staff.start_composer()

    await home.until_recreated(child)
    await home.until_home()
    await home.untouched()


async def test_the_child_of_a_claim_removed_by_force_is_released_although_another_claim_has_the_name(
    staff: Staff, namespace: str
) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "forced", deletionPolicy="Delete"))
    child = await home.child()
    async with staff.away():
        await system.api.merge(home.path, {"metadata": {"finalizers": []}})
        await _delete_for_good(system, home.path)
        await system.create(CLAIM, claim(namespace, "forced", deletionPolicy="Delete"))

    await until_gone(system, DATABASE.path(namespace, child["metadata"]["name"]))
    await home.until_stalled("PredecessorFound")
    await home.untouched()


@pytest.mark.parametrize(
    ("suffix", "connection"), [("connection", None), ("credentials", None), ("credentials", "orders-db")]
)
async def test_a_secret_taken_by_the_collector_comes_back_with_the_password(
    staff: Staff, namespace: str, suffix: str, connection: str | None
) -> None:
    home = await move_in(staff.system, claim(namespace, "secrets", connectionSecretName=connection))
    before = await staff.system.binding(namespace, home.name)
    path = await home.secret_path(suffix)
    uid = (await staff.system.api.get(path))["metadata"]["uid"]

    await give_to_a_stranger(staff.system, path)
    await _until_another(staff.system, path, uid)
    await poke(staff.system, home.path)
    await poke(staff.system, DATABASE.path(namespace, (await home.child())["metadata"]["name"]))
    await staff.system.until(SECRET, namespace, path.rpartition("/")[2], lambda _secret: True)

    await home.until_home()
    assert (await staff.system.binding(namespace, home.name))["password"] == before["password"]
    await home.untouched()


async def test_both_secrets_lost_leave_the_database_alone_and_say_so(staff: Staff, namespace: str) -> None:
    home = await move_in(staff.system, claim(namespace, "bothlost"))
    paths = [await home.secret_path(suffix) for suffix in ("connection", "credentials")]
    async with staff.away():
        for path in paths:
            await staff.system.api.delete(path)

    await poke(staff.system, DATABASE.path(namespace, (await home.child())["metadata"]["name"]))
    await home.until_stalled("PasswordUnknown")
    assert await home.rows_behind() == [home.row]
    assert (home.creates(), home.drops()) == (1, 0)

    await staff.system.api.merge(home.path, {"spec": {"passwordRotation": {"token": "after-the-loss"}}})
    await home.until_home()


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


# What is remembered is wiped


_WIPES = ("status", "annotations", "status-and-annotations")


@pytest.mark.parametrize("kind", [CLAIM, DATABASE], ids=["claim", "child"])
async def test_a_wiped_memory_is_put_back_without_a_new_database(staff: Staff, namespace: str, kind: Kind) -> None:
    system = staff.system
    bodies = [claim(namespace, wiped, deletionPolicy="Delete") for wiped in _WIPES]
    homes = await asyncio.gather(*(move_in(system, body) for body in bodies))
    children = [await home.child() for home in homes]
    targets = [
        await system.api.get(home.path if kind is CLAIM else DATABASE.path(namespace, child["metadata"]["name"]))
        for home, child in zip(homes, children, strict=True)
    ]

    # While nobody writes, so that nothing is put back between the two removals.
    async with staff.away():
        for target, wiped in zip(targets, _WIPES, strict=True):
            await _wipe(system, kind, target, wiped)

    for home, child, before in zip(homes, children, targets, strict=True):
        after = await system.until(kind, namespace, before["metadata"]["name"], is_ready)
        await home.until_home()
        await home.untouched()
        assert (await home.child())["metadata"]["uid"] == child["metadata"]["uid"]
        for key, value in before["metadata"]["annotations"].items():
            assert after["metadata"]["annotations"].get(key) == value, (home.name, key)
        await home.delete()
        assert home.drops() == 1


async def test_a_restored_cluster_takes_its_children_again(staff: Staff, namespace: str) -> None:
    """A backup brings back names, labels and annotations: new uids, no owners, no finalizers, no status."""
    system = staff.system
    home = await move_in(system, claim(namespace, "restored", deletionPolicy="Delete"))
    name = (await home.child())["metadata"]["name"]
    before = await system.binding(namespace, home.name)
    paths = [await home.secret_path("credentials"), await home.secret_path("connection")]
    paths += [DATABASE.path(namespace, name), home.path]
    async with staff.away():
        saved = [await system.api.get(path) for path in paths]
        for path in paths:
            await unless_gone(system, path, [{"op": "add", "path": "/metadata/finalizers", "value": []}])
            await _delete_for_good(system, path)
        restored = [await _restore(system, path, obj) for path, obj in zip(paths, saved, strict=True)]

    await system.until(CLAIM, namespace, home.name, is_ready)
    await home.until_home()
    await home.untouched()
    child = await home.child()
    assert child["metadata"]["uid"] == restored[2]["metadata"]["uid"]
    assert [owner["uid"] for owner in child["metadata"]["ownerReferences"]] == [restored[3]["metadata"]["uid"]]
    assert await system.binding(namespace, home.name) == before
    assert len(await system.api.items(DATABASE.path(namespace))) == 1
    await home.delete()
    assert home.drops() == 1


async def _delete_for_good(system: System, path: str) -> None:
    """Delete what no finalizer holds; the collector may have been quicker."""
    try:
        await system.api.delete(path)
    except ApiError as error:
        if error.status != 404:
            raise
    await until_gone(system, path)


async def _restore(system: System, path: str, obj: JsonObject) -> JsonObject:
    kept = {
        key: obj["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in obj["metadata"]
    }
    bare = {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept}
    return await system.api.create(path.rpartition("/")[0], bare, fieldManager="velero-server")


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
