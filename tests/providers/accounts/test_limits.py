"""Who may use a ProviderConfig, how much and how fast."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from providers.accounts.connections import Accounts
from providers.accounts.destroys import destroys_within_the_hour, with_one_more
from providers.accounts.limits import Allowance, Limiter
from providers.external.client import ExternalList
from providers.external.config import allowed
from providers.external.ownership import Owner
from providers.external.provider import ConnectedAccount
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

    resource = Resource("toy.example.org", "v1", "ProviderConfig", "providerconfigs", namespaced=False)

    def __init__(self) -> None:
        self.config: Object = {}
        self.store = self
        self.status_lock = asyncio.Lock()
        self.configs = self
        self.clients: Any = None

    async def connect(self, _config: str) -> Configs:
        """Return an account, which has its clients."""
        return self

    def get(self, _key: Key) -> Object:
        return self.config

    def remember(self, obj: Object) -> None:
        self.config = obj


class World:
    """A store of resources, a ProviderConfig and a clock that stands still."""

    def __init__(self, present: int, *, neighbours: tuple[str, ...] = (), **limits: int) -> None:
        self.now = START
        kube: Any = None
        informer = Cache(kube).informer(RESOURCE)
        self.configs = Configs()
        accounts: Accounts[Any, Any] | Any = self.configs
        self.informer, self.accounts = informer, accounts
        self.limiter = Limiter(informer, accounts, lambda: self.now, installation="home")
        listing = Listing(informer.store)
        for number in range(present):
            listing.add(dumps(toy(f"there-{number}")))
        for name in neighbours:
            listing.add(dumps(toy(f"{name}-0", name)))
        tuple(informer.store.replace_all(listing, "1"))
        self.configs.config = {
            "metadata": {"name": "default", "annotations": {}},
            "spec": {"limits": limits, "allowedNamespaces": {"names": ["team"]}},
        }

    def restart(self) -> None:
        """Go on with another process, which remembers nothing."""
        self.limiter = Limiter(self.informer, self.accounts, lambda: self.now)

    async def destroy(
        self, namespace: Object | None = None, *, written: bool = True, obj: Object | None = None
    ) -> None:
        """Count one destroy; `written` False is for a kind whose destroys are not written."""

        async def write(_resource: Resource, config: Object, status: Object) -> Object | None:
            return {**config, "status": status} if written else None

        await self.limiter.count_destroy(self.account, obj or toy("there-0"), namespace or {}, write)

    @property
    def config(self) -> Object:
        return self.configs.config

    @property
    def account(self) -> ConnectedAccount[Any, Any]:
        cloud: Any = None
        return ConnectedAccount(cloud, None, self.config, "account")

    def allowance(self, obj: Object, namespace: Object | None = None) -> Allowance:
        return self.limiter.allowance(obj, self.account, namespace or {})


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
def test_allowed_namespaces_decide_who_may_use_it(rule: Object, answer: bool) -> None:  # noqa: FBT001 - a column of the table
    assert allowed({"allowedNamespaces": rule}, "team", {"tier": "a"}) is answer


def test_limits_count_what_is_there() -> None:
    assert World(2, instances=3).allowance(toy("new", held=False)).limit_reached == ""
    assert "at most 2" in World(2, instances=2).allowance(toy("new", held=False)).limit_reached
    assert "namespace team" in World(2, perNamespace=2).allowance(toy("new", held=False)).limit_reached
    assert World(2, perNamespace=2).allowance(toy("new", "other", held=False)).limit_reached == ""


def test_limits_hold_for_workers_side_by_side() -> None:
    world = World(1, instances=2)

    with (
        world.limiter.reserved(toy("one", held=False), world.account, {}),
        pytest.raises(Terminal, match="at most 2"),
        world.limiter.reserved(toy("two", held=False), world.account, {}),
    ):
        pass


def test_reservation_that_has_its_finalizer_is_not_counted_twice() -> None:
    world = World(2, instances=2)

    with world.limiter.reserved(toy("there-1"), world.account, {}):
        pass


def test_creates_within_an_hour_are_limited() -> None:
    world = World(0, createsPerHour=1)
    with world.limiter.reserved(toy("one", held=False), world.account, {}):
        pass

    assert world.allowance(toy("two", held=False)).limit_reached
    world.now += timedelta(minutes=61)
    assert not world.allowance(toy("two", held=False)).limit_reached


def test_creates_of_the_process_before_count_by_the_age_of_what_is_there() -> None:
    world = World(2, createsPerHour=2)
    for key in ("there-0", "there-1"):
        obj = toy(key)
        obj["metadata"] |= {"creationTimestamp": "2026-11-21T11:30:00Z", "resourceVersion": "2"}
        world.informer.store.remember(obj)

    assert world.allowance(toy("two", held=False)).limit_reached
    world.now += timedelta(minutes=31)
    assert not world.allowance(toy("two", held=False)).limit_reached


DESTROY_LIMITS = [(10, {}, 3), (400, {}, 8), (10, {"destroysPerHour": 1}, 1)]


@pytest.mark.parametrize(
    ("written", "restarts"), [(True, False), (False, False), (True, True)], ids=["written", "in memory", "restarted"]
)
@pytest.mark.parametrize(("present", "limits", "most"), DESTROY_LIMITS)
async def test_destroy_limit_refuses_one_too_many_within_an_hour(
    present: int, limits: dict[str, Any], most: int, *, written: bool, restarts: bool
) -> None:
    world = World(present, **limits)
    for _ in range(most):
        await world.destroy(written=written)
        world.now += timedelta(minutes=2)
        if restarts:
            world.restart()

    assert "brake-released" in world.allowance(toy("there-0")).destroy_limit_reached
    with pytest.raises(Terminal, match="within an hour"):
        await world.destroy(written=written)

    world.now += timedelta(minutes=61)
    assert world.allowance(toy("there-0")).destroy_limit_reached == ""
    await world.destroy(written=written)
    assert [entry["count"] for entry in world.config.get("status", {}).get("recentDestroys", [])] == [1] * written


async def test_destroy_that_cannot_be_written_is_not_counted_and_not_begun() -> None:
    world = World(10)

    async def unwritten(_resource: Resource, _config: Object, _status: Object) -> Object | None:
        raise NotFound("the ProviderConfig is gone", status=404)

    for _ in range(5):
        with pytest.raises(NotFound):
            await world.limiter.count_destroy(world.account, toy("there-0"), {}, unwritten)

    assert world.allowance(toy("there-0")).destroy_limit_reached == ""


async def test_destroys_side_by_side_are_all_written() -> None:
    world = World(10, destroysPerHour=20)

    async def slow(_resource: Resource, config: Object, status: Object) -> Object | None:
        await asyncio.sleep(0)
        return {**config, "status": status}

    await asyncio.gather(*(world.limiter.count_destroy(world.account, toy("there-0"), {}, slow) for _ in range(20)))

    assert destroys_within_the_hour(world.config["status"], "Toy", world.now) == {"team": 20}
    assert destroys_within_the_hour(world.config["status"], "Other", world.now) == {}


async def test_deletion_that_was_begun_is_finished_over_the_destroy_limit() -> None:
    world = World(10, destroysPerHour=1)
    await world.destroy()

    begun = world.limiter.allowance(toy("there-0"), world.account, {}, delete_intended=True)

    assert begun.destroy_limit_reached == ""
    assert world.allowance(toy("there-1")).destroy_limit_reached


async def test_ephemeral_namespaces_have_no_destroy_limit() -> None:
    world = World(10, destroysPerHour=0)
    ephemeral = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}

    assert world.allowance(toy("there-0"), ephemeral).destroy_limit_reached == ""
    await world.destroy(ephemeral)
    assert "status" not in world.config


async def test_deletions_of_one_namespace_leave_others_their_share() -> None:
    world = World(10, neighbours=("bank", "shop"))
    for _ in range(3):
        await world.destroy()

    assert "of namespace team" in world.allowance(toy("there-0")).destroy_limit_reached
    with pytest.raises(Terminal, match="at most 3 may, so that others"):
        await world.destroy()
    assert world.allowance(toy("bank-0", "bank")).destroy_limit_reached == ""
    await world.destroy(obj=toy("bank-0", "bank"))

    world.restart()
    assert world.allowance(toy("there-0")).destroy_limit_reached
    assert world.allowance(toy("shop-0", "shop")).destroy_limit_reached == ""


@pytest.mark.parametrize("restarts", [True, False])
async def test_mistake_in_many_namespaces_is_stopped_for_all(*, restarts: bool) -> None:
    world = World(0, neighbours=tuple(f"team-{number}" for number in range(20)))
    gone = 0
    for number in range(20):
        try:
            await world.destroy(obj=toy(f"team-{number}-0", f"team-{number}"))
        except Terminal as braked:
            assert "at most 6 may" in str(braked)  # noqa: PT017 - the others are let pass
            break
        gone += 1
        if restarts:
            world.restart()

    assert gone == 6
    assert world.allowance(toy("team-19-0", "team-19")).destroy_limit_reached


@pytest.mark.parametrize(("neighbours", "most"), [(("bank",), 5), ((), 10)])
async def test_destroy_limit_that_is_set_gives_one_namespace_half(neighbours: tuple[str, ...], most: int) -> None:
    world = World(30, neighbours=neighbours, destroysPerHour=10)
    for _ in range(most):
        await world.destroy()

    with pytest.raises(Terminal, match="within an hour"):
        await world.destroy()


async def test_counts_without_a_namespace_of_the_version_before_count_for_all() -> None:
    world = World(10, neighbours=("bank",))
    entry = {"kind": "Toy", "minute": "2026-11-21T11:55:00Z", "count": 6}
    world.configs.config["status"] = {"recentDestroys": [entry]}

    assert "6 databases" in world.allowance(toy("bank-0", "bank")).destroy_limit_reached


def test_recent_destroys_stay_bounded_however_many_namespaces_there_are() -> None:
    status: Object = {}
    for number in range(700):
        status = with_one_more(status, "Toy", f"team-{number}", START)

    assert len(status["recentDestroys"]) <= 512
    assert destroys_within_the_hour(status, "Toy", START).total() == 700


async def test_deletion_of_what_was_created_within_the_hour_does_not_count() -> None:
    world = World(10)
    young = toy("there-0")
    young["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    young["status"] = {"madeAt": "2026-11-21T11:30:00Z"}
    for _ in range(5):
        await world.destroy(obj=young)
    assert "status" not in world.config

    for _ in range(3):
        await world.destroy()
    assert world.allowance(young).destroy_limit_reached == ""
    world.now += timedelta(minutes=31)
    assert world.allowance(young).destroy_limit_reached
    assert world.allowance({**young, "status": {"madeAt": "2026-11-21T23:00:00Z"}}).destroy_limit_reached


def _owner(namespace: str, uid: str = "", installation: str = "home") -> Owner:
    return Owner(installation, "uid", "claim", namespace, "orders", "db", uid)


def test_limits_count_orphans() -> None:
    world = World(2, instances=5, perNamespace=4)
    new, team = toy("new", held=False), {"metadata": {"name": "team", "uid": "team-uid"}}
    assert world.limiter.needs_list(new, world.account)
    owners = {
        "kept-1": _owner("team", "team-uid"),
        "kept-2": _owner("team"),
        "former": _owner("team", "former-uid"),
        "foreign": _owner("team", "team-uid", "elsewhere"),
    }
    world.limiter.listed("default", "account", ExternalList({}, complete=True, owners=owners))

    assert not world.limiter.needs_list(new, world.account)
    # Those of a former namespace of that name are not this one's, but they are there.
    assert "at most 5 databases by ProviderConfig" in world.allowance(new, team).limit_reached
    world.limiter.orphans.remove("default", "former")
    assert "at most 4 databases of namespace team" in world.allowance(new, team).limit_reached
    with pytest.raises(Terminal, match="at most 4"), world.limiter.reserved(new, world.account, team):
        pass
    world.limiter.orphans.remove("default", "kept-2")
    assert world.allowance(new, team).limit_reached == ""
    world.limiter.orphans.add("default", "kept-3", _owner("team", "team-uid"))
    assert "at most 4" in world.allowance(new, team).limit_reached


def test_limits_count_what_has_a_resource_once() -> None:
    world = World(2, perNamespace=3)
    named = toy("there-0")
    named["metadata"] |= {"annotations": {"fairlead.dev/external-name": "db-0"}, "resourceVersion": "2"}
    world.informer.store.remember(named)
    world.limiter.listed("default", "account", ExternalList({}, complete=True, owners={"db-0": _owner("team")}))

    assert world.allowance(toy("new", held=False)).limit_reached == ""


def test_list_that_is_not_complete_removes_no_orphan() -> None:
    world = World(0, instances=1)
    world.limiter.listed("default", "account", ExternalList({}, complete=True, owners={"kept": _owner("team")}))
    world.limiter.listed("default", "account", ExternalList({}, complete=False))
    assert world.allowance(toy("new", held=False)).limit_reached


def test_kind_without_data_has_no_limits() -> None:
    world = World(2, instances=2)
    anything: Any = world.accounts
    world.limiter = Limiter(world.informer, anything, lambda: world.now, stateful=False)

    assert world.allowance(toy("new", held=False)).limit_reached == ""
    assert not world.limiter.needs_list(toy("new", held=False), world.account)
    with world.limiter.reserved(toy("new", held=False), world.account, {}):
        pass
