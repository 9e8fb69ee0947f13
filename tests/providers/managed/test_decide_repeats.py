"""What was tried before is part of the one decision, and how what is under way is waited for: by lists, by looks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from providers.credentials.passwords import Await, Introduce, Keep
from providers.external.observation import Change, Class
from providers.managed.decisions.attempts import MOST_TRIES, Attempts, InFlight, Postponed, Rejected, Try
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Create, Delete, Plan, Refuse, RemoveFinalizer, Rest, Settled, Update, Wait
from providers.managed.decisions.requeue import is_followed, until_window
from providers.managed.inputs import Inputs
from providers.managed.outcome import work_digest
from tests.providers.managed.test_decide import FRESH, GONE, NOW, ONLINE, RESTART, Row, Spec, inputs, there

OBJECT: Any = {"kind": "Toy", "metadata": {"name": "db", "namespace": "team", "uid": "uid-1"}}
OPERATION: Any = {"id": "operation-1", "kind": "Update", "startedAt": "2026-11-21T11:57:00Z"}
CARRIED_OUT: Any = {**OBJECT, "status": {"operation": OPERATION}}
SIZE = Change(("size",), 3, 2, Class.ONLINE)
UPDATE = Update((SIZE,))
LATER, BEFORE = NOW + timedelta(seconds=10), NOW - timedelta(seconds=1)
SENT = Attempts(in_flight=InFlight({("size",): Try(3, deferred=False, at=BEFORE, count=1)}))
SETTLE = timedelta(seconds=60)
LONG_AGO = NOW - timedelta(minutes=3)
SENT_LONG_AGO = Attempts(in_flight=InFlight({("size",): Try(3, deferred=False, at=LONG_AGO, count=1)}))
NEVER_SHOWN = Attempts(
    in_flight=InFlight({("size",): Try(3, deferred=False, at=NOW - timedelta(minutes=2), count=MOST_TRIES)})
)
NEW = Introduce("app", "secret-password")


def differing(**changed: Any) -> Inputs[Spec]:
    return inputs(there(), changes=(SIZE,), obj=OBJECT, **changed)


def rejected(facts: Inputs[Spec], refusal: tuple[str, str] | None, until: Any = LATER) -> Inputs[Spec]:
    return replace(facts, attempts=Attempts(rejected=Rejected(work_digest(facts, UPDATE), until, refusal)))


def postponed(facts: Inputs[Spec], plan: Any, reason: str) -> Inputs[Spec]:
    held = Postponed(work_digest(facts, plan), LATER, timedelta(seconds=10), reason, "not now")
    return replace(facts, attempts=Attempts(postponed=held))


ROWS: dict[str, Row] = {
    "a password in trouble begins no database": Row(
        inputs(GONE, FRESH, obj=OBJECT, password_problem=("SecretNotFound", "none")),
        Refuse,
        {"reason": "SecretNotFound"},
    ),
    "what was just created is waited for": Row(
        inputs(GONE, FRESH, obj=OBJECT, eventual=True, attempts=Attempts(created=("uid-1", BEFORE))),
        Wait,
        {"reason": "Creating"},
    ),
    "what was created for another object is made": Row(
        inputs(GONE, FRESH, obj=OBJECT, eventual=True, attempts=Attempts(created=("uid-0", BEFORE))), Create, {}
    ),
    "what was just sent is waited for": Row(differing(eventual=True, attempts=SENT), Wait, {"reason": "CloudBusy"}),
    "what an operation carried out until now is waited for from its end on": Row(
        replace(differing(eventual=True, attempts=SENT_LONG_AGO), obj=CARRIED_OUT),
        Wait,
        {"reason": "CloudBusy", "by_list": SETTLE},
    ),
    "what was sent long ago and has no operation is sent again": Row(
        differing(eventual=True, attempts=SENT_LONG_AGO), Update, {}
    ),
    "what an operation created until now is waited for from its end on": Row(
        inputs(GONE, FRESH, obj=CARRIED_OUT, eventual=True, attempts=Attempts(created=("uid-1", LONG_AGO))),
        Wait,
        {"reason": "Creating", "by_list": SETTLE},
    ),
    "what never shows is refused": Row(
        differing(eventual=True, attempts=NEVER_SHOWN), Refuse, {"reason": "InvalidValue", "held": (SIZE,)}
    ),
    "what was rejected is refused as it was": Row(
        rejected(differing(), ("UnsupportedVersion", "no")), Refuse, {"reason": "UnsupportedVersion"}
    ),
    "what did not take is refused": Row(rejected(differing(), None), Refuse, {"reason": "AccessDenied"}),
    "what was rejected long ago is sent again": Row(rejected(differing(), None, BEFORE), Update, {}),
    "what the state forbade waits for its time": Row(
        postponed(differing(), UPDATE, "CloudBusy"), Wait, {"after": timedelta(seconds=10)}
    ),
    "a refused password alone is not sent again": Row(
        postponed(inputs(there(), obj=OBJECT, step=NEW), Refuse("", ""), "InvalidPassword"),
        Refuse,
        {"reason": "InvalidPassword"},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_decide_leaves_out_repeats(row: Row) -> None:
    decision = decide(row.inputs)

    assert type(decision.plan) is row.plan, decision
    assert {key: getattr(decision.plan, key) for key in row.holds} == row.holds
    assert decision.step == Keep()


def test_a_look_that_shows_nothing_forgets_nothing_that_was_sent() -> None:
    facts = inputs(GONE, FRESH, obj=OBJECT, eventual=True, attempts=SENT)
    assert decide(facts).attempts.in_flight == SENT.in_flight


SOON, AT_LAST = timedelta(seconds=5), timedelta(minutes=10)
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


HOURS_LATER = timedelta(hours=7)
WAITING = Rest("WaitingForWindow", "waits", (RESTART,))
WINDOWS: dict[str, tuple[Plan, timedelta | None, timedelta | None]] = {
    "an edit waits until it opens": (WAITING, HOURS_LATER, HOURS_LATER),
    "drift waits until it opens": (Rest("DriftHeld", "waits", (RESTART,)), HOURS_LATER, HOURS_LATER),
    "what waits beside what is made now": (Update((ONLINE,), WAITING), HOURS_LATER, HOURS_LATER),
    "without a window nothing is waited for": (WAITING, None, None),
    "an open window is waited for no longer": (WAITING, timedelta(), None),
    "what is in sync waits for none": (Settled(), HOURS_LATER, None),
    "a pause waits for none": (Rest("Paused", "paused"), HOURS_LATER, None),
    "a refusal waits for none": (Refuse("HeldChange", "held"), HOURS_LATER, None),
    "a cloud at work waits for none": (Wait("CloudBusy", "busy", HOURS_LATER), HOURS_LATER, None),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_window_is_waited_for(case: str) -> None:
    plan, opens_in, expected = WINDOWS[case]
    window_at = None if opens_in is None else NOW + opens_in
    assert until_window(replace(inputs(there()), window_at=window_at), plan) == expected
