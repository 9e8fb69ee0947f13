"""Whose part a claim has in a rollout: paused ones, edited ones, and those whose trouble is a tenant's doing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apis.reasons import SHARED
from composer.composition.rollout import advance
from composer.composition.rollout_claims import RolloutClaim
from tests.composer.composition import fleet
from tests.composer.composition.fleet import MINUTE, NOW, OLD

_TENANTS = {"trouble": ("SecretNotOwned", "another's"), "hindrance": "SecretNotOwned"}


LIMITED = {"trouble": ("LimitReached", "3 of 3"), "hindrance": "LimitReached"}
EDITED: dict[str, Any] = {"trouble": ("InvalidValue", "no"), "has_changed": True}
INCOMPLETE = {"is_ready": False, "hindrance": "ConnectionIncomplete", "since": NOW - 99 * MINUTE}
WORKING = {"is_working": True, "has_changed": True, "since": NOW - 99 * MINUTE}
OUTDATED = {"trouble": ("UnsupportedVersion", "16 is not offered"), "hindrance": "UnsupportedVersion"}
LOST = {"trouble": ("DatabaseLost", "gone"), "hindrance": "DatabaseLost"}


@pytest.mark.parametrize(
    ("first", "other", "phase"),
    [
        pytest.param(_TENANTS, {}, "Soaking", id="a reason that a tenant can bring about by himself"),
        pytest.param(_TENANTS, _TENANTS, "Halted", id="it, when claims of two namespaces give it"),
        pytest.param(_TENANTS, LIMITED, "Soaking", id="two such reasons of two namespaces"),
        pytest.param(INCOMPLETE, {}, "Soaking", id="such a reason that never becomes a stall, past the deadline"),
        pytest.param(EDITED, {}, "Soaking", id="a claim that was edited since"),
        pytest.param(EDITED, EDITED, "Soaking", id="edited claims of two namespaces"),
        pytest.param(WORKING, {}, "Soaking", id="an edited claim that is on its way for long"),
        pytest.param(OUTDATED, {}, "Halted", id="a developer's reason of a claim that nobody edited"),
        pytest.param(LOST, {}, "Halted", id="a lost database"),
    ],
)
def test_a_rollout_is_stopped_by_trouble_of_the_revision_alone(
    first: dict[str, Any], other: dict[str, Any], phase: str
) -> None:
    course = fleet.course(fleet.rules("2", "100%", progressDeadlineSeconds=60))
    claims = [RolloutClaim(f"team-{number}/db", f"{number:016x}", OLD) for number in range(6)]
    state = advance(course, None, claims, NOW)
    claims = fleet.moved(claims, state)
    claims[0], claims[1] = replace(claims[0], **first), replace(claims[1], **other)

    assert advance(course, state, claims, NOW).phase == phase


def test_the_page_names_the_reasons_that_a_tenant_can_bring_about() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "compositions-reference.md").read_text(encoding="utf-8")

    rows = [row for row in page.splitlines() if row.endswith("when claims of two namespaces say it |")]

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == SHARED
