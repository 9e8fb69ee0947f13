"""What of a plan is not sent again now: the refused, the ineffective, the accepted of a moment ago. Pure."""

from __future__ import annotations

from datetime import timedelta

from providers.credentials.passwords import Keep
from providers.external.observation import SpecT
from providers.managed.decisions.attempts import BAD_PASSWORD, InFlight
from providers.managed.decisions.decide_update import describe_changes
from providers.managed.decisions.plan import Create, Plan, Refuse, Update, Wait
from providers.managed.inputs import Decision, Inputs
from providers.managed.outcome import calls_of, work_digest
from providers.managed.record import is_reconcile_requested, operation_of
from runtime.objects import uid_of
from runtime.replaced import replace

_SETTLING = timedelta(seconds=5)


def without_repeats(inputs: Inputs[SpecT], plan: Plan) -> Decision:
    """Leave out of a pass what is not to be sent now, or not again, the password's step included."""
    attempts = inputs.attempts
    if inputs.eventual and operation_of(inputs.obj) is not None:
        # What has just failed does not come any more.
        is_coming = inputs.operation_failed is None
        attempts = attempts.while_carried_out(inputs.now) if is_coming else replace(attempts, created=None)
        inputs = replace(inputs, attempts=attempts)
    if inputs.turn_of and calls_of(inputs, plan):
        text = f"server {inputs.server} carries out a change of {inputs.turn_of}, and takes one at a time"
        return Decision(Wait("CloudBusy", text, _SETTLING), Keep(), attempts)
    if inputs.eventual and isinstance(plan, Create):
        plan = _without_second_create(inputs, plan)
    if inputs.eventual and inputs.observed is not None:
        is_sent_anew = is_reconcile_requested(inputs.obj) or inputs.operation_failed is not None
        known = InFlight() if is_sent_anew and isinstance(plan, Update) else attempts.in_flight
        attempts = replace(attempts, in_flight=known.still_differing(inputs.changes, inputs.now))
    if inputs.eventual and isinstance(plan, Update):
        plan = _without_in_flight(inputs, plan, attempts.in_flight)
    plan = _without_rejected(inputs, plan)
    if inputs.operation_failed is not None and calls_of(inputs, plan):
        # What is decided just after an operation failed is the work that it was for.
        work = work_digest(inputs, plan)
        attempts = attempts.after_failed_operation(work, plan, inputs.operation_failed, inputs.now)
        inputs = replace(inputs, attempts=attempts)
    postponed = _postponed(inputs, plan)
    if postponed is None:
        return Decision(plan, inputs.step, attempts)
    if calls_of(replace(inputs, step=Keep()), plan):
        return Decision(postponed, inputs.step, attempts)
    # The password's step alone was refused.
    return Decision(postponed, Keep(), attempts)


def _without_second_create(inputs: Inputs[SpecT], plan: Create) -> Create | Wait:
    """Wait until the cloud shows what was just created."""
    uid, at = inputs.attempts.created or ("", inputs.now)
    if uid != uid_of(inputs.obj) or inputs.now - at >= inputs.settle:
        return plan
    text = "the database is being made; the cloud does not show it yet"
    return Wait("Creating", text, _SETTLING, by_list=inputs.settle - (inputs.now - at))


def _without_in_flight(inputs: Inputs[SpecT], plan: Update, in_flight: InFlight) -> Plan:
    """Leave out what a cloud accepted lately, and what it accepts and never shows."""
    sendable = in_flight.sendable(plan, inputs.now, inputs.settle)
    if sendable.plan.changes or sendable.plan.queued:
        return sendable.plan
    if sendable.ineffective:
        text = (
            f"the cloud accepts these and never shows them: {describe_changes(sendable.ineffective)}; nothing is sent"
            " again for six hours, unless the spec changes or a reconcile is requested"
        )
        return Refuse("InvalidValue", text, sendable.ineffective)
    if plan.held is not None and not isinstance(plan.held, Wait):
        return plan.held
    paths = ", ".join(sendable.waiting)[:300]
    text = f"the cloud accepted the change and does not show it yet: {paths}"
    return Wait("CloudBusy", text, _SETTLING, by_list=in_flight.settles_in(inputs.now, inputs.settle))


def _without_rejected(inputs: Inputs[SpecT], plan: Plan) -> Plan:
    """Refuse what the cloud refused, or accepted and did not carry out, until it is due again."""
    known = inputs.attempts.rejected
    if not isinstance(plan, Create | Update) or known is None or inputs.now >= known.until:
        return plan
    if known.work != work_digest(inputs, plan):
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
    if known is None or inputs.now >= known.until or known.work != work_digest(inputs, plan):
        return None
    if known.is_failed and inputs.operation_failed is None and is_reconcile_requested(inputs.obj):
        # A person may know that what made it fail is mended.
        return None
    if known.reason == BAD_PASSWORD or known.is_failed:
        return Refuse(known.reason, known.message)
    return Wait(known.reason, known.message, known.until - inputs.now)
