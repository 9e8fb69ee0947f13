"""What waits for a maintenance window is reconciled when it opens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from providers.managed.decisions.plan import Plan, Refuse, Rest, Settled, Update, Wait
from providers.managed.decisions.requeue import until_window
from tests.providers.managed.test_decide import NOW, ONLINE, RESTART, inputs, there

LATER = timedelta(hours=7)
WAITING = Rest("WaitingForWindow", "waits", (RESTART,))
CASES: dict[str, tuple[Plan, timedelta | None, timedelta | None]] = {
    "an edit waits until it opens": (WAITING, LATER, LATER),
    "drift waits until it opens": (Rest("DriftHeld", "waits", (RESTART,)), LATER, LATER),
    "what waits beside what is made now": (Update((ONLINE,), WAITING), LATER, LATER),
    "without a window nothing is waited for": (WAITING, None, None),
    "an open window is waited for no longer": (WAITING, timedelta(), None),
    "what is in sync waits for none": (Settled(), LATER, None),
    "a pause waits for none": (Rest("Paused", "paused"), LATER, None),
    "a refusal waits for none": (Refuse("HeldChange", "held"), LATER, None),
    "a cloud at work waits for none": (Wait("CloudBusy", "busy", LATER), LATER, None),
}


@pytest.mark.parametrize("case", CASES)
def test_window_is_waited_for(case: str) -> None:
    plan, opens_in, expected = CASES[case]
    window_at = None if opens_in is None else NOW + opens_in
    assert until_window(replace(inputs(there()), window_at=window_at), plan) == expected
