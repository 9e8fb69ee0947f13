"""Whose part a claim has in a rollout: paused ones, edited ones, and those whose trouble is a tenant's doing."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from apis.reasons import SHARED
from composer.composition.rollout import Course, advance, choice_after, is_included, sentence
from composer.composition.rollout_claims import RolloutClaim, rollout_claim_of
from composer.models import CompositionChoice, RolloutStatus
from runtime.objects import Object
from tests.composer.composition import fleet
from tests.composer.composition.fleet import MINUTE, NEW, NOW, OLD
from tests.composer.factories import claim


def _lives(
    course: Course, claims: list[RolloutClaim], state: RolloutStatus | None, now: datetime
) -> tuple[RolloutStatus, list[RolloutClaim], list[int]]:
    """Let a rollout and its claims go on until nothing changes; return how many have it after each wave."""
    counts: list[int] = []
    for _ in range(50):
        before = state, claims
        state = advance(course, state, claims, now)
        claims = fleet.moved([claim for claim in claims if not claim.is_paused], state) + [
            claim for claim in claims if claim.is_paused
        ]
        if len(fleet.on_new(claims)) not in counts:
            counts.append(len(fleet.on_new(claims)))
        if before == (state, claims):
            return state, claims, counts
        now += MINUTE
    raise AssertionError("it does not come to rest")


def test_a_revision_that_is_published_while_all_claims_are_paused_is_not_finished() -> None:
    course, claims = fleet.course(fleet.rules("1", "50%", "100%")), fleet.claims(8, is_paused=True)

    state, claims, _ = _lives(course, claims, None, NOW)

    assert (state.phase, state.paused, state.everyone, state.through) == ("Progressing", 8, False, "")
    assert sentence(state) == "revision 2, wave 0 of 3: 0 of 8 claims have it; 8 paused claims have not got it"
    assert not any(is_included(state, claim.rank, well=True, since=claim.unchanged_since) for claim in claims)


@pytest.mark.parametrize("working", [0, 1, 2, 7])
@pytest.mark.parametrize("ill", [0, 1])
def test_claims_that_leave_a_pause_go_by_waves_like_any_other(working: int, ill: int) -> None:
    course = fleet.course(fleet.rules("1", "50%", "100%"))
    claims = [replace(claim, is_paused=index >= working) for index, claim in enumerate(fleet.claims(10))]
    claims = [replace(claim, is_ready=index >= ill or claim.is_paused) for index, claim in enumerate(claims)]
    frozen, claims, _ = _lives(course, claims, None, NOW)
    assert frozen.phase == "Progressing"
    later = NOW + 100 * MINUTE
    claims = [replace(claim, is_paused=False, unchanged_since=later) if claim.is_paused else claim for claim in claims]
    assert fleet.on_new(fleet.moved(claims, frozen)) == fleet.on_new(claims)

    state, claims, counts = _lives(course, claims, frozen, later + MINUTE)

    assert (state.phase, len(fleet.on_new(claims))) == ("Finished", 10)
    assert counts == [counts[0], *(size for size in (1, 5, 10) if size > counts[0])]


def test_a_failure_after_a_pause_of_all_claims_halts_the_rollout() -> None:
    course, claims = fleet.course(fleet.rules("1", "50%", "100%")), fleet.claims(8, is_paused=True)
    state, claims, _ = _lives(course, claims, None, NOW)
    later = NOW + 100 * MINUTE
    claims = [replace(claim, is_paused=False, unchanged_since=later) for claim in claims]
    state = advance(course, state, claims, later)
    claims = fleet.moved(claims, state)
    claims = [replace(claim, trouble=("InvalidValue", "no")) if claim.revision == NEW else claim for claim in claims]

    state = advance(course, state, claims, later + MINUTE)

    assert (state.phase, len(fleet.on_new(fleet.moved(claims, state)))) == ("Halted", 1)


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


def test_a_wave_is_not_filled_by_claims_that_say_nothing_of_the_revision() -> None:
    course, claims = fleet.course(fleet.rules("1", "100%")), fleet.claims(6)
    state = advance(course, None, claims, NOW)
    claims = fleet.moved(claims, state)
    claims[0] = replace(claims[0], trouble=("InvalidValue", "no"), has_changed=True)
    soaking = advance(course, state, claims, NOW)

    again = advance(course, soaking, claims, NOW + 2 * MINUTE)

    assert (again.wave, again.everyone, fleet.on_new(fleet.moved(claims, again))) == (1, False, ["shop/0", "shop/1"])


REQUESTED = {"annotations": {"fairlead.dev/reconcile-requested-at": "2"}}
APPLIED = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
OF_OLD: dict[str, Any] = {
    "observedGeneration": 1,
    "composition": {"name": "c", "revision": OLD},
    "conditions": [{"type": "Ready", "status": "True"}],
}


def _taken(owner: Object) -> Object:
    """Return what a claim's status says of its Composition once it has taken the new revision."""
    return choice_after(OF_OLD["composition"], CompositionChoice("c", NEW, "2026-11-21T12:00:00Z"), owner)


@pytest.mark.parametrize(
    ("edit", "labels", "has_changed"),
    [
        pytest.param({}, {}, False, id="nothing"),
        pytest.param({"generation": 2}, {}, True, id="the spec"),
        pytest.param({}, {"tier": "gold"}, True, id="a label, which templates see"),
        pytest.param({"annotations": {"team": "red"}}, {}, True, id="an annotation, which templates see"),
        pytest.param(REQUESTED, {}, False, id="an annotation of ours"),
        pytest.param(APPLIED, {}, False, id="what kubectl notes"),
    ],
)
def test_an_edit_of_the_owner_since_the_revision_was_taken_is_seen(
    edit: dict[str, Any], labels: dict[str, str], *, has_changed: bool
) -> None:
    after = claim(**{"generation": 1, **edit}, status={"composition": _taken(claim(status=OF_OLD))})
    after["metadata"]["labels"] = labels

    claim_in_rollout = rollout_claim_of(after, NEW, NOW)

    assert claim_in_rollout is not None
    assert claim_in_rollout.has_changed == has_changed


def test_a_claim_that_is_edited_as_it_takes_a_revision_counts_for_nothing() -> None:
    assert _taken(claim(generation=2, status=OF_OLD))["wasReady"] is False


def test_a_claim_whose_revision_is_gone_counts_as_well() -> None:
    gone = [
        {"type": "Ready", "status": "False", "reason": "RevisionNotFound"},
        {"type": "Synced", "status": "False", "reason": "RevisionNotFound"},
        {"type": "Stalled", "status": "True", "reason": "RevisionNotFound", "message": "gone"},
    ]

    claim_in_rollout = rollout_claim_of(
        claim(status={"composition": {"name": "c", "revision": "c-gone"}, "conditions": gone}), NEW, NOW
    )

    assert claim_in_rollout is not None
    assert (claim_in_rollout.is_well, claim_in_rollout.is_settled) == (True, True)


def test_claims_that_came_later_do_not_enlarge_the_wave_that_was_open() -> None:
    course, claims = fleet.course(fleet.rules("50%", "100%", soakSeconds=0)), fleet.claims(4)
    state = advance(course, None, claims, NOW)
    claims = fleet.moved(claims, state)
    late = [
        RolloutClaim(f"shop/late-{number}", f"{number:016x}", OLD, since=NOW + MINUTE, unchanged_since=NOW + MINUTE)
        for number in range(6)
    ]

    after = advance(course, state, [*claims, *late], NOW + 2 * MINUTE)

    assert (after.wave, after.everyone) == (2, True)
