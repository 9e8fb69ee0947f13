"""What to change on a database that is there and ours: now, by the cloud's own queue, or later and why. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_never

import msgspec

from providers.external.observation import Change, Class, Observed, Queue, SpecT, describe
from providers.managed.inputs import Inputs
from providers.managed.plan import Plan, Refuse, Rest, Settled, Update, Wait

_LATER = timedelta(minutes=1)
_MOST_NAMED = 5
INTERRUPTING = frozenset({Class.RESTART, Class.LOCKOUT})


def converge(inputs: Inputs[SpecT], observed: Observed[SpecT]) -> Plan:
    """Choose what of the difference is made now."""
    if inputs.refusal is not None:
        return _refused(inputs, *inputs.refusal)
    if not inputs.changes:
        restart = Rest("PendingRestart", observed.restart) if observed.restart else None
        return _unusable(observed, (), None) or restart or Settled()
    known = inputs.marks.converged
    edited = known is None or known.spec_hash != inputs.spec_hash
    if known is not None and not edited and _only_we_changed(inputs):
        text = f"Fairlead's own rules changed, not the database; released by waves: {differences(inputs.changes)}"
        return Rest("TranslatorChanged", text, inputs.changes)
    due = tuple(change for change in inputs.changes if change.veto is None and _due(inputs, change, edited=edited))
    now, in_the_way = _past_the_queue(due, observed.pending)
    now = _in_company(inputs, now)
    held = tuple(change for change in inputs.changes if change not in now)
    losses = tuple(one for one in held if one.kind is Class.LOSS and one.veto is None and not _agreed(inputs, one))
    why = _braked(inputs, held, edited=edited) or _why_held(
        inputs, held, in_the_way, (losses, _given_before(inputs, losses)), edited=edited
    )
    # What is sent now may empty the cloud's queue a little later: nothing is put there before that has settled.
    empties = any(_empties_the_queue(change) for change in now)
    queued = () if empties else tuple(change for change in held if _may_queue(inputs, change))
    if now or queued:
        return Update(now, why, drift=not edited, queued=queued)
    return _unusable(observed, held, why) or why or Settled()


def _refused(inputs: Inputs[SpecT], reason: str, message: str) -> Plan:
    """Hold what the spec asks for; what is guarded whatever it says (logins, grants, owner) is put back still."""
    asked = {field.encode_name for field in msgspec.structs.fields(inputs.target.spec)}
    held = tuple(change for change in inputs.changes if change.path[0] in asked)
    guarded = tuple(change for change in inputs.changes if change not in held)
    now = tuple(change for change in guarded if change.kind is Class.ONLINE and change.veto is None)
    refused = Refuse(reason, message, held=tuple(change for change in inputs.changes if change not in now))
    return Update(now, refused, drift=True) if now else refused


def _unusable(observed: Observed[SpecT], held: tuple[Change, ...], why: Rest | Refuse | Wait | None) -> Refuse | None:
    """Say that nobody can use it although it takes changes, and why those that are left are not made."""
    if observed.usable:
        return None
    text = f"{observed.name} is {observed.state or 'unusable'}; nobody can use it"
    text = f"{text}; {observed.advice}" if observed.advice else text
    return Refuse("DatabaseFailed", f"{text}; {why.message}" if why is not None else text, held)


def _only_we_changed(inputs: Inputs[SpecT]) -> bool:
    known = inputs.marks.converged
    return known is not None and known.translator != inputs.translator and known.observed_hash == inputs.observed_hash


def _in_time(inputs: Inputs[SpecT], change: Change, *, edited: bool) -> bool:
    asked = inputs.apply_now if edited else inputs.correct_drift
    # What the cloud's queue can hold is made by the cloud when its window opens; the rest is sent by our clock.
    return asked or (inputs.window_open and change.queue is Queue.NONE)


def _braked(inputs: Inputs[SpecT], held: tuple[Change, ...], *, edited: bool) -> Refuse | None:
    """Say that it is the brake which holds what would interrupt now."""
    stopped = [one for one in held if one.kind in INTERRUPTING and one.veto is None]
    if not inputs.brake or not any(_in_time(inputs, one, edited=edited) for one in stopped):
        return None
    return Refuse("Brake", inputs.brake, held)


def _due(inputs: Inputs[SpecT], change: Change, *, edited: bool) -> bool:
    if change.queue is Queue.CANCEL:
        return True
    in_time = _in_time(inputs, change, edited=edited) and not inputs.brake
    match change.kind:
        case Class.ONLINE:
            return True
        case Class.RESTART | Class.LOCKOUT:
            return in_time
        case Class.LOSS:
            # What can wait in a queue also interrupts: consent says that it may happen, not that it may happen now.
            return _agreed(inputs, change) and (in_time or change.queue is Queue.NONE)
        case never:
            assert_never(never)


def _agreed(inputs: Inputs[SpecT], change: Change) -> bool:
    return inputs.consent.to(change.shown, describe(change.want))


def _given_before(inputs: Inputs[SpecT], losses: tuple[Change, ...]) -> str:
    texts = (inputs.consent.again(change.shown, describe(change.want)) for change in losses)
    return next(filter(None, texts), "")


def _past_the_queue(due: tuple[Change, ...], pending: tuple[str, ...]) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Leave out what would take along others of the cloud's queue that are not due; return what is in its way."""
    paths = {change.path for change in due}
    others = tuple(sorted(name for name in pending if (name,) not in paths))
    flushing = tuple(change for change in due if _empties_the_queue(change))
    if not others or not flushing:
        return due, ()
    return tuple(change for change in due if change not in flushing), others


def _in_company(inputs: Inputs[SpecT], now: tuple[Change, ...]) -> tuple[Change, ...]:
    """Leave out what goes along with another change that is neither made nor handed to the cloud's queue now."""
    company = {change.path for change in now}
    if not any(_empties_the_queue(change) for change in now):
        company |= {change.path for change in inputs.changes if _may_queue(inputs, change)}
    missing = {change.path for change in inputs.changes} - company
    return tuple(change for change in now if change.along not in missing)


def _empties_the_queue(change: Change) -> bool:
    return change.queue in {Queue.OPEN, Queue.WAITING}


def _may_queue(inputs: Inputs[SpecT], change: Change) -> bool:
    """Tell whether the cloud's queue may have a change that is not made now."""
    if change.queue is not Queue.OPEN or change.veto is not None or inputs.brake:
        return False
    return change.kind is not Class.LOSS or _agreed(inputs, change)


def _why_held(
    inputs: Inputs[Any],
    held: tuple[Change, ...],
    in_the_way: tuple[str, ...],
    to_agree: tuple[tuple[Change, ...], str],
    *,
    edited: bool,
) -> Rest | Refuse | Wait | None:
    losses, given_before = to_agree
    if not held:
        return None
    vetoed = [change.veto for change in held if change.veto is not None]
    waiting = tuple(change for change in held if change.veto is None)
    if in_the_way:
        text = (
            f"{differences(waiting)}; to make it now would also make what waits for the maintenance window:"
            f" {', '.join(in_the_way)}"
        )
        return Wait("PendingChangesInTheWay", text, _LATER, held=held)
    if losses:
        consent = inputs.consent_command(*(f"{change.shown}={describe(change.want)}" for change in losses))
        text = f"{differences(losses)}: this cannot be taken back, or loses data. To agree: {consent}{given_before}"
        return Refuse("HeldChange", text, held)
    if vetoed:
        reason, text = vetoed[0]
        return Wait(reason, text, _LATER, held=held) if reason == "CloudBusy" else Refuse(reason, text, held)
    if edited:
        return Rest("WaitingForWindow", f"waits for the maintenance window: {differences(held)}", held)
    return Rest("DriftHeld", f"waits for the maintenance window or driftPolicy Correct: {differences(held)}", held)


def differences(changes: tuple[Change, ...]) -> str:
    """Say for people what differs, five of them by name."""
    if not changes:
        return "no differences"
    texts = [f"{one.shown} is {describe(one.have)}, wanted {describe(one.want)}" for one in changes[:_MOST_NAMED]]
    more = f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
    return "; ".join(texts) + more
