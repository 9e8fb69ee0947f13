"""Who may use a ProviderConfig, how much and how fast."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from providers.accounts import Accounts
from providers.bounds import Limiter, allowed
from providers.cloud import Account
from providers.plan import Bounds
from runtime.cache import Cache
from runtime.errors import Terminal
from runtime.objects import Object, Resource, dumps
from runtime.store import Listing

RESOURCE = Resource("toy.example.org", "v1", "Toy", "toys")
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


def toy(name: str, namespace: str = "team", *, held: bool = True) -> Object:
    finalizers = ["fairlead.dev/teardown"] if held else []
    meta = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", "finalizers": finalizers}
    return {"apiVersion": "toy.example.org/v1", "kind": "Toy", "metadata": meta, "spec": {}}


class World:
    """A store of resources, a ProviderConfig and a clock that stands still."""

    def __init__(self, present: int, **limits: int) -> None:
        self.now = START
        kube: Any = None
        informer = Cache(kube).informer(RESOURCE)
        accounts: Accounts[Any, Any] | Any = None
        self.limiter = Limiter(informer, accounts, lambda: self.now)
        listing = Listing(informer.store)
        for number in range(present):
            listing.add(dumps(toy(f"there-{number}")))
        tuple(informer.store.replace_all(listing, "1"))
        self.config: Object = {
            "metadata": {"name": "default", "annotations": {}},
            "spec": {"limits": limits, "allowedNamespaces": {"names": ["team"]}},
        }

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


@pytest.mark.parametrize(("present", "limits", "most"), [(10, {}, 3), (400, {}, 8), (10, {"destroysPerHour": 1}, 1)])
def test_one_destroy_too_many_within_an_hour_is_braked(present: int, limits: dict[str, int], most: int) -> None:
    world = World(present, **limits)
    for _ in range(most):
        world.limiter.count_destroy(world.account, {})

    assert "fairlead resume" in world.bounds(toy("there-0")).brake
    with pytest.raises(Terminal, match="within an hour"):
        world.limiter.count_destroy(world.account, {})

    world.now += timedelta(minutes=61)
    assert world.bounds(toy("there-0")).brake == ""


def test_a_released_brake_is_off_until_its_end() -> None:
    world = World(10, destroysPerHour=0)
    assert world.bounds(toy("there-0")).brake

    world.config["metadata"]["annotations"]["fairlead.dev/brake-released"] = "2026-11-21T12:30:00Z"
    assert world.bounds(toy("there-0")).brake == ""
    world.now += timedelta(minutes=31)
    assert world.bounds(toy("there-0")).brake


def test_ephemeral_namespaces_have_no_brake() -> None:
    world = World(10, destroysPerHour=0)
    ephemeral = {"metadata": {"labels": {"fairlead.dev/ephemeral": "true"}}}

    assert world.bounds(toy("there-0"), ephemeral).brake == ""
    world.limiter.count_destroy(world.account, ephemeral)
