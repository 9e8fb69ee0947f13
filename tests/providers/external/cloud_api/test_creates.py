"""A create that meets an object of its name: what an interrupted create made, or another's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from providers.external.client import ExternalClient, Target
from providers.external.cloud_api.creates import created
from providers.external.cloud_api.refusals import AlreadyThere
from providers.external.observation import Absent, Observed, Phase, Present
from providers.external.ownership import Owner
from runtime.errors import Transient
from tests.support.toy_shelves import ShelfParameters

OWNER = Owner("home", "uid-1", "0123456789abcdef")
TARGET = Target("fl-a", ShelfParameters(book_ids=()), OWNER, "hash")


@dataclass
class Cloud:
    """Answers every observation with one owner; None for an object that is not shown."""

    owner: Owner | None

    async def observe(self, target: Target[ShelfParameters]) -> Present[ShelfParameters, None] | Absent:
        if self.owner is None:
            return Absent()
        return Present(Observed(target.name, "id-1", self.owner, Phase.READY, target.spec, None, {}))

    def client(self) -> ExternalClient[ShelfParameters, None]:
        return cast("ExternalClient[ShelfParameters, None]", self)


async def _refused() -> Any:
    raise AlreadyThere("fl-a is taken", code="409")


async def _accepted() -> str:
    return "operation-1"


async def test_a_create_returns_what_the_cloud_answered() -> None:
    assert await created(_accepted(), Cloud(None).client(), TARGET, "shelf fl-a") == "operation-1"


async def test_what_an_interrupted_create_made_is_ours() -> None:
    assert await created(_refused(), Cloud(OWNER).client(), TARGET, "shelf fl-a") is None


async def test_an_object_of_another_owner_is_refused() -> None:
    stranger = Cloud(replace(OWNER, identity="uid-2"))

    with pytest.raises(AlreadyThere, match="fl-a is taken"):
        await created(_refused(), stranger.client(), TARGET, "shelf fl-a")


async def test_an_object_that_is_not_shown_yet_is_waited_for() -> None:
    with pytest.raises(Transient, match="shelf fl-a is there and not shown yet"):
        await created(_refused(), Cloud(None).client(), TARGET, "shelf fl-a")
