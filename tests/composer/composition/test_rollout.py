"""How a revision goes from wave to wave: every row of the decision, and what always holds."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.composition.rollout import advance, conditions_of, is_included, sentence, superseded
from composer.composition.rollout_claims import RolloutClaim
from composer.models import RolloutStatus
from composer.validation.rollout import faults
from tests.composer.composition import fleet
from tests.composer.composition.fleet import MINUTE, NEW, NOW, OLD

INVALID: dict[str, Any] = {"trouble": ("InvalidValue", "no")}
DEADLINE = {"progressDeadlineSeconds": 60}


@pytest.mark.parametrize(
    ("says", "rules", "phase"),
    [
        pytest.param(INVALID, {}, "Halted", id="a claim that stalls halts it"),
        pytest.param({"is_ready": False, "since": NOW - 2 * MINUTE}, DEADLINE, "Halted", id="so does one not ready"),
        pytest.param({"is_working": True, "since": NOW - 2 * MINUTE}, DEADLINE, "Halted", id="and one still changed"),
        pytest.param({"is_ready": False, "since": NOW}, {}, "Progressing", id="one not ready yet is waited for"),
        pytest.param({"is_working": True, "since": NOW}, {}, "Progressing", id="one being changed is waited for"),
        pytest.param({**INVALID, "was_ready": False}, {}, "Soaking", id="one not well before counts for nothing"),
        pytest.param(INVALID, {"maxFailed": 1}, "Soaking", id="as many failures as are allowed are passed over"),
        pytest.param(INVALID, {"onFailure": "Rollback"}, "Reverted", id="a rollback is asked for by the rules"),
    ],
)
def test_a_wave_is_stopped_by_failures(says: dict[str, Any], rules: dict[str, Any], phase: str) -> None:
    course, claims = fleet.course(fleet.rules("1", "100%", **rules)), fleet.claims(10)
    state = advance(course, None, claims, NOW)
    claims = fleet.moved(claims, state)
    claims[0] = replace(claims[0], **says)

    after = advance(course, state, claims, NOW)

    assert after.phase == phase
    assert fleet.on_new(fleet.moved(claims, after)) == ["shop/0"]
    if phase in ("Halted", "Reverted"):
        assert [failure.claim for failure in after.failures] == ["shop/0"]
        assert "shop/0" in sentence(after)
        assert advance(course, after, claims, NOW + 100 * MINUTE) == after


@pytest.mark.parametrize("stuck", ["shop/0", "shop/3"])
def test_a_claim_that_does_not_take_the_revision_is_named_and_passed_over_after_the_deadline(stuck: str) -> None:
    course, claims = fleet.course(fleet.rules("1", "50%", "100%", **DEADLINE)), fleet.claims(8)
    state = advance(course, None, claims, NOW)
    named: set[str] = set()
    for minute in range(30):
        now = NOW + minute * MINUTE
        state = advance(course, state, claims, now)
        named |= {failure.claim for failure in state.failures}
        assert (stuck in sentence(state)) == bool(state.failures)
        claims = [
            before if before.name == stuck or before.revision == NEW else replace(after, since=now)
            for before, after in zip(claims, fleet.moved(claims, state), strict=True)
        ]

    assert named == {stuck}
    assert len(fleet.on_new(claims)) == 7
    assert (state.phase, state.failed, [failure.claim for failure in state.failures]) == ("Progressing", 0, [stuck])
    claims = [replace(claim, revision=NEW, since=NOW) for claim in claims]
    assert advance(course, state, claims, NOW + 31 * MINUTE).phase == "Finished"


@pytest.mark.parametrize(
    ("came", "fields"),
    [
        pytest.param("", {"unchanged_since": NOW + MINUTE}, id="made meanwhile"),
        pytest.param("ill", {"is_ready": True, "unchanged_since": NOW + MINUTE}, id="became healthy meanwhile"),
        pytest.param("", {"unchanged_since": datetime.max.replace(tzinfo=UTC)}, id="its pause ended meanwhile"),
    ],
)
def test_a_claim_that_comes_while_a_wave_is_open_goes_with_the_next(came: str, fields: dict[str, Any]) -> None:
    course, claims = fleet.course(fleet.rules("3", "100%", soakSeconds=0)), fleet.claims(10)
    first = RolloutClaim("shop/late", "0" * 15, OLD, is_ready=came != "ill")
    if came:
        claims.append(first)
    wave = advance(course, None, claims, NOW)
    late = replace(first, **fields)
    claims = [late, *(claim for claim in fleet.moved(claims, wave) if claim.name != late.name)]

    assert not is_included(wave, late.rank, well=late.is_well, since=late.unchanged_since)
    assert len(fleet.on_new(fleet.moved(claims, wave))) == 3
    # It holds up nobody, either, and says by its next pass since when it stands so.
    claims[0] = replace(late, unchanged_since=NOW + MINUTE)
    last = advance(course, advance(course, wave, claims, NOW + 2 * MINUTE), claims, NOW + 2 * MINUTE)
    assert (last.wave, last.everyone) == (2, True)
    assert len(fleet.on_new(fleet.moved(claims, last))) == len(claims)


AT_11, AT_12 = "2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z"
NEVER, ALWAYS = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def test_a_halted_rollout_goes_on_when_a_person_requests_it() -> None:
    course, claims = fleet.course(fleet.rules("1", "100%", soakSeconds=0)), fleet.claims(3)
    claims = fleet.moved(claims, advance(course, None, claims, NOW))
    ill = [replace(claims[0], trouble=("InvalidValue", "no")), *claims[1:]]
    halted = advance(course, advance(course, None, claims, NOW), ill, NOW)
    assert halted.phase == "Halted"

    assert advance(fleet.course(course.rules, resumed=True), halted, ill, NOW).phase == "Halted"
    assert advance(fleet.course(course.rules, resumed=True), halted, claims, NOW).wave == 2


def test_a_paused_rollout_moves_nobody_and_then_goes_on_with_its_wave() -> None:
    course, claims = fleet.course(fleet.rules("2", "100%", **DEADLINE)), fleet.claims(3)
    wave = advance(course, None, claims, NOW)
    claims[0] = fleet.moved(claims, wave)[0]

    paused = advance(replace(course, is_paused=True), wave, claims, NOW)
    resumed = advance(course, paused, claims, NOW + 100 * MINUTE)

    assert fleet.moved(claims, paused) == claims
    assert [(condition.type, condition.reason) for condition in conditions_of(paused)] == [("Synced", "Paused")]
    assert "revision 2, wave 1 of 2, is paused: 1 of 3 claims have it" in sentence(paused)
    assert advance(replace(course, is_paused=True), paused, claims, NOW + MINUTE) == paused
    # The time in which it was paused is none of the deadline's.
    assert (resumed.phase, resumed.opened, resumed.through, resumed.failures) == (
        "Progressing",
        wave.opened,
        wave.through,
        (),
    )


def test_a_newer_revision_ends_what_is_under_way_and_leaves_what_has_ended() -> None:
    course = fleet.course(fleet.rules("1", "100%"))
    under_way = advance(course, None, fleet.claims(3), NOW)
    paused = advance(replace(course, is_paused=True), under_way, fleet.claims(3), NOW)
    ended = [RolloutStatus(revision=1, phase=phase) for phase in ("Finished", "Halted", "Reverted")]

    state = superseded(under_way, NOW)

    assert state is not None
    assert superseded(paused, NOW) == msgspec.structs.replace(state, total=3)
    assert state.phase == "Superseded"
    assert conditions_of(state) == ()
    assert "gave way" in sentence(state)
    assert [superseded(earlier, NOW) for earlier in ended] == ended
    assert superseded(None, NOW) is None


@given(
    total=st.integers(0, 40),
    ill=st.sets(st.integers(0, 39), max_size=8),
    failing=st.sets(st.integers(0, 39), max_size=3),
    waves=st.sampled_from([("1", "10%", "100%"), ("3", "100%"), ("50%", "100%"), ()]),
)
def test_a_revision_is_used_by_its_wave_alone_and_a_failure_moves_nobody(
    total: int, ill: set[int], failing: set[int], waves: tuple[str, ...]
) -> None:
    """Whoever is ill or fails: no claim moves beyond the open wave, none after a halt, and it ends."""
    rules = fleet.rules(*waves, soakSeconds=0)
    sizes = [
        math.ceil(total * int(wave[:-1]) / 100) if wave.endswith("%") else int(wave) for wave in waves or ("100%",)
    ]
    claims = fleet.claims(total)
    claims = [replace(claim, is_ready=index not in ill) for index, claim in enumerate(claims)]
    state: RolloutStatus | None = None
    for _ in range(4 * len(sizes) + 4):
        before = len(fleet.on_new(claims))
        state = advance(fleet.course(rules), state, claims, NOW)
        claims = fleet.moved(claims, state)
        for index in failing & set(range(total)):
            if claims[index].revision == NEW:
                claims[index] = replace(claims[index], trouble=("InvalidValue", "no"))
        if state.phase == "Halted":
            assert len(fleet.on_new(claims)) == before
        elif state.wave and state.wave < len(sizes) and sizes[state.wave - 1] < total:
            assert len(fleet.on_new(claims)) <= sizes[state.wave - 1]
            assert not {f"shop/{number}" for number in ill} & set(fleet.on_new(claims))
    assert state is not None
    healthy_failures = {number for number in failing if number < total and number not in ill}
    assert state.phase == ("Halted" if healthy_failures else "Finished")


@pytest.mark.parametrize(
    ("waves", "problems"),
    [
        (("1", "10%", "100%"), 0),
        (("5", "100%"), 0),
        ((), 0),
        (("1", "50%"), 1),
        (("50%", "10%", "100%"), 1),
        (("10%", "10%", "100%"), 1),
    ],
)
def test_waves_must_grow_to_everyone(waves: tuple[str, ...], problems: int) -> None:
    assert len(faults(fleet.rules(*waves))) == problems


def test_the_conditions_of_a_rollout_end_with_it() -> None:
    state = advance(fleet.course(fleet.rules("1", "100%")), None, fleet.claims(3), NOW)

    assert [(condition.type, condition.reason) for condition in conditions_of(state)] == [
        ("Synced", "RollingOut"),
        ("Reconciling", "RollingOut"),
    ]
    assert conditions_of(advance(fleet.course(fleet.rules("100%")), None, [], NOW)) == ()
