"""What waits in the cloud's own queue, what a state forbids; and what was sent to an asynchronous cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from providers.credentials.passwords import Keep, Missing
from providers.external.consent import Consent
from providers.external.observation import Change, Class, Converged, ExternalRef, Observed, Present, Queue
from providers.managed.decisions.decide_update import decide_update
from providers.managed.decisions.plan import Plan, Refuse, Rest, Update, Wait
from providers.managed.inputs import Inputs
from providers.managed.summary import summary_of
from tests.providers.managed import test_decide
from tests.providers.managed.test_decide import ADDRESS, NOW, Spec, there

SEEN = replace(there().observed, state="available")
RECORDED = ExternalRef("orders_x", "oid-1", "account-1", Converged(1, "before", "seen", 1))
DRIFTED = replace(RECORDED, converged=Converged(1, "edited", "seen", 1))

STORAGE = Change(("storage",), 40, 20, Class.ONLINE, Queue.OPEN)
CLASS = Change(("class",), "large", "small", Class.RESTART, Queue.OPEN)
QUEUED_CLASS = replace(CLASS, queue=Queue.WAITING)
REVERT = Change(("class",), "small", "large", Class.ONLINE, Queue.CANCEL)
PORT = Change(("port",), 5433, 5432, Class.LOCKOUT)
MAJOR = Change(("version",), "17", "16.4", Class.LOSS, Queue.OPEN)
WINDOW = Change(("window",), "a", "b")
GROUP = Change(("group",), "of-17", "of-16", along=("version",))
DUE = Change(("restart",), "done", "due for a", Class.RESTART, alone=True)
EDITION = Change(("edition",), "b", "a", alone=True)
TIER = Change(("tier",), "b", "a", alone=True)
BUSY = replace(STORAGE, veto=("CloudBusy", "being optimized"))
OLDER = Change(("version",), "15", "16.4", Class.LOSS, Queue.OPEN, ("InvalidValue", "no downgrade"))


AGREED = Consent((("version", "17"),))


@dataclass(frozen=True)
class Case:
    """A difference, what the queue holds, and what follows: made now, handed to the queue, the reason of the rest."""

    changes: tuple[Change, ...]
    now: tuple[Change, ...]
    queued: tuple[Change, ...]
    reason: str
    seen: dict[str, Any]
    inputs: dict[str, Any]


def case(
    changes: tuple[Change, ...],
    now: tuple[Change, ...] = (),
    queued: tuple[Change, ...] = (),
    reason: str = "",
    **others: Any,
) -> Case:
    """Return a case; `pending` and `usable` are of the database that is seen, the rest are inputs of the decision."""
    seen: dict[str, Any] = {name: others.pop(name) for name in ("pending", "usable") if name in others}
    return Case(changes, now, queued, reason, seen, others)


CASES = {
    "a restart waits in the queue": case((CLASS,), queued=(CLASS,), reason="WaitingForWindow"),
    "what waits there is not sent again": case((QUEUED_CLASS,), reason="WaitingForWindow", pending=("class",)),
    "drift that restarts waits there too": case((CLASS,), queued=(CLASS,), reason="DriftHeld", external_ref=DRIFTED),
    "an immediate edit makes what waits": case((QUEUED_CLASS,), (QUEUED_CLASS,), pending=("class",), apply_now=True),
    "growth is made at once": case((STORAGE,), (STORAGE,)),
    "what waits is not handed to a queue that growth is about to empty": case(
        (CLASS, STORAGE), (STORAGE,), reason="WaitingForWindow"
    ),
    "growth does not take others along": case(
        (STORAGE,), queued=(STORAGE,), reason="PendingChangesInTheWay", pending=("class",)
    ),
    "what touches no queue goes beside it": case(
        (STORAGE, WINDOW), (WINDOW,), (STORAGE,), "PendingChangesInTheWay", pending=("class",)
    ),
    "a reverted edit leaves the queue and makes room": case((REVERT, STORAGE), (REVERT, STORAGE), pending=("class",)),
    "an edit that waits stands in the way of growth": case(
        (QUEUED_CLASS, STORAGE), queued=(STORAGE,), reason="PendingChangesInTheWay", pending=("class",)
    ),
    "the window sends what the queue cannot hold": case(
        (PORT, CLASS), (PORT,), (CLASS,), "WaitingForWindow", window_at=NOW
    ),
    "what goes along waits for the same consent": case((GROUP, MAJOR, WINDOW), (WINDOW,), reason="HeldChange"),
    "what goes along is sent with what is handed to the queue": case(
        (GROUP, MAJOR), (GROUP,), (MAJOR,), "WaitingForWindow", consent=AGREED
    ),
    "what goes along is made with what is made now": case(
        (GROUP, MAJOR), (GROUP, MAJOR), consent=AGREED, apply_now=True
    ),
    "what goes along does not go with what empties the queue alone": case(
        (GROUP, MAJOR, STORAGE), (STORAGE,), reason="WaitingForWindow", consent=AGREED
    ),
    "what goes along with a change that is not there goes by itself": case((GROUP,), (GROUP,)),
    "a destroy limit keeps the queue as it is": case(
        (CLASS,), reason="WaitingForWindow", destroy_limit_reached="too many"
    ),
    "a destroy limit is named where something would interrupt now": case(
        (PORT, WINDOW), (WINDOW,), reason="Brake", apply_now=True, destroy_limit_reached="too many"
    ),
    "a loss is neither made nor queued": case((MAJOR,), reason="HeldChange", apply_now=True),
    "an agreed loss that restarts waits in the queue": case(
        (MAJOR,), queued=(MAJOR,), reason="WaitingForWindow", consent=AGREED
    ),
    "an agreed loss is made when asked for now": case((MAJOR,), (MAJOR,), consent=AGREED, apply_now=True),
    "what travels alone follows what may share a request": case(
        (EDITION, WINDOW, PORT), (WINDOW,), reason="WaitingForWindow"
    ),
    "of those that travel alone one is made at a time": case((EDITION, TIER), (EDITION,)),
    "what travels alone is not queued beside another": case((TIER, CLASS), (TIER,), reason="WaitingForWindow"),
    "what the state forbids waits beside the rest": case((BUSY, WINDOW), (WINDOW,), reason="CloudBusy"),
    "what can never be is refused": case((OLDER,), reason="InvalidValue"),
    "a restart that is due waits for the window alone": case((DUE,), reason="PendingRestart", correct_drift=True),
    "a restart that is due is no drift": case((DUE,), (DUE,), apply_now=True, external_ref=DRIFTED),
    "nobody can use it and nothing is left to do": case((), reason="DatabaseFailed", usable=False),
    "nobody can use it and a change may help": case((STORAGE,), (STORAGE,), usable=False),
    "nobody can use it and what is left does not help": case((BUSY,), reason="DatabaseFailed", usable=False),
}


def inputs(
    observed: Observed[Spec, Any],
    external_ref: ExternalRef = RECORDED,
    changes: tuple[Change, ...] = (),
    **changed: Any,
) -> Inputs[Spec]:
    whole: dict[str, Any] = {"spec_hash": "edited", "generation": 2, "changes": changes, **changed}
    return test_decide.inputs(Present(observed), external_ref, **whole)


def _reason(plan: Plan) -> str:
    match plan:
        case Update(held=Rest() | Refuse() | Wait() as held):
            return held.reason
        case Rest(reason=reason) | Refuse(reason=reason) | Wait(reason=reason):
            return reason
        case _:
            return ""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_decide_update_returns_what_is_made_and_what_waits(case: Case) -> None:
    seen = replace(SEEN, **case.seen)
    plan = decide_update(inputs(seen, changes=case.changes, **case.inputs), seen)
    made = (plan.changes, plan.queued) if isinstance(plan, Update) else ((), ())
    assert (made, _reason(plan)) == ((case.now, case.queued), case.reason)


def test_password_that_nobody_knows_is_said_before_what_waits() -> None:
    unknown = replace(inputs(SEEN), step=Missing())
    waits = Rest("WaitingForWindow", "waits", (PORT,))
    summaries = [summary_of(unknown, plan) for plan in (waits, Update((), waits))]
    assert [(summary.reason, summary.held) for summary in summaries] == [("PasswordUnknown", (PORT,))] * 2
    assert f"`kubectl patch {ADDRESS} --type=merge -p " in summaries[0].message
    refused = Refuse("HeldChange", "loses data", (PORT,))
    assert summary_of(unknown, refused).reason == "HeldChange"
    assert summary_of(replace(unknown, step=Keep()), waits).reason == "WaitingForWindow"
