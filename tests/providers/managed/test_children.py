"""What lives inside a server, named after it and without tags; kinds and specs without logins."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.external.client import Clients, NotCreated, Target
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient
from runtime.objects import SECRETS, Object
from tests.providers.toy import Seen, ToyCloud, ToyParameters, logins_of, provider_of
from tests.providers.world import World, settled
from tests.support.toy_shelves import SHELVES, Shelves


class Untagged(ToyCloud):
    """A cloud whose objects carry no owner; `is_proven`: it shows that a create without an answer made one."""

    is_proven = False
    earlier_ids: tuple[str, ...] = ()

    def shown(self, target: Target[ToyParameters], observed: Seen) -> Seen:
        owner = target.owner if self.is_proven and target.unanswered else None
        return replace(observed, owner=owner, earlier_ids=self.earlier_ids)


def _child(cloud: ToyCloud, server: str = "server-1") -> World:
    children = {
        "server_of": lambda _target: server,
        "inside": True,
        "tagged": False,
        "invariants": lambda _target, _observed: (),
    }
    return World(cloud, provider=provider_of(cloud, **children))


@pytest.mark.parametrize("is_proven", [True, False])
async def test_child_whose_create_had_no_answer_is_ours_on_proof_alone(*, is_proven: bool) -> None:
    refusal = NotCreated("database orders")
    cloud = Untagged(faults=[("create", Transient("no answer"), False), ("create", refusal, False)])
    world = _child(cloud)
    world.ask()
    await world.passes(2)
    assert (cloud.calls, "intent" in world.status) == ([], True)
    # The first call has its effect at last.
    await _foreign(cloud)
    cloud.is_proven = is_proven

    world.annotate(**{"reconcile-requested-at": "now"})
    world.now += timedelta(hours=2)
    await world.passes(3)
    assert world.reason() == ("InSync" if is_proven else "NotOwned")
    assert ("intent" in world.status) is not is_proven


async def test_child_whose_oid_shows_that_it_was_made_again_is_not_ready_after_a_restart_either() -> None:
    world = _child(cloud := Untagged())
    world.ask()
    await world.settle()
    recorded = world.toy.incarnation
    for oid in ("@1", "@2"):
        world.toy.incarnation, cloud.earlier_ids = f"{recorded}{oid}", (recorded,)
        await world.passes(2)
    assert (world.reason(), world.reason("Ready")) == ("Replaced", "Replaced")
    world.toy.incarnation, cloud.earlier_ids = f"{recorded}@1", ()
    await world.passes(2)
    assert (world.reason(), world.reason("Ready")) == ("NotOwned", "NotOwned")


@pytest.mark.parametrize("is_adopted", [True, False])
async def test_child_of_the_name_of_one_that_was_lost_is_taken_over_by_consent_alone(*, is_adopted: bool) -> None:
    cloud = Untagged()
    world = _child(cloud)
    world.ask()
    await world.settle()
    incarnation = world.toy.incarnation
    await world.lose()
    await _foreign(cloud)
    # Of a kind without ids another one of the name has the same.
    world.toy.incarnation = incarnation
    await world.passes(3)
    assert (world.reason(), world.reason("Ready")) == ("NotOwned", "NotOwned")

    if is_adopted:
        world.configure(allowAdoption=True)
        world.annotate(adopt=incarnation)
        await world.passes(3)
        assert "lostAt" not in world.status
        return
    world.delete()
    await world.settle()
    assert (world.get(), len(cloud.toys)) == (None, 1)


async def test_create_without_an_answer_is_over_when_nothing_is_found_after_its_time() -> None:
    cloud = Untagged(faults=[("create", Transient("no answer"), False)])
    world = _child(cloud)
    world.ask()
    await world.step()
    assert "madeAt" in world.status
    world.annotate(paused="true")
    await world.step_after()
    assert ("madeAt" in world.status, "intent" in world.status) == (False, False)


@pytest.mark.parametrize(
    "refusal",
    [
        Terminal("InvalidValue", "the name is taken"),
        Blocked("CloudBusy", "the server is busy"),
        Conflict("it appeared meanwhile; looking again"),
        Throttled("too many requests", after=timedelta(0)),
        NotCreated("database orders"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
async def test_child_whose_create_was_refused_is_not_ours_when_it_appears(refusal: Failure) -> None:
    cloud = Untagged(faults=[("create", refusal, False)])
    world = _child(cloud)
    world.ask()
    await world.step()
    assert cloud.calls == []
    await _foreign(cloud)

    world.annotate(**{"reconcile-requested-at": "now"})
    await world.step()
    assert world.reason() == "NotOwned"


async def _foreign(cloud: Untagged) -> None:
    """Have somebody else create what the child would be called."""
    other = _child(cloud)
    other.ask()
    await other.settle()


async def test_child_is_not_observed_before_its_server_has_a_name() -> None:
    cloud = Untagged(faults=[("observe", AssertionError("observed"), False)])
    world = _child(cloud, server="")
    world.ask()
    await world.step()
    assert world.reason() == "ResourcePending"

    world.delete()
    await world.settle()
    assert world.get() is None


async def test_kind_whose_spec_asks_for_no_login_has_none() -> None:
    cloud = ToyCloud()
    rules = replace(logins_of(cloud), applies=lambda spec: spec.size != 1)
    world = await settled(cloud, provider_of(cloud, logins=rules), size=1)
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    assert "passwordRef" not in world.status.get("connection", {})
    assert [toy.passwords for toy in cloud.toys.values()] == [{"": ""}]


class ShelfWorld(World):
    """A reconciler of shelves."""

    def __init__(self) -> None:
        account = ToyCloud()
        self.shelves = Shelves(account)
        kind = replace(SHELVES, clients=lambda _account: Clients(self.shelves, self.shelves))
        super().__init__(account, provider=replace(provider_of(account), kinds=(kind,)))

    def parameters(self, spec: Object) -> Object:
        return {"bookIds": spec.pop("books")}


def _books(world: ShelfWorld) -> tuple[str, ...]:
    ((_, _, spec),) = world.shelves.shelves.values()
    return spec.book_ids


async def test_kind_without_logins_is_created_without_a_login_or_a_secret() -> None:
    world = ShelfWorld()
    world.ask(books=["one", "two"])
    await world.settle()

    assert (world.reason("Ready"), world.reason(), _books(world)) == ("Available", "InSync", ("one", "two"))
    assert [key for key in world.kube.objects if key[0] == SECRETS] == []
    assert "connection" not in (world.status)


async def test_kind_without_logins_is_created_again_when_it_is_lost() -> None:
    world = ShelfWorld()
    world.ask(books=["one", "two"])
    await world.settle()
    world.shelves.shelves.clear()
    await world.settle()

    assert (world.reason("Ready"), _books(world)) == ("Available", ("one", "two"))
