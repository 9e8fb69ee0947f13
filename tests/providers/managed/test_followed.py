"""What is waited for, and how: by lists where they show it, by looks where they do not, until a window opens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from providers.credentials.passwords import Await, Keep
from providers.external.observation import ExternalRef, Phase
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Create, Delete, Plan, Refuse, RemoveFinalizer, Rest, Settled, Update, Wait
from providers.managed.decisions.requeue import is_followed, until_window
from tests.providers.managed.test_decide import GONE, NOW, ONLINE, RECORDED, RESTART, inputs, there

SOON, AT_LAST = timedelta(seconds=5), timedelta(minutes=10)
BUSY = there(phase=Phase.BUSY)
SHUT = replace(BUSY, observed=replace(BUSY.observed, usable=False))
WAITS: dict[str, tuple[Any, dict[str, Any], timedelta]] = {
    "without lists it is looked at every few seconds": (BUSY, {}, SOON),
    "lists show its end": (BUSY, {"listed": True}, AT_LAST),
    "lists show the end of a creation": (
        BUSY, {"listed": True, "eventual": True, "external_ref": ExternalRef()}, AT_LAST
    ),
    "a password that was sent is tried by logins meanwhile": (BUSY, {"listed": True, "step": Await()}, SOON),
    "nobody can log in meanwhile": (SHUT, {"listed": True, "step": Await()}, AT_LAST),
}  # fmt: skip


@pytest.mark.parametrize("case", WAITS)
def test_cloud_at_work_is_waited_for(case: str) -> None:
    observation, changed, after = WAITS[case]
    changed = {"external_ref": RECORDED, **changed}
    plan = decide(inputs(observation, **changed)).plan
    assert isinstance(plan, Wait)
    assert plan.after == after


FOLLOWED: dict[str, tuple[Plan, dict[str, Any], bool]] = {
    "what waits for a list": (Wait("CloudBusy", "busy", SOON, by_list=AT_LAST), {}, True),
    "what waits for something else": (Wait("CloudBusy", "busy", SOON), {}, False),
    "what was just created": (Create(), {"eventual": True}, True),
    "what was just deleted": (Delete(Policy.DELETE), {"eventual": True}, True),
    "what is created at once": (Create(), {"eventual": False}, False),
    "a password on its way": (Settled(), {"step": Await()}, True),
    "what is in sync": (Settled(), {"step": Keep()}, False),
    "what is refused": (Refuse("InvalidValue", "no"), {}, False),
    "an operation is polled by itself": (Wait("CloudBusy", "busy", SOON, by_list=AT_LAST), {"operating": "x"}, False),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_resource_is_followed_by_lists(case: str) -> None:
    plan, changed, expected = FOLLOWED[case]
    assert is_followed(inputs(there(), listed=True, **changed), plan) is expected
    assert not is_followed(inputs(there(), listed=False, **changed), plan)


@pytest.mark.parametrize(("unlisted", "plan"), [(True, RemoveFinalizer), (False, Wait)])
def test_our_deletion_is_over_when_a_list_lacks_it_as_well(*, unlisted: bool, plan: type[Plan]) -> None:
    deleting: dict[str, Any] = {"deleting": True, "policy": Policy.DELETE, "delete_intended": True}
    decision = decide(inputs(GONE, eventual=True, unlisted=unlisted, **deleting))
    assert isinstance(decision.plan, plan)


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
