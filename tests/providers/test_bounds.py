"""Who may use a ProviderConfig, how much and how fast."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from providers.accounts import Accounts
from providers.bounds import Limiter, allowed
from providers.cloud import Account
from providers.destroys import destroys_within_the_hour
from providers.plan import Bounds
from runtime.cache import Cache
from runtime.errors import NotFound, Terminal
from runtime.objects import Key, Object, Resource, dumps
from runtime.store import Listing

RESOURCE = Resource("toy.example.org", "v1", "Toy", "toys")
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


def toy(name: str, namespace: str = "team", *, held: bool = True) -> Object:
    finalizers = ["fairlead.dev/teardown"] if held else []
    meta = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "finalizers": finalizers}
    return {"apiVersion": "toy.example.org/v1", "kind": "Toy", "metadata": meta, "spec": {}}


class Configs:
    """The ProviderConfigs as an account's informer has them."""

    def __init__(self) -> None:
        self.config: Object = {}
        self.store = self
        self.bookkeeping = asyncio.Lock()
        self.configs = self

    def get(self, _key: Key) -> Object:
        return self.config

    def remember(self, obj: Object) -> None:
        self.config = obj


class World:
    """A store of resources, a ProviderConfig and a clock that stands still."""

    def __init__(self, present: int, **limits: int) -> None:
        self.now = START
        kube: Any = None
        informer = Cache(kube).informer(RESOURCE)
        self.configs = Configs()
        accounts: Accounts[Any, Any] | Any = self.configs
        self.informer, self.accounts = informer, accounts
        self.limiter = Limiter(informer, accounts, lambda: self.now)
        listing = Listing(informer.store)
        for number in range(present):
            listing.add(dumps(toy(f"there-{number}")))
        tuple(informer.store.replace_all(listing, "1"))
        self.configs.config = {
            "metadata": {"name": "default", "annotations": {}},
            "spec": {"limits": limits, "allowedNamespaces": {"names": ["team"]}},
        }

    def restart(self) -> None:
        """Go on with another process, which remembers nothing."""
        self.limiter = Limiter(self.informer, self.accounts, lambda: self.now)

    async def destroy(self, namespace: Object | None = None, *, written: bool = True) -> None:
        """Count one destroy; `written` False is for a kind whose destroys are not written down."""

        async def write(config: Object, status: Object) -> Object | None:
            return {**config, "status": status} if written else None

        await self.limiter.count_destroy(self.account, namespace or {}, write)

    @property
    def config(self) -> Object:
        return self.configs.config

    @property
    def account(self) -> Account[Any, Any]:
        cloud: Any = None
        return Account(cloud, None, self.config, "account")

    def bounds(self, obj: Object, namespace: Object | None = None) -> Bounds:
        return self.limiter.bounds(Bounds(), obj, self.account, namespace or {})


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ({}, False),
        ({"names": []}, False),
        ({"names": ["team"]}, True),
        ({"names": ["other"]}, False),
        ({"selector": {}}, True),
        ({"selector": {"matchLabels": {"tier": "a"}}}, True),
        ({"selector": {"matchLabels": {"tier": "b"}}}, False),
        ({"selector": {"matchLabels": {"tier": "a", "more": "x"}}}, False),
        ({"names": ["team"], "selector": {"matchLabels": {"tier": "b"}}}, True),
    ],
)
def test_who_may_use_it(rule: Object, answer: bool) -> None:  # noqa: FBT001 - a column of the table
    assert allowed({"allowedNamespaces": rule}, "team", {"tier": "a"}) is answer


def test_limits_count_what_is_there() -> None:
    assert World(2, instances=3).bounds(toy("new", held=False)).limit_reached == ""
    assert "at most 2" in World(2, instances=2).bounds(toy("new", held=False)).limit_reached
    assert "namespace team" in World(2, perNamespace=2).bounds(toy("new", held=False)).limit_reached
    assert World(2, perNamespace=2).bounds(toy("new", "other", held=False)).limit_reached == ""


def test_workers_side_by_side_take_no_more_than_the_limit() -> None:
    world = World(1, instances=2)

    with (
        world.limiter.reserved(toy("one", held=False), world.account),
        pytest.raises(Terminal, match="at most 2"),
        world.limiter.reserved(toy("two", held=False), world.account),
    ):
        pass


def test_what_holds_its_place_already_is_not_counted_twice() -> None:
    world = World(2, instances=2)

    with world.limiter.reserved(toy("there-1"), world.account):
        pass


def test_creates_within_an_hour_are_bounded() -> None:
    world = World(0, createsPerHour=1)
    with world.limiter.reserved(toy("one", held=False), world.account):
        pass

    assert world.bounds(toy("two", held=False)).limit_reached
    world.now += timedelta(minutes=61)
    assert not world.bounds(toy("two", held=False)).limit_reached


def test_creates_of_the_process_before_count_by_the_birth_of_what_is_there() -> None:
    world = World(2, createsPerHour=2)
    for key in ("there-0", "there-1"):
        obj = toy(key)
        obj["metadata"] |= {"creationTimestamp": "2026-11-21T11:30:00Z", "resourceVersion": "2"}
        world.informer.store.remember(obj)

    assert world.bounds(toy("two", held=False)).limit_reached
    world.now += timedelta(minutes=31)
    assert not world.bounds(toy("two", held=False)).limit_reached


BRAKES = [(10, {}, 3), (400, {}, 8), (10, {"destroysPerHour": 1}, 1)]


@pytest.mark.parametrize("written", [True, False], ids=["in the status", "in memory"])
@pytest.mark.parametrize(("present", "limits", "most"), BRAKES)
async def test_one_destroy_too_many_within_an_hour_is_braked(
    present: int, limits: dict[str, int], most: int, *, written: bool
) -> None:
    world = World(present, **limits)
    for _ in range(most):
        await world.destroy(written=written)

    assert "brake-released" in world.bounds(toy("there-0")).brake
    with pytest.raises(Terminal, match="within an hour"):
        await world.destroy(written=written)

    world.now += timedelta(minutes=61)
    assert world.bounds(toy("there-0")).brake == ""


@pytest.mark.parametrize(("present", "limits", "most"), BRAKES)
async def test_a_restart_after_each_destroy_does_not_release_the_brake(
    present: int, limits: dict[str, int], most: int
) -> None:
    world = World(present, **limits)
    for _ in range(most):
        await world.destroy()
        world.now += timedelta(minutes=2)
        world.restart()

    assert "brake-released" in world.bounds(toy("there-0")).brake
    with pytest.raises(Terminal, match="within an hour"):
        await world.destroy()

    world.now += timedelta(minutes=61)
    assert world.bounds(toy("there-0")).brake == ""
    await world.destroy()
    assert [each["count"] for each in world.config["status"]["recentDestroys"]] == [1]


async def test_what_cannot_be_written_down_is_not_counted_and_not_begun() -> None:
    world = World(10)

    async def unwritten(_config: Object, _status: Object) -> Object | None:
        raise NotFound("the ProviderConfig is gone", status=404)

    for _ in range(5):
        with pytest.raises(NotFound):
            await world.limiter.count_destroy(world.account, {}, unwritten)

    assert world.bounds(toy("there-0")).brake == ""


async def test_destroys_side_by_side_are_all_written_down() -> None:
    world = World(10, destroysPerHour=20)

    async def slow(config: Object, status: Object) -> Object | None:
        await asyncio.sleep(0)
        return {**config, "status": status}

    await asyncio.gather(*(world.limiter.count_destroy(world.account, {}, slow) for _ in range(20)))

    assert destroys_within_the_hour(world.config["status"], "Toy", world.now) == 20
    assert destroys_within_the_hour(world.config["status"], "Other", world.now) == 0


async def test_a_deletion_that_was_begun_is_finished_behind_the_brake() -> None:
    world = World(10, destroysPerHour=1)
    await world.destroy()

    begun = world.limiter.bounds(Bounds(delete_intended=True), toy("there-0"), world.account, {})

    assert begun.brake == ""
    assert world.bounds(toy("there-1")).brake


def test_a_released_brake_is_off_until_its_end() -> None:
    world = World(10, destroysPerHour=0)
    assert world.bounds(toy("there-0")).brake

    world.config["metadata"]["annotations"]["fairlead.dev/brake-released"] = "2026-11-21T12:30:00Z"
    assert world.bounds(toy("there-0")).brake == ""
    world.now += timedelta(minutes=31)
    assert world.bounds(toy("there-0")).brake


async def test_ephemeral_namespaces_have_no_brake() -> None:
    world = World(10, destroysPerHour=0)
    ephemeral = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}

    assert world.bounds(toy("there-0"), ephemeral).brake == ""
    await world.destroy(ephemeral)
    assert "status" not in world.config
