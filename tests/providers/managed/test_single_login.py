"""Passes over a cloud with one login, whose role has one password at a time, as PostgreSQL has it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from providers.credentials.passwords import keyed_hash
from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential
from providers.external.observation import Observed, Phase
from runtime.objects import SECRETS, Key, Object
from runtime.results import Result
from runtime.secrets import text_of
from tests.providers.managed.test_asynchronous import LateCloud, late
from tests.providers.toy import Seen, Toy, ToyParameters
from tests.providers.world import World

CREDENTIALS = Key("team", "db-credentials")


@dataclass
class OneLogin(LateCloud):
    """A reset counts `counts_after` looks after its answer, and is shown as under way for `resets` of them."""

    reachable: bool = True
    counts_after: int = 0
    resets: int = 20
    left: int = 0
    coming: str = field(default="", repr=False)
    elsewhere: bool = False
    state: str = "fine"
    accepts: bool = True

    def shown(self, target: Target[ToyParameters], observed: Seen) -> Seen:
        if self.coming and self.resets - self.left >= self.counts_after:
            self.toys[target.name].passwords["boss"], self.coming = self.coming, ""
        resetting = self.left > 0
        self.left = max(0, self.left - 1)
        observed = replace(super().shown(target, observed), password_elsewhere=self.elsewhere)
        if resetting:
            observed = replace(observed, phase=Phase.BUSY, state="resetting", password_pending=True)
        return observed

    async def set(
        self,
        target: Target[ToyParameters],
        observed: Observed[ToyParameters, Any],
        credential: Credential,
        fence: Fence,
    ) -> Operation | None:
        del target, observed
        fence.check()
        self.calls.append("set_password")
        if self.accepts:
            self.coming, self.left, self.elsewhere = credential.password, self.resets, False
        return None

    def by_hand(self, password: str, *, shown: bool) -> None:
        """Reset the password as a person does at the cloud's console."""
        self.coming, self.left = password, self.resets if shown else 0
        if not shown:
            (toy,) = self.toys.values()
            toy.passwords["boss"], self.coming = password, ""


async def _ready(cloud: OneLogin) -> World:
    """Return a world with a database of a claim, Ready."""
    world = World(cloud, provider=late(cloud, versions=lambda _observed: {"boss": "1"}, shows_passwords=False))
    world.ask()
    world.compose()
    await world.settle(most=60)
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    return world


def _published(world: World) -> str:
    """Return the current password once the status publishes it, as the composer copies it; else what it copied last."""
    secret = world.kube.objects.get((SECRETS, CREDENTIALS))
    current = text_of(secret, "current") if secret is not None else ""
    hash_ = world.status["connection"]["passwordRef"]["hash"]
    assert keyed_hash(b"key", current) == hash_
    return current


def _connect(world: World, name: str = "shop-connection") -> None:
    body: Object = {"metadata": {"name": name, "namespace": "team"}}
    secret = world.kube.objects[SECRETS, CREDENTIALS]
    world.kube.store(SECRETS, body | {"data": {"password": secret["data"]["current"]}})


def _role(cloud: OneLogin) -> str:
    (toy,) = cloud.toys.values()
    return toy.passwords["boss"]


async def _run(world: World, time: timedelta) -> None:
    until = world.now + time
    while world.now < until:
        result = await world.step()
        after = result.requeue_after if isinstance(result, Result) else None
        world.now += min(after or timedelta(minutes=10), until - world.now)


@pytest.mark.parametrize("is_right", [True, False])
async def test_password_recovered_from_the_connection_secret_is_proven_by_a_login(*, is_right: bool) -> None:
    world = await _ready(cloud := OneLogin())
    _connect(world)
    del world.kube.objects[SECRETS, CREDENTIALS]
    if not is_right:
        cloud.by_hand("another-password", shown=False)
    await _run(world, timedelta(minutes=1))
    if is_right:
        assert (world.reason("Ready"), _published(world)) == ("Available", _role(cloud))
    else:
        assert (world.reason("Ready"), world.reason()) == ("PasswordUnknown", "PasswordUnknown")
    assert cloud.calls == ["create"]


@pytest.mark.parametrize("password", ["guessed-password", ""])
async def test_content_that_a_tenant_put_into_the_named_secret_is_not_used(password: str) -> None:
    world = await _ready(cloud := OneLogin())
    world.annotate(**{"connection-secret": "mine"})
    body: Object = {"metadata": {"name": "mine", "namespace": "team"}}
    world.kube.store(SECRETS, body | {"data": {"password": base64.b64encode(password.encode()).decode()}})
    del world.kube.objects[SECRETS, CREDENTIALS]
    await _run(world, timedelta(minutes=1))
    assert world.reason() == "PasswordUnknown"
    assert cloud.calls == ["create"]


async def test_password_that_another_keeper_took_over_is_taken_back() -> None:
    world = await _ready(cloud := OneLogin())
    cloud.elsewhere = True
    cloud.by_hand("the-keepers-password", shown=False)
    await _run(world, timedelta(minutes=12))
    assert (world.reason("Ready"), world.reason(), _published(world)) == ("Available", "InSync", _role(cloud))
    assert cloud.calls == ["create", "set_password"]
    assert "another keeper" in str(world.status["drift"])


async def test_password_taken_over_is_reset_three_times_and_then_reported() -> None:
    world = await _ready(cloud := OneLogin(accepts=False))
    cloud.elsewhere = True
    await _run(world, timedelta(hours=3))
    assert world.reason() == "PasswordUnknown"
    assert cloud.calls == ["create", *["set_password"] * 3]


@pytest.mark.parametrize(("reachable", "password"), [(True, "present-1"), (True, "another-1"), (False, "present-1")])
async def test_database_that_is_taken_over_keeps_its_password_and_is_published_with_it(
    *, reachable: bool, password: str
) -> None:
    cloud = OneLogin(reachable=reachable)
    cloud.toys["legacy"] = Toy("incarnation-7", None, 10, {"boss": "present-1"})
    world = World(cloud, provider=late(cloud, versions=lambda _observed: {"boss": "1"}, shows_passwords=False))
    world.configure(allowAdoption=True)
    world.kube.store(SECRETS, {
        "metadata": {"name": "own", "namespace": "team"}, "data": {"it": base64.b64encode(password.encode()).decode()},
    })  # fmt: skip
    world.ask(passwordSecretRef={"name": "own", "key": "it"}, passwordRotation={"token": "1"})
    world.annotate(**{"external-name": "legacy"})
    await world.step()
    assert "changes" not in world.status["adoption"]
    world.annotate(adopt=f"incarnation-7/{world.status['adoption']['hash']}")
    await _run(world, timedelta(minutes=30))

    assert (cloud.calls, cloud.toys["legacy"].passwords) == (["adopt"], {"boss": "present-1"})
    if password == "present-1":
        assert (world.reason("Ready"), world.reason(), _published(world)) == ("Available", "InSync", password)
    else:
        assert (world.reason("Ready"), world.reason(), "connection" in world.status) == (
            "PasswordUnknown", "PasswordUnknown", False,
        )  # fmt: skip


@pytest.mark.parametrize("after_looks", [1, 5, 19])
async def test_secret_that_is_lost_during_a_reset_locks_nobody_out(after_looks: int) -> None:
    world = await _ready(cloud := OneLogin(counts_after=15))
    _connect(world)
    world.ask(passwordRotation={"token": "2"})
    while cloud.calls[-1] != "set_password":
        await world.step()
    cloud.left = min(cloud.left, cloud.resets - after_looks) if after_looks < cloud.resets else 0
    del world.kube.objects[SECRETS, CREDENTIALS]
    await _run(world, timedelta(minutes=30))
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    assert _published(world) == _role(cloud)
    assert cloud.calls == ["create", "set_password", "set_password"]
