"""Of whose a thing is: what is another's, of another incarnation or in another account is only read."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta

import msgspec

from providers.external.diff import missing
from providers.managed.record import envelope_of
from runtime.objects import SECRETS, Object
from tests.providers.adapter import Adapter, Property, clause
from tests.providers.gates import KilledError
from tests.providers.world import SERVER_OWNER

_LONG = timedelta(minutes=15)
_SERVER_OWNERS = {
    "nobody's": None,
    "another namespace's": replace(SERVER_OWNER, namespace="victim", namespace_uid="uid-of-victim"),
    "a former namespace's of that name": replace(SERVER_OWNER, namespace_uid="uid-of-former"),
    "of a namespace without a uid": replace(SERVER_OWNER, namespace_uid=""),
    "another installation's": replace(SERVER_OWNER, installation="another-installation"),
}
_OWNERS = (None, ("home", "uid-of-another"), ("another-installation", "uid-of-another"))


@clause()
async def object_of_another_owner_is_only_read(cloud: Adapter) -> None:
    for number, owner in enumerate(_OWNERS):
        name = f"db{number}"
        cloud.ask(name)
        cloud.put(cloud.external_name(name), owner)
        before = cloud.objects()
        cloud.forget()
        await cloud.pass_for(_LONG, name)
        assert cloud.world.reason("Synced", name) == "NotOwned"
        cloud.ask(name, parameters=cloud.edit)
        await cloud.pass_for(_LONG, name)
        cloud.world.delete(name)
        await cloud.until_gone(name)
        assert (owner, cloud.writes(), cloud.objects()) == (owner, [], before)


@clause()
async def object_is_only_read_under_observe(cloud: Adapter) -> None:
    cloud.allow_adoption()
    cloud.ask(managementPolicy="Observe", parameters=cloud.edit)
    name = cloud.external_name()
    cloud.put(name, None)
    before = cloud.objects()
    cloud.forget()
    for is_typed in (True, False):
        if not is_typed:
            cloud.watch(name)
        await cloud.pass_for(_LONG)
        synced = cloud.world.condition()
        assert (synced["status"], synced["reason"]) == ("True", "ObserveOnly")
        status = cloud.status()
        actions = {entry["action"] for entry in status.get("drift", ())}
        assert (actions - {"Tolerated"} != set()) <= (is_typed and bool(cloud.edit))
        assert (cloud.world.reason("Ready"), cloud.secret(), "connection" in status) == ("Available", None, False)
        assert {"observed", "adoption"} <= status.keys()
        model = type(envelope_of(cloud.world.get() or {}, cloud.world.kind.spec_type).for_provider)
        assert {*missing(msgspec.convert(status["observed"]["forProvider"], model))} <= cloud.never_observed
    cloud.world.delete()
    await cloud.until_gone()
    assert (cloud.writes(), cloud.objects()) == ([], before)


@clause(Property.SERVERS)
async def nothing_inside_a_server_of_somebody_else_is_read_or_changed(cloud: Adapter) -> None:
    for number, (whose, owner) in enumerate(_SERVER_OWNERS.items()):
        name, server = f"db{number}", cloud.give_server(owner)
        cloud.forget()
        before = cloud.objects()
        cloud.ask(name)
        await cloud.pass_for(_LONG, name)
        assert cloud.world.reason("Synced", name) == "AdoptionRefused", whose
        # A consent counts only where the ProviderConfig allows adoption.
        cloud.world.annotate(name, consent=f"server={server}")
        assert await cloud.pass_for(_LONG, name) == {"AdoptionRefused"}, whose
        cloud.world.delete(name)
        await cloud.until_gone(name)
        assert (whose, cloud.calls_inside(), cloud.objects()) == (whose, [], before)


@clause(Property.SERVERS)
async def server_of_somebody_else_is_used_by_consent_to_it_alone(cloud: Adapter) -> None:
    cloud.allow_adoption()
    server = cloud.give_server(None)
    cloud.ask()
    cloud.world.annotate(consent="server=another")
    await cloud.pass_for(_LONG)
    assert (cloud.world.reason(), cloud.calls_inside()) == ("AdoptionRefused", [])
    cloud.world.annotate(consent=f"server={server}")
    cloud.give_server(_SERVER_OWNERS["another installation's"])
    await cloud.pass_for(_LONG)
    assert (cloud.world.reason(), cloud.calls_inside()) == ("AdoptionRefused", [])
    cloud.give_server(None)
    await cloud.until_ready()
    assert len(cloud.objects()) == 1
    # The consent is not used up: it is needed for as long as the object is there.
    assert await cloud.pass_for(_LONG) == {"InSync"}
    cloud.world.delete()
    await cloud.until_gone()
    assert cloud.objects() == {}


@clause(Property.SERVERS)
async def object_in_a_server_that_became_somebody_elses_is_not_left_behind_in_silence(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.give_server(None)
    cloud.forget()
    cloud.ask(parameters=cloud.edit)
    await cloud.pass_for(_LONG)
    assert (cloud.world.reason(), cloud.calls_inside()) == ("AdoptionRefused", [])
    cloud.world.delete()
    await cloud.pass_for(_LONG)
    assert (cloud.world.reason(), cloud.calls_inside()) == ("AdoptionRefused", [])
    cloud.give_server(SERVER_OWNER)
    await cloud.until_gone()
    assert name not in cloud.objects()


@clause()
async def adopted_object_is_ours_and_its_operation_is_followed(cloud: Adapter) -> None:
    cloud.allow_adoption()
    data = {"it": base64.b64encode(b"Sufficient-1").decode()}
    cloud.kube.store(SECRETS, {"metadata": {"name": "own", "namespace": "team"}, "data": data})
    own: Object = {"passwordSecretRef": {"name": "own", "key": "it"}} if cloud.has_logins else {}
    cloud.ask(parameters=cloud.edit, **own)
    cloud.put(cloud.external_name(), None)
    await cloud.until(lambda: cloud.world.reason() == "NotOwned")
    cloud.forget()
    incarnation = cloud.objects()[cloud.external_name()].incarnation
    preview = cloud.status()["adoption"]
    # Something else than what is there was agreed to.
    cloud.world.annotate(adopt=f"{incarnation}/{'0' * 16}")
    assert (await cloud.pass_for(_LONG), cloud.writes()) == ({"NotOwned"}, [])
    cloud.world.annotate(adopt=f"{incarnation}/{preview['hash']}")
    end, ready_without_login = cloud.world.now + timedelta(minutes=5), False
    while cloud.world.now < end:
        await cloud.step()
        is_ready = cloud.world.condition("Ready")["status"] == "True"
        ready_without_login |= cloud.has_logins and is_ready and "connection" not in cloud.status()

    assert not ready_without_login
    assert cloud.world.reason() not in {"NotOwned", "AdoptionRefused"}
    shown = {change["path"] for change in preview.get("changes", ()) if change["when"] == "Now"}
    ownership = {change["path"] for change in preview.get("ownership", ())}
    # A login is made with its password, by a call of its own.
    login = (cloud.status().get("connection") or {}).get("username", "-")
    of_login = {path for path in shown if path.startswith("logins.") or login in path.split(".")}
    changed = _changed(cloud) - ownership
    assert changed <= shown, (sorted(changed - shown), sorted(shown))
    # Whose it is goes with the adoption itself, and what its former owner keeps.
    assert {path.partition(".")[0] for path in shown - changed - of_login} <= {"database", "grants"}
    # The present password of a login that is there is published, and not set.
    is_set = any(write.startswith("password ") for write in cloud.writes())
    assert is_set is bool(of_login)
    assert cloud.has_logins is ((cloud.secret() or {}).get("data", {}).get("current") == data["it"]), cloud.status()[
        "conditions"
    ]
    assert [thing.incarnation for thing in cloud.own()] == [incarnation]
    # Without tags and fields that can be changed, an adoption changes nothing.
    if Property.OPERATIONS in cloud.properties and Property.EDITS not in cloud.lacks:
        assert list(cloud.operations().values()) == [True] * len(cloud.operations())
        assert len(cloud.operations()) >= 1


@clause(Property.TAGS)
async def adoption_is_finished_as_it_was_agreed_to_wherever_the_process_is_killed(cloud: Adapter) -> None:
    cloud.allow_adoption()
    for writes in range(1, 20):
        name, killed = f"db{writes}", False
        cloud.ask(name, parameters=cloud.edit)
        cloud.put(cloud.external_name(name), None)
        while cloud.world.reason("Synced", name) != "NotOwned":
            await cloud.step(name)
        preview = cloud.status(name)["adoption"]
        cloud.forget()
        cloud.world.annotate(name, adopt=f"{preview['incarnation']}/{preview['hash']}")
        cloud.gate.kill_after(writes)
        try:
            await cloud.pass_for(_LONG, name)
        except KilledError:
            killed = True
            cloud.restart()
            await cloud.pass_for(_LONG, name)
        assert [thing.incarnation for thing in cloud.own(name)] == [preview["incarnation"]], writes
        assert {write.partition(" ")[0] for write in cloud.writes()} <= {"update", "password"}, writes
        assert cloud.world.reason("Synced", name) != "NotOwned"
        assert not {"adoption", "intent"} & cloud.status(name).keys(), writes
        if not killed:
            assert writes > 3, "an adoption makes several writes"
            return
    raise AssertionError("an adoption makes 20 writes and more")


def _changed(cloud: Adapter) -> set[str]:
    """Return the paths of all changes that the provider made, by its events."""
    notes = {event["reason"]: str(event["note"]) for event in cloud.world.events._waiting}
    assert "DriftCorrected" not in notes
    return set(notes.get("UpdateRequested", "").removeprefix("changed ").split(", ")) - {""}


@clause(Property.DATA, Property.INCARNATIONS)
async def object_of_another_incarnation_is_only_read(cloud: Adapter) -> None:
    name = await cloud.create()
    owner = cloud.objects()[name].owner
    cloud.vanish(name)
    cloud.put(name, owner)
    cloud.forget()
    replacement = cloud.objects()

    await cloud.pass_for(_LONG)
    assert cloud.world.reason() == "Replaced"
    cloud.ask(parameters=cloud.edit, passwordRotation={"token": "1"})
    assert await cloud.pass_for(_LONG) == {"Replaced"}
    cloud.world.delete()
    await cloud.until_gone()
    assert (cloud.writes(), cloud.objects()) == ([], replacement)


@clause(Property.TAGS)
async def owner_that_somebody_removed_comes_back(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.strip_owner(name)
    assert cloud.own() == []
    await cloud.until(lambda: bool(cloud.own()))
    await cloud.until_ready()
    assert list(cloud.objects()) == [name]


@clause(Property.ACCOUNTS)
async def change_of_the_account_stops_all_writes(cloud: Adapter) -> None:
    await cloud.create()
    cloud.change_account()
    await cloud.pass_for(timedelta(minutes=5))
    assert cloud.world.reason() == "AccountChanged"
    cloud.ask(parameters=cloud.edit, passwordRotation={"token": "1"})
    assert await cloud.pass_for(_LONG) == {"AccountChanged"}
    cloud.world.delete()
    assert await cloud.pass_for(_LONG) == {"AccountChanged"}
    assert (cloud.writes(), cloud.world.get() is None) == ([], False)
