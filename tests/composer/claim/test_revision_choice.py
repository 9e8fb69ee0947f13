"""Which revision a claim takes while a newer one goes from wave to wave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from composer.causes import Cause
from composer.claim.selection import ClaimState, choose_revision, is_rollback
from composer.composition.revision import Revision
from composer.composition.rollout_claims import rank_of
from composer.models import RolloutStatus

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OLD, NEW = "c-old", "c-new"

WITH_WAVES = {"rollout": {"waves": ["1", "100%"]}}
_IDENTITY = "uid@shop/orders"
_PLACE = rank_of(_IDENTITY, NEW)


def _revision(name: str, number: int, phase: str = "", **fields: Any) -> Revision:
    if not phase:
        return Revision(name, number, "c", WITH_WAVES)
    state = msgspec.convert({"revision": number, "phase": phase, **fields}, RolloutStatus)
    return Revision(name, number, "c", WITH_WAVES, state)


FINISHED = _revision(OLD, 1, "Finished")


class Choice(msgspec.Struct, frozen=True):
    """A claim's standing, and what the revisions give it: one of them, or the reason why it stays as it is."""

    newest: Revision
    gives: str
    state: ClaimState = ClaimState(_IDENTITY, OLD, "", is_well=True)
    known: tuple[Revision, ...] = (FINISHED,)


IN_WAVE = _revision(NEW, 2, "Progressing", through=_PLACE)
BEFORE_WAVE = _revision(NEW, 2, "Progressing", through="0" * 16)
LAST_WAVE = _revision(NEW, 2, "Progressing", through="f" * 16, everyone=True)
FINISHED_NEW, HALTED = (_revision(NEW, 2, phase) for phase in ("Finished", "Halted"))
BAD = _revision("c-bad", 2, "Reverted")
GONE = ClaimState(_IDENTITY, "c-gone", has_children=True)
WELL_AND_GONE = ClaimState(_IDENTITY, "c-gone", is_well=True, has_children=True)
LATE = ClaimState(_IDENTITY, OLD, "", is_well=True, since=NOW + MINUTE)
CHOICES = {
    "a finished one is everybody's": Choice(FINISHED_NEW, NEW),
    "one whose rollout has not begun moves nobody": Choice(_revision(NEW, 2), OLD),
    "a claim in the wave moves": Choice(IN_WAVE, NEW),
    "a claim that came after the wave was opened stays": Choice(
        _revision(NEW, 2, "Progressing", through="f" * 16, opened="2026-11-21T12:00:00Z"), OLD, LATE
    ),
    "a claim before the wave stays": Choice(BEFORE_WAVE, OLD),
    "a claim that is ill stays until the last wave": Choice(IN_WAVE, OLD, ClaimState(_IDENTITY, OLD)),
    "in the last wave it moves": Choice(LAST_WAVE, NEW, ClaimState(_IDENTITY, OLD)),
    "after a halt nobody moves": Choice(_revision(NEW, 2, "Halted", through="f" * 16, everyone=True), OLD),
    "after a halt who has it keeps it": Choice(
        _revision(NEW, 2, "Halted", through=_PLACE), NEW, ClaimState(_IDENTITY, NEW, OLD)
    ),
    "after a rollback who has it goes back to its own": Choice(
        _revision(NEW, 3, "Reverted"),
        "c-mid",
        ClaimState(_IDENTITY, NEW, "c-mid"),
        (FINISHED, _revision("c-mid", 2, "Halted")),
    ),
    "after a rollback without a memory it takes the last that finished": Choice(
        _revision(NEW, 2, "Reverted"), OLD, ClaimState(_IDENTITY, NEW)
    ),
    "a new claim takes the last that finished": Choice(LAST_WAVE, OLD, ClaimState(_IDENTITY)),
    "a new claim takes the newest where none finished": Choice(
        _revision(NEW, 2, "Progressing"), NEW, ClaimState(_IDENTITY), (_revision(OLD, 1, "Halted"),)
    ),
    "a state of an earlier number is none": Choice(
        Revision(NEW, 3, "c", WITH_WAVES, RolloutStatus(revision=1, phase="Finished")), OLD
    ),
    "without waves it is everybody's at once": Choice(Revision(NEW, 2, "c", {}), NEW),
    "a claim whose revision is gone takes the last that finished": Choice(
        HALTED, OLD, ClaimState(_IDENTITY, "c-pruned")
    ),
    "a claim whose revision is gone stays as it is with all that was composed": Choice(
        HALTED, "RevisionNotFound", GONE, ()
    ),
    "it goes to no other one, though that has finished": Choice(_revision(NEW, 3, "Halted"), "RevisionNotFound", GONE),
    "it does not follow a rollout that has not come to it": Choice(BEFORE_WAVE, "RevisionNotFound", WELL_AND_GONE, ()),
    "it goes with its wave": Choice(IN_WAVE, NEW, WELL_AND_GONE, ()),
    "it follows a newer one that has finished": Choice(FINISHED_NEW, NEW, GONE, ()),
    "a claim that lost its status stays where no revision is known to be good": Choice(
        _revision(NEW, 2), "RevisionNotFound", ClaimState(_IDENTITY, has_children=True), (_revision(OLD, 1),)
    ),
    "a claim that lost its status takes the only revision that there is": Choice(
        _revision(NEW, 2), NEW, ClaimState(_IDENTITY, has_children=True), ()
    ),
    "a claim that lost its status takes the last that finished": Choice(
        HALTED, OLD, ClaimState(_IDENTITY, has_children=True)
    ),
    "a new claim takes none that is stopped": Choice(HALTED, "RevisionNotFound", ClaimState(_IDENTITY), ()),
    "who had not gone back yet goes back, also when a newer one is under way": Choice(
        _revision(NEW, 3, "Progressing", through="0" * 16),
        OLD,
        ClaimState(_IDENTITY, "c-bad", OLD, is_well=True),
        (FINISHED, BAD),
    ),
    "who had not gone back yet goes back, also when a newer one is halted": Choice(
        _revision(NEW, 3, "Halted", through="f" * 16, everyone=True),
        OLD,
        ClaimState(_IDENTITY, "c-bad", OLD),
        (FINISHED, BAD),
    ),
    "who had not gone back yet goes with its wave of a newer one": Choice(
        _revision(NEW, 3, "Progressing", through=_PLACE),
        NEW,
        ClaimState(_IDENTITY, "c-bad", OLD, is_well=True),
        (FINISHED, BAD),
    ),
    "nobody goes back to another one that was rolled back": Choice(
        _revision(NEW, 3, "Reverted"), OLD, ClaimState(_IDENTITY, NEW, "c-bad"), (FINISHED, BAD)
    ),
    "who has nothing to go back to stays": Choice(
        _revision(NEW, 3, "Progressing", through="0" * 16), "c-bad", ClaimState(_IDENTITY, "c-bad", "c-gone"), (BAD,)
    ),
    "who joins the last wave after it was opened stays": Choice(
        _revision(NEW, 2, "Progressing", through="f" * 16, everyone=True, opened="2026-11-21T12:00:00Z"), OLD, LATE
    ),
}


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES)
def test_the_revision_of_a_claim_during_a_rollout_follows_its_state(case: Choice) -> None:
    chosen = choose_revision("c", "", (*case.known, case.newest), state=case.state)

    assert (chosen.reason if isinstance(chosen, Cause) else chosen.name) == case.gives


def test_a_rollback_is_recognized() -> None:
    rolled, state = _revision(NEW, 2, "Reverted"), ClaimState(_IDENTITY, NEW, OLD)
    again = _revision(OLD, 3, "Progressing")

    assert is_rollback(FINISHED, (FINISHED, rolled), state)
    assert is_rollback(again, (again, rolled), state)  # its content was published again
    assert not is_rollback(FINISHED, (FINISHED, _revision(NEW, 2, "Halted")), state)
    assert not is_rollback(rolled, (FINISHED, rolled), ClaimState(_IDENTITY, OLD))
