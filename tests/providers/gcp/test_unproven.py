"""What is not proven makes nothing and deletes nothing, and each cause is named; over a simulated Cloud SQL's wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from devcloud.gcp.server import Served
from providers.gcp import USERS
from tests.providers.gcp.simulated_sql import OTHER_PROJECT, REGION, SimulatedSql
from tests.providers.gcp.sql_world import SqlWorld, inside_of, ready
from tests.support.simulator_control import control

pytestmark = pytest.mark.slow

INSERT, PATCH, DELETE = "instances.insert", "instances.patch", "instances.delete"
_STRANGE_PROJECT = "project-of-nobody-1618"


@dataclass(frozen=True, slots=True)
class Cause:
    """What happens in the cloud, the reason under which a resource reports it, and what its sentence says."""

    title: str
    begin: Callable[[SqlWorld], None]
    reason: str
    says: str

    def __str__(self) -> str:
        return self.title


def _gone_in_a_silent_region(world: SqlWorld) -> None:
    world.steer(vanish=True)
    world.behave(unreachable_regions=[REGION])


def _hidden_in_a_silent_region(world: SqlWorld) -> None:
    world.steer(vanish=True)
    world.behave(unreachable_regions=[REGION], forbidden_when_gone=["*"])


def _hidden_and_gone(world: SqlWorld) -> None:
    world.steer(vanish=True)
    world.behave(forbidden_when_gone=["*"])


def _hidden_and_listed(world: SqlWorld) -> None:
    world.fail("instances.get", "notAuthorized", status=403)


def _no_permission(world: SqlWorld) -> None:
    world.fail("instances.*", "notAuthorized", status=403)


def _void_credentials(world: SqlWorld) -> None:
    world.fail("*", "authError", status=401)


def _out_of_order(world: SqlWorld) -> None:
    world.fail("instances.*", "internalError", status=500)


def _other_project(world: SqlWorld) -> None:
    world.lead_to(OTHER_PROJECT)


def _strange_project(world: SqlWorld) -> None:
    world.lead_to(_STRANGE_PROJECT)


def _silent_region(world: SqlWorld) -> None:
    world.behave(unreachable_regions=[REGION])


UNKNOWNS = (
    Cause("gone, and its region silent", _gone_in_a_silent_region, "CloudUnreachable", "a region of the project"),
    Cause("403, and its region silent", _hidden_in_a_silent_region, "CloudUnreachable", "a region of the project"),
    Cause("403, and a list that shows it", _hidden_and_listed, "AccessDenied", "look at instance"),
    Cause("403, and no list", _no_permission, "AccessDenied", "list the instances"),
    Cause("credentials that are void", _void_credentials, "CredentialsInvalid", "renew the credentials"),
    Cause("errors of the server", _out_of_order, "CloudUnreachable", "look at instance"),
    Cause("another project", _other_project, "AccountChanged", OTHER_PROJECT),
    Cause("a project that nobody may ask", _strange_project, "AccessDenied", "project"),
)


@pytest.mark.parametrize("cause", UNKNOWNS, ids=str)
async def test_nothing_is_made_in_place_of_what_is_not_proven_gone_and_nothing_deleted(
    served: Served, cause: Cause
) -> None:
    world = await ready(served)
    cause.begin(world)
    await world.for_hours(1)
    assert (world.reason(), world.changes()) == (cause.reason, []), world.condition()
    assert cause.says in world.condition()["message"]

    world.delete()
    await world.for_hours(1)
    # Its resource stays until the cloud can be asked.
    assert (world.get() is not None, world.changes()) == (True, [])


async def test_an_instance_that_answers_403_and_is_in_no_whole_list_is_lost_and_not_made_again(served: Served) -> None:
    world = await ready(served)
    _hidden_and_gone(world)
    await world.for_hours(1)
    assert (world.reason(), world.changes()) == ("DatabaseLost", [])
    assert "is gone and was not deleted by Fairlead" in world.condition()["message"]

    world.delete()
    await world.rest()
    assert (world.get(), world.changes()) == (None, [])


@pytest.fixture(autouse=True)
def other_project(served: Served) -> None:
    """Have another project, which is empty."""
    SimulatedSql(served)


BEGINNINGS = (
    Cause("a silent region", _silent_region, "CloudUnreachable", "a region of the project"),
    Cause("no permission", _no_permission, "AccessDenied", "cannot"),
    Cause("errors of the server", _out_of_order, "CloudUnreachable", "cannot"),
    Cause("a project that nobody may ask", _strange_project, "AccessDenied", "project"),
)


@pytest.mark.parametrize("cause", BEGINNINGS, ids=str)
async def test_nothing_is_made_before_it_is_known_that_nothing_is_there(served: Served, cause: Cause) -> None:
    world = SqlWorld(served)
    world.ask()
    cause.begin(world)
    await world.for_hours(1)
    assert (world.reason(), world.changes()) == (cause.reason, []), world.get()
    assert cause.says in world.condition()["message"]


def _fail(served: Served, kind: str, message: str, *, code: str = "INTERNAL_ERROR", times: int | None = 1) -> None:
    failure: dict[str, Any] = {"kind": kind, "code": code, "message": message, "times": times}
    control(served, "POST", "operations", failure)


async def test_a_creation_whose_operation_fails_is_named_and_neither_repeated_nor_taken_away(served: Served) -> None:
    world = SqlWorld(served)
    world.ask()
    _fail(served, "CREATE", "The zone has no room left.")
    await world.for_hours(5)
    assert (world.reason(), world.changes()) == ("DatabaseFailed", [INSERT]), world.condition()
    assert "FAILED" in world.condition()["message"]
    assert list(SimulatedSql(served).instances()) == [world.external_name]


async def test_a_deletion_whose_operation_fails_is_named_and_carried_out_later(served: Served) -> None:
    world = await ready(served)
    _fail(served, "DELETE", "The instance could not be deleted.")
    world.delete()
    for _ in range(20):
        await world.step()
        if "could not be deleted" in world.condition()["message"]:
            break
        world.pass_time(timedelta(seconds=15))
    assert "could not be deleted" in world.condition()["message"]
    assert world.changes() == [DELETE]

    await world.for_hours(1)
    assert (world.get(), world.changes()) == (None, [DELETE, DELETE])


async def test_a_users_creation_whose_operation_fails_is_named_and_repeated_rarely(served: Served) -> None:
    server = await ready(served)
    user = inside_of(server, USERS)
    _fail(served, "CREATE_USER", "The role is not wanted here.", times=None)
    await user.for_hours(5)
    assert "The role is not wanted here" in user.condition()["message"]
    assert 1 <= len(user.changes()) <= 3
    assert set(user.changes()) == {"users.insert"}

    control(served, "DELETE", "operations")
    user.annotate(**{"reconcile-requested-at": "now"})
    await user.rest()
    assert user.reason("Ready") == "Available", user.get()


async def test_credentials_that_are_renewed_are_used_without_a_restart(served: Served) -> None:
    world = await ready(served)
    _void_credentials(world)
    await world.for_hours(0.5)
    assert world.reason() == "CredentialsInvalid"
    world.heal()
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.rest()
    assert (world.reason("Ready"), world.reason(), world.changes()) == ("Available", "InSync", [])
