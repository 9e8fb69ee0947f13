"""A few rotations with a kill in each, under an application that never stops logging in. `make faults` makes 20."""

from __future__ import annotations

import pytest

from tests.support.aws import Aws
from tests.support.rotation_runs import Size, onprem, rds
from tests.support.rotations import Application, Attempt
from tests.support.system import System

pytestmark = pytest.mark.asyncio(loop_scope="module")
_SIZE = Size(claims=1, rounds=2)


async def test_a_rotation_onprem_fails_no_login(system: System) -> None:
    composer = await system.start_composer()
    try:
        rotations = await onprem(system, _SIZE)
    finally:
        await composer.terminate()
    assert [application.failed for application in rotations.applications] == [[]]


async def test_a_rotation_on_rds_fails_no_login_of_two_and_one_login_only_for_its_reason(aws: Aws) -> None:
    composer = await aws.system.start_composer()
    try:
        single = await rds(aws, _SIZE, has_two_logins=False)
        double = await rds(aws, _SIZE, has_two_logins=True)
    finally:
        await composer.terminate()
    assert [application.unexplained() for application in single.applications] == [[]]
    assert [application.failed for application in double.applications] == [[]]


def _application(*attempts: tuple[float, str, bool], requested_at: float) -> Application:
    made = [Attempt(at, "app", password, "" if logs_in else "refused") for at, password, logs_in in attempts]
    return Application(None, "", "", made, [requested_at])  # type: ignore[arg-type]  # it asks no system here


@pytest.mark.parametrize(
    ("attempts", "unexplained"),
    [
        (((1, "a", True), (3, "a", False), (4, "b", True)), 0),
        (((1, "a", False), (3, "a", True), (4, "b", True)), 1),
        (((1, "a", True), (3, "b", False), (4, "b", True)), 1),
        (((1, "a", True), (3, "a", False), (4, "a", True), (5, "b", True)), 1),
        (((1, "a", True), (3, "a", False)), 1),
    ],
)
async def test_a_failed_login_is_explained(attempts: tuple[tuple[float, str, bool], ...], unexplained: int) -> None:
    assert len(_application(*attempts, requested_at=2).unexplained()) == unexplained
