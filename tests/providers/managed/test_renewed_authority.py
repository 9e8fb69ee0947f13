"""Certificates that verify an endpoint from now on reach Secret and status, whatever waits; no password changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from providers.external.observation import digest
from runtime.objects import SECRETS, Key, Object
from runtime.secrets import text_of
from tests.providers.managed.test_asynchronous import LateCloud
from tests.providers.managed.test_asynchronous import world_of as late_world
from tests.providers.managed.test_operations import OperatedToys
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


def be_busy(world: World) -> None:
    world.toy.busy = 20


def be_paused(world: World) -> None:
    world.annotate(paused="true")


def be_refused(world: World) -> None:
    world.ask(size=101)


def hold_an_operation_open(world: World) -> None:
    assert isinstance(world.cloud, OperatedToys)
    world.cloud.unanswered = True
    world.ask(size=20)


def send_a_password_that_never_counts(world: World) -> None:
    assert isinstance(world.cloud, LateCloud)
    world.cloud.deaf = True
    world.configure(loginCheck="Required")
    world.ask(passwordRotation={"token": "2"})


@dataclass(frozen=True)
class Case:
    """What goes on while the authority changes, and what the pass reports of it then."""

    goes_on: Any = lambda _world: None
    reason: str = "InSync"
    cloud: Any = ToyCloud
    is_late: bool = False
    steps: int = 0


CASES = {
    "nothing goes on": Case(),
    "the cloud is at work on it": Case(be_busy),
    "it is paused": Case(be_paused, "Paused"),
    "its change is refused": Case(be_refused, "InvalidValue"),
    "an operation is open": Case(hold_an_operation_open, "CloudBusy", OperatedToys, steps=3),
    "a new password is not proven": Case(
        send_a_password_that_never_counts, "Rotating", LateCloud, is_late=True, steps=3
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_renewed_authority_is_published_by_the_next_pass_whatever_goes_on(case: Case) -> None:
    cloud = case.cloud()
    world = await ready(late_world(cloud) if case.is_late else World(cloud))
    case.goes_on(world)
    await world.passes(case.steps, timedelta(seconds=2))
    before, calls, hash_ = kept(world), list(cloud.calls), world.status["connection"]["passwordRef"]["hash"]
    world.toy.ca = FORMER + NEXT
    await world.step()

    assert kept(world) == before | {"ca.crt": FORMER + NEXT}
    assert world.status["connection"]["caRef"]["hash"] == digest(FORMER + NEXT)
    assert (world.status["connection"]["passwordRef"]["hash"], cloud.calls) == (hash_, calls)
    assert world.reason() == case.reason

    version = secret(world)["metadata"]["resourceVersion"]
    await world.step()
    assert secret(world)["metadata"]["resourceVersion"] == version


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
