"""What the composer remembers of fields that it took back: per object, and not for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from composer.claim.field_conflicts import WINDOW, Conflict, Memory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TAKEN = Conflict("spec.size", "kubectl-edit", by_hand=False)
PLACE = (TAKEN.field, TAKEN.manager)


def test_conflicts_are_counted_per_object_field_and_manager() -> None:
    memory = Memory()
    rival = Conflict("spec.size", "autoscaler", by_hand=False)
    memory.took_back("one", (TAKEN,), NOON)
    memory.took_back("one", (TAKEN, rival), NOON + timedelta(minutes=1))
    memory.took_back("other", (TAKEN,), NOON + timedelta(minutes=2))

    assert memory.conflicts_before("one") == {
        PLACE: [NOON, NOON + timedelta(minutes=1)],
        (rival.field, rival.manager): [NOON + timedelta(minutes=1)],
    }
    assert memory.conflicts_before("other") == {PLACE: [NOON + timedelta(minutes=2)]}
    assert memory.conflicts_before("nobody") == {}

    memory.forget_conflicts({"one", "nobody"})

    assert memory.conflicts_before("one") == {}
    assert memory.conflicts_before("other") != {}


def test_an_object_without_a_recent_conflict_is_forgotten() -> None:
    memory = Memory()
    memory.took_back("early", (TAKEN,), NOON)
    memory.took_back("late", (TAKEN,), NOON + WINDOW / 2)
    memory.took_back("none", (), NOON + WINDOW)

    assert memory.conflicts_before("early") == {}
    assert memory.conflicts_before("late") != {}

    memory.took_back("late", (TAKEN,), NOON + 2 * WINDOW)

    assert memory.conflicts_before("late") == {PLACE: [NOON + 2 * WINDOW]}
