"""What an account holds without a resource, by its lists: ours, and what others made."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from providers.accounts.limits import Limiter
from providers.accounts.orphans import WithoutResource
from providers.external.client import ExternalList
from providers.external.ownership import Owner
from runtime.objects import dumps
from runtime.store import Listing
from tests.providers.accounts.test_limits import World, _owner, toy


async def test_orphans_of_a_kind_whose_lists_show_no_tags_are_looked_at_one_by_one() -> None:
    class Groups:
        async def list(self) -> ExternalList:
            return ExternalList({"there": "", "left": "", "theirs": ""}, complete=True)

        async def owners(self, names: Iterable[str]) -> dict[str, Owner]:
            return {name: _owner("team", installation={"left": "home"}.get(name, "other")) for name in names}

    world, groups = World(0), Groups()
    listing = Listing(world.informer.store)
    listing.add(dumps({**toy("there"), "status": {"externalName": "there"}}))
    tuple(world.informer.store.replace_all(listing, "2"))
    world.configs.clients = SimpleNamespace(account=groups, owners=groups, strangers=None)

    assert await world.limiter.list_without_resource("default") == WithoutResource(
        {"left": _owner("team")}, (), complete=True
    )


@pytest.mark.parametrize("by_list", [True, False])
async def test_what_others_made_and_no_resource_names_is_listed_apart(by_list: bool) -> None:  # noqa: FBT001 - a row
    class Account:
        async def list(self) -> ExternalList:
            items = {"ours": "", "observed": "", "made by hand": ""} if by_list else {"ours": ""}
            return ExternalList(items, complete=True, owners={"ours": _owner("team")})

        async def strangers(self) -> dict[str, Owner | None]:
            return {"observed": None, "made by hand": None, "retired": _owner("team", installation="home")}

    world, account = World(0), Account()
    listing = Listing(world.informer.store)
    listing.add(dumps({**toy("observed"), "status": {"externalName": "observed"}}))
    tuple(world.informer.store.replace_all(listing, "2"))
    world.configs.clients = SimpleNamespace(account=account, owners=None, strangers=None if by_list else account)

    there = await world.limiter.list_without_resource("default")
    assert (there.unmanaged, *there.orphans) == (("made by hand",), "ours", *([] if by_list else ["retired"]))


async def test_orphans_inside_a_server_are_neither_listed_nor_missing() -> None:
    world = World(0)
    nothing: Any = None
    limiter = Limiter(world.informer, nothing, lambda: world.now, inside=True)

    assert await limiter.list_without_resource("default") == WithoutResource({}, (), complete=True)
