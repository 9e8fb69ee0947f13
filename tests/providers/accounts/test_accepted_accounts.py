"""Whom a ProviderConfig serves: another server by consent; other namespaces are neither dialled nor described to."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from providers.external.metering import Meter
from providers.external.provider import Provider, RecordedAccount
from runtime.errors import Terminal
from runtime.objects import Key, Object
from tests.providers.toy import CONFIGS, TOYS, ToyCloud, dialled, provider_of
from tests.providers.world import World, settled


def guarded_world() -> World:
    """Make a world whose account refuses a login that leads elsewhere, as clouds do before they write anything."""
    cloud = ToyCloud()

    async def dial(recorded: RecordedAccount, _meter: Meter) -> ToyCloud:
        if recorded.id not in {"", cloud.account}:
            text = f"this is {cloud.account}, not {recorded.id}: {recorded.accept(cloud.account)}"
            raise Terminal("AccountChanged", text)
        return cloud

    return World(cloud, provider=dialled(provider_of(cloud), dial))


async def upgraded() -> World:
    """Return a world with a ready database on a server that has another identity since."""
    world = guarded_world()
    world.ask(size=1)
    await world.settle()
    config(world, account="account-1")
    world.cloud.account = "account-2"
    world.accounts.forget("default")
    world.ask(size=2)
    await world.step()
    assert world.reason("Synced") == "AccountChanged"
    return world


def config(world: World, *, consent: str = "", account: str = "") -> None:
    obj: Object = deepcopy(world.kube.objects[CONFIGS, Key("", "default")])
    if consent:
        obj["metadata"].setdefault("annotations", {})["fairlead.dev/consent"] = consent
    if account:
        obj["status"] = {"account": account}
    world.kube.store(CONFIGS, obj)


def size(world: World) -> int | None:
    return next(iter(world.cloud.toys.values())).size


async def test_consent_to_another_account_accepts_the_databases_that_are_the_same() -> None:
    world = await upgraded()

    config(world, consent="account=account-2")
    await world.settle()

    assert world.reason("Synced") == "InSync"
    assert size(world) == 2
    assert (world.get() or {})["metadata"]["annotations"]["fairlead.dev/account"] == "account-2"
    assert world.cloud.calls.count("create") == 1

    config(world, account="account-2")
    world.ask(size=3)
    await world.settle()
    assert size(world) == 3


CONSENT = "providerconfig.toy.example.org/default fairlead.dev/consent=account="


async def test_message_has_the_command_that_accepts_the_account() -> None:
    world = await upgraded()
    assert f"`kubectl annotate {CONSENT}account-2`" in world.condition()["message"]

    config(world, consent="account=account-3")
    await world.step()
    assert f"`kubectl annotate --overwrite {CONSENT}account-3,account=account-2`" in world.condition()["message"]
    # The consent is to an account that is not reached: it accepts nothing.
    assert (world.reason("Synced"), size(world)) == ("AccountChanged", 1)


async def test_consent_before_the_upgrade_changes_nothing_yet() -> None:
    world = guarded_world()
    world.ask(size=1)
    await world.settle()
    config(world, consent="account=account-2", account="account-1")
    world.ask(size=2)
    await world.settle()

    assert size(world) == 2
    assert (world.get() or {})["metadata"]["annotations"]["fairlead.dev/account"] == "account-1"


async def test_database_that_is_not_the_same_stays_as_it_is() -> None:
    for change in ("absent", "incarnation", "owner"):
        world = await upgraded()
        name, toy = next(iter(world.cloud.toys.items()))
        if change == "absent":
            del world.cloud.toys[name]
        else:
            setattr(toy, change, None if change == "owner" else "another")
        config(world, consent="account=account-2")

        await world.passes(5)

        assert world.reason("Synced") == "AccountChanged", change
        assert world.cloud.calls.count("create") == 1
        assert [call for call in world.cloud.calls if call.startswith("update")] == []


async def test_account_that_is_not_the_recorded_one_is_named_until_it_is_accepted() -> None:
    world = World(ToyCloud(account="account-2"))
    config(world, account="account-1")
    world.feed()
    assert "account account-2, not account-1" in (await world.accounts.connect("default")).changed

    config(world, consent="account=account-2")
    world.feed()
    assert (await world.accounts.connect("default")).changed == ""


async def test_config_that_was_made_again_has_a_connection_of_its_own() -> None:
    world = World(ToyCloud())
    world.feed()
    await world.accounts.connect("default")
    world.cloud.account = "account-2"
    again: Object = deepcopy(world.kube.objects[CONFIGS, Key("", "default")])
    again["metadata"]["uid"] = "another-config"
    world.kube.store(CONFIGS, again)
    world.feed()

    assert (await world.accounts.connect("default")).id == "account-2"


def _counting(cloud: ToyCloud, dials: list[str]) -> Provider[Any]:
    async def dial(_recorded: RecordedAccount, _meter: Meter) -> ToyCloud:
        dials.append("dialled")
        if cloud.calls == []:
            raise Terminal("CredentialsInvalid", "cannot log in to 10.0.0.7:5432 as hidden_admin")
        return cloud

    return dialled(provider_of(cloud), dial)


def _allow(world: World, *names: str) -> None:
    world.kube.store(CONFIGS, {
        "metadata": {
            "name": "default", "generation": 2,
            "annotations": {"fairlead.dev/paused": "true", "fairlead.dev/paused-reason": "a secret reason"},
        },
        "spec": {"allowedNamespaces": {"names": list(names)}},
    })  # fmt: skip


async def test_provider_config_that_is_not_allowed_is_neither_connected_nor_described() -> None:
    cloud, dials = ToyCloud(), list[str]()
    world = World(cloud, provider=_counting(cloud, dials))
    _allow(world, "others")
    world.ask()

    await world.passes(4, timedelta(minutes=1))

    assert dials == []
    assert world.reason("Ready") == "NotAllowed"
    status = str(world.status)
    assert "there is no ProviderConfig default that this namespace may use" in status
    assert "hidden_admin" not in status
    assert "secret reason" not in status


async def test_namespace_that_lost_its_permission_keeps_its_database_without_connections() -> None:
    world = await settled(cloud := ToyCloud(), size=1)
    (toy,) = cloud.toys.values()
    before = len(cloud.calls)

    _allow(world, "others")
    world.ask(size=2)
    await world.passes(4, timedelta(minutes=1))

    assert (world.reason(), world.reason("Ready")) == ("NotAllowed", "Available")
    assert (toy.size, len(cloud.calls)) == (1, before)


@pytest.mark.parametrize(("policy", "is_gone"), [("Orphan", True), ("Delete", False)])
async def test_namespace_that_lost_its_permission_may_orphan_its_database_and_destroys_nothing(
    policy: str, *, is_gone: bool
) -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy=policy)
    _allow(world, "others")

    world.delete()
    await world.passes(4, timedelta(minutes=1))

    assert (world.kube.objects.get((TOYS, Key("team", "db"))) is None) is is_gone
    assert is_gone or world.reason() == "NotAllowed"
    assert len(cloud.toys) == 1
