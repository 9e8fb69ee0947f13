"""What of a plan is not sent again now: what was refused, what never shows, what was accepted a moment ago. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from providers.credentials.passwords import Keep
from providers.external.observation import SpecT
from providers.managed.attempts import BAD_PASSWORD, InFlight
from providers.managed.decide_update import differences
from providers.managed.inputs import Decision, Inputs
from providers.managed.outcome import calls_of, work_of
from providers.managed.plan import Create, Plan, Refuse, Update, Wait
from providers.managed.record import asked_anew
from runtime.objects import uid_of

_SETTLING = timedelta(seconds=5)


def without_repeats(inputs: Inputs[SpecT], plan: Plan) -> Decision:
    """Leave out of a pass what is not to be sent again now, the password's step included."""
    attempts = inputs.attempts
    if inputs.eventual and isinstance(plan, Create):
        plan = _not_made_again(inputs, plan)
    if inputs.eventual and isinstance(plan, Update):
        known = InFlight() if asked_anew(inputs.obj) else attempts.in_flight
        in_flight = known.still_differing(inputs.changes, inputs.now, inputs.settle)
        attempts = replace(attempts, in_flight=in_flight)
        plan = _not_sent_again(inputs, plan, in_flight)
    plan = _not_rejected(inputs, plan)
    postponed = _postponed(inputs, plan)
    if postponed is None:
        return Decision(plan, inputs.step, attempts)
    if calls_of(replace(inputs, step=Keep()), plan):
        return Decision(postponed, inputs.step, attempts)
    # The password's step alone was refused.
    return Decision(postponed, Keep(), attempts)


def _not_made_again(inputs: Inputs[SpecT], plan: Create) -> Create | Wait:
    """Wait for what was just made to be shown."""
    uid, at = inputs.attempts.created or ("", inputs.now)
    if uid != uid_of(inputs.obj) or inputs.now - at >= inputs.settle:
        return plan
    return Wait("Creating", "the database is being made; the cloud does not show it yet", _SETTLING)


def _not_sent_again(inputs: Inputs[SpecT], plan: Update, in_flight: InFlight) -> Plan:
    """Leave out what a cloud accepted lately, and what it accepts and never shows."""
    sifted = in_flight.sift(plan, inputs.now, inputs.settle)
    if sifted.plan.changes or sifted.plan.queued:
        return sifted.plan
    if sifted.ineffective:
        text = (
            f"the cloud accepts these and never shows them: {differences(sifted.ineffective)}; nothing is sent again"
            " until the spec or what is seen changes"
        )
        return Refuse("InvalidValue", text, sifted.ineffective)
    if plan.held is not None and not isinstance(plan.held, Wait):
        return plan.held
    paths = ", ".join(sifted.waiting)[:300]
    return Wait("CloudBusy", f"the cloud accepted the change and does not show it yet: {paths}", _SETTLING)


def _not_rejected(inputs: Inputs[SpecT], plan: Plan) -> Plan:
    """Do not repeat for ever what the cloud refuses, or accepts and does not carry out."""
    known = inputs.attempts.rejected
    if not isinstance(plan, Create | Update) or known is None or inputs.now >= known.until:
        return plan
    if known.work != work_of(inputs, plan):
        return plan
    if known.refusal is not None:
        return Refuse(*known.refusal)
    paths = ", ".join(change.shown for change in plan.changes) if isinstance(plan, Update) else ""
    return Refuse(
        "AccessDenied",
        f"these stay as they are although they were put back: {paths[:300]}; who granted them must take them back",
        plan.changes if isinstance(plan, Update) else (),
    )


def _postponed(inputs: Inputs[SpecT], plan: Plan) -> Plan | None:
    """Return what to do in the place of work that was refused for now; None where nothing of the plan was."""
    known = inputs.attempts.postponed
    if known is None or inputs.now >= known.until or known.work != work_of(inputs, plan):
        return None
    if known.reason == BAD_PASSWORD:
        return Refuse(known.reason, known.message)
    return Wait(known.reason, known.message, known.until - inputs.now)
