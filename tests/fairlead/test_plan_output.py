"""On what a pipeline fails, and what Markdown makes of a plan."""

from __future__ import annotations

import sys

import pytest

from fairlead.exits import Exit
from fairlead.plan_clouds import CloudChange, provider_of
from fairlead.plan_diff import Change, ClaimPlan
from fairlead.plan_output import Failure, exit_of

_IN_PLACE = CloudChange("in place", "a", "1", "2")
_RESTART = CloudChange("in the window", "class", "s", "m", interrupts=True)
_CONSENT = CloudChange("waits for consent", "version", "16", "17", "annotate it")
_REFUSED = CloudChange("refused", why="no")


def _plan(*changes: Change) -> ClaimPlan:
    return ClaimPlan("shop/orders", "c", changes)


def _cloud(*cloud: CloudChange) -> Change:
    return Change("update", "server", cloud=cloud)


@pytest.mark.parametrize(
    ("change", "fail_on", "status"),
    [
        pytest.param(_cloud(_IN_PLACE), (), Exit.DIFFERENCES, id="a difference"),
        pytest.param(_cloud(_IN_PLACE), ("restart",), Exit.DONE, id="a difference that is no restart"),
        pytest.param(_cloud(_RESTART), (), Exit.DIFFERENCES, id="a restart is a difference"),
        pytest.param(_cloud(_RESTART), ("restart",), Exit.DESTROYS, id="a restart, also one in the window"),
        pytest.param(_cloud(_CONSENT), (), Exit.REFUSED, id="what waits for consent"),
        pytest.param(_cloud(_CONSENT), ("restart",), Exit.DONE, id="consent, where restarts alone fail"),
        pytest.param(_cloud(_CONSENT), ("consent", "restart"), Exit.DESTROYS, id="consent"),
        pytest.param(Change("hold", "server"), ("consent",), Exit.DESTROYS, id="data that are held"),
        pytest.param(Change("replace", "server"), ("replace",), Exit.DESTROYS, id="a replacement"),
        pytest.param(Change("delete", "server"), ("restart",), Exit.DONE, id="a deletion, where restarts alone fail"),
        pytest.param(_cloud(_REFUSED), ("restart",), Exit.INVALID_INPUT, id="what the cloud refuses always fails"),
    ],
)
def test_a_pipeline_fails_on_what_it_names(change: Change, fail_on: tuple[Failure, ...], status: Exit) -> None:
    assert exit_of([_plan(change), _plan()], fail_on) == status


def test_a_cloud_whose_sdk_is_not_installed_has_no_part_in_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "providers.aws", None)

    assert provider_of("aws.fairlead.dev") is None
