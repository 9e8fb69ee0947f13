"""Certificates that verify an endpoint from now on reach Secret and status, whatever waits; no password changes."""

from __future__ import annotations

from typing import Any

import pytest

from providers.external.observation import digest
from runtime.objects import SECRETS, Key, Object
from runtime.secrets import text_of
from tests.providers.toy import ToyCloud
from tests.providers.world import World

FORMER, NEXT = "PEM of the former authority\n", "PEM of the next authority\n"


def secret(world: World, name: str = "db") -> Object:
    return world.kube.objects[SECRETS, Key("team", f"{name}-credentials")]


def kept(world: World, name: str = "db") -> dict[str, str]:
    return {key: text_of(secret(world, name), key) for key in ("current", "pending", "username", "ca.crt")}


async def ready(world: World) -> World:
    """Have a database Ready, verified by its first authority."""
    world.ask()
    await world.settle(most=60)
    world.toy.ca = FORMER
    await world.settle()
    assert (world.reason("Ready"), kept(world)["ca.crt"]) == ("Available", FORMER)
    assert world.status["connection"]["caRef"]["hash"] == digest(FORMER)
    return world


def be_replaced(world: World) -> None:
    world.toy.incarnation = "another one"


def be_observed_alone(world: World) -> None:
    world.ask(managementPolicy="Observe")


def belong_to_nobody_allowed(world: World) -> None:
    world.configure(allowedNamespaces={"names": ["another"]})


@pytest.mark.parametrize("not_ours", [be_replaced, be_observed_alone, belong_to_nobody_allowed])
async def test_authority_of_what_is_not_ours_to_keep_is_not_published(not_ours: Any) -> None:
    world = await ready(World(ToyCloud()))
    not_ours(world)
    await world.step()
    world.toy.ca = NEXT
    await world.step()

    assert kept(world)["ca.crt"] == FORMER
    assert world.status["connection"]["caRef"]["hash"] == digest(FORMER)
