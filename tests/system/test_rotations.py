"""A rotation with a kill in it on each cloud, under an application that never stops logging in.

`make faults` has twenty of each, and those of one login.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.security.builders import at_once, expect
from tests.support.processes import Program
from tests.support.rotation_runs import rotate
from tests.support.rotations import Application, Attempt, Size
from tests.support.system import System

pytestmark = pytest.mark.asyncio(loop_scope="session")
_CASES = ("onprem", "aws-2", "azure-2", "gcp-2")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(system: System, one_composer: Program) -> dict[str, BaseException | None]:
    """Return what went wrong in each case; all rotate beside each other."""
    del one_composer
    return await at_once({case: _rotates(system, case) for case in _CASES})


async def _rotates(system: System, case: str) -> None:
    rotations = await rotate(system, case, Size(claims=1, rounds=1, login_every_s=0.25))
    assert [application.failed for application in rotations.applications] == [[]]


@pytest.mark.parametrize("case", _CASES)
async def test_a_rotation_of_two_logins_fails_no_login(outcomes: dict[str, BaseException | None], case: str) -> None:
    expect(outcomes[case])


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
