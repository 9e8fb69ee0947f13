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

INSERT, DELETE = "instances.insert", "instances.delete"


@dataclass(frozen=True, slots=True)
class Cause:
    """What happens in the cloud, the reason under which a resource reports it, and what its sentence says."""

    title: str
    begin: Callable[[SqlWorld], None]
    reason: str
    says: str

    def __str__(self) -> str:
        return self.title


def _refused(action: str, code: str, status: int) -> Callable[[SqlWorld], None]:
    """Have every call of an action refused from now on."""
    return lambda world: world.fail(action, code, status=status)


def _led_to(project: str) -> Callable[[SqlWorld], None]:
    return lambda world: world.lead_to(project)


def _with(behaviour: dict[str, list[str]], *, gone: bool = False) -> Callable[[SqlWorld], None]:
    """Have the cloud behave so, and the instance be gone."""

    def begin(world: SqlWorld) -> None:
        if gone:
            world.steer(vanish=True)
        world.behave(**behaviour)

    return begin


_SILENT, _HIDDEN = {"unreachable_regions": [REGION]}, {"forbidden_when_gone": ["*"]}
_VOID, _BROKEN = _refused("*", "authError", 401), _refused("instances.*", "internalError", 500)
_FORBIDDEN, _STRANGE = _refused("instances.*", "notAuthorized", 403), _led_to("project-of-nobody-1618")
_A_REGION = "a region of the project"
UNKNOWNS = (
    Cause("gone, and its region silent", _with(_SILENT, gone=True), "CloudUnreachable", _A_REGION),
    Cause("403, and its region silent", _with(_SILENT | _HIDDEN, gone=True), "CloudUnreachable", _A_REGION),
    Cause("403, and a list that shows it", _refused("instances.get", "notAuthorized", 403), "AccessDenied", "look at"),
    Cause("403, and no list", _FORBIDDEN, "AccessDenied", "list the instances"),
    Cause("credentials that are void", _VOID, "CredentialsInvalid", "renew the credentials"),
    Cause("errors of the server", _BROKEN, "CloudUnreachable", "look at instance"),
    Cause("another project", _led_to(OTHER_PROJECT), "AccountChanged", OTHER_PROJECT),
    Cause("a project that nobody may ask", _STRANGE, "AccessDenied", "project"),
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
    _with(_HIDDEN, gone=True)(world)
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
    Cause("a silent region", _with(_SILENT), "CloudUnreachable", _A_REGION),
    Cause("no permission", _FORBIDDEN, "AccessDenied", "cannot"),
    Cause("errors of the server", _BROKEN, "CloudUnreachable", "cannot"),
    Cause("a project that nobody may ask", _STRANGE, "AccessDenied", "project"),
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
    _VOID(world)
    await world.for_hours(0.5)
    assert world.reason() == "CredentialsInvalid"
    world.heal()
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.rest()
    assert (world.reason("Ready"), world.reason(), world.changes()) == ("Available", "InSync", [])
