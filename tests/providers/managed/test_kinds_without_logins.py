"""A kind to which nobody logs in: made, put back and deleted by the one reconciler, without a password anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from providers.external.client import Clients
from runtime.objects import SECRETS, Object
from tests.providers.toy import ToyCloud, provider_of
from tests.providers.world import World
from tests.support.toy_shelves import SHELVES, ShelfParameters, Shelves


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


async def test_kind_without_logins_has_its_drift_corrected() -> None:
    world = ShelfWorld()
    world.ask(books=["one", "two"])
    await world.settle()
    ((name, (incarnation, owner, _)),) = world.shelves.shelves.items()
    world.shelves.shelves[name] = (incarnation, owner, ShelfParameters(book_ids=("one",)))
    await world.settle()

    assert (_books(world), world.reason()) == (("one", "two"), "InSync")


async def test_kind_without_logins_is_created_again_when_it_is_lost() -> None:
    world = ShelfWorld()
    world.ask(books=["one", "two"])
    await world.settle()
    world.shelves.shelves.clear()
    await world.settle()

    assert (world.reason("Ready"), _books(world)) == ("Available", ("one", "two"))


async def test_kind_without_logins_is_deleted() -> None:
    world = ShelfWorld()
    world.ask(books=["one", "two"])
    await world.settle()
    world.delete()
    await world.settle()

    remaining: Any = (world.get(), world.shelves.shelves)
    assert remaining == (None, {})
