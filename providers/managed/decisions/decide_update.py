"""What to change on a database that is there and ours: now, by the cloud's own queue, or later and why. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_never

import msgspec

from providers.external.observation import RESTART, Change, Class, Observed, Queue, SpecT, describe
from providers.managed.decisions.plan import Plan, Refuse, Rest, Settled, Update, Wait
from providers.managed.inputs import Inputs

_LATER = timedelta(minutes=1)
_MOST_NAMED = 5
INTERRUPTING = frozenset({Class.RESTART, Class.LOCKOUT})


def decide_update(inputs: Inputs[SpecT], observed: Observed[SpecT, Any]) -> Plan:
    """Choose what of the difference is made now, and what waits."""
    if inputs.refusal is not None:
        return _refused(inputs, *inputs.refusal)
    if not inputs.changes:
        restart = Rest("PendingRestart", observed.restart) if observed.restart else None
        return _unusable(observed, (), None) or restart or Settled()
    converged = inputs.external_ref.converged
    edited = converged is None or converged.spec_hash != inputs.spec_hash
    if converged is not None and not edited and _is_projection_change(inputs):
        text = f"Fairlead's own rules changed, not the database; released by waves: {describe_changes(inputs.changes)}"
        return Rest("TranslatorChanged", text, inputs.changes)
    due = tuple(change for change in inputs.changes if change.veto is None and is_due(inputs, change, edited=edited))
    now, in_the_way = _without_queue_flushes(due, observed.pending)
    sendable = _with_companions(inputs, now)
    now = _in_one_request(sendable)
    # What follows in a request of its own waits for nothing but this one.
    held = tuple(change for change in inputs.changes if change not in sendable)
    losses = tuple(
        change
        for change in held
        if change.kind is Class.LOSS and change.veto is None and not is_consented(inputs, change)
    )
    cause = _destroy_limit(inputs, held, edited=edited) or _cause_of_hold(
        inputs, held, in_the_way, (losses, _used_consent(inputs, losses)), edited=edited
    )
    # What is sent now may empty the cloud's queue a little later: nothing is queued before that has settled.
    empties = any(_empties_the_queue(change) for change in now)
    queued = () if empties else tuple(change for change in held if _may_queue(inputs, change))
    queued = _in_one_request(queued, sent=now)
    if now or queued:
        return Update(now, cause, drift=not edited, queued=queued)
    return _unusable(observed, held, cause) or cause or Settled()


def _refused(inputs: Inputs[SpecT], reason: str, message: str) -> Plan:
    """Hold what the spec asks for; invariants (logins, grants, owner) are corrected in any case."""
    fields = {field.encode_name for field in msgspec.structs.fields(inputs.target.spec)}
    held = tuple(change for change in inputs.changes if change.path[0] in fields)
    invariants = tuple(change for change in inputs.changes if change not in held)
    now = _in_one_request(tuple(change for change in invariants if change.kind is Class.ONLINE and change.veto is None))
    refused = Refuse(reason, message, held=tuple(change for change in inputs.changes if change not in now))
    return Update(now, refused, drift=True) if now else refused


def _unusable(
    observed: Observed[SpecT, Any], held: tuple[Change, ...], cause: Rest | Refuse | Wait | None
) -> Refuse | None:
    """Refuse where nobody can use it although it takes changes, with the cause that holds those that are left."""
    if observed.usable:
        return None
    text = f"{observed.name} is {observed.state or 'unusable'}; nobody can use it"
    text = f"{text}; {observed.remedy}" if observed.remedy else text
    return Refuse("DatabaseFailed", f"{text}; {cause.message}" if cause is not None else text, held)


def _is_projection_change(inputs: Inputs[SpecT]) -> bool:
    """Return whether Fairlead reads the same answer of the cloud otherwise than before, and nothing else changed."""
    converged = inputs.external_ref.converged
    if converged is None or converged.projection == inputs.projection:
        return False
    return converged.observed_hash == inputs.observed_hash


def _in_time(inputs: Inputs[SpecT], change: Change, *, edited: bool) -> bool:
    is_immediate = inputs.apply_now if edited or change.path == RESTART else inputs.correct_drift
    # What the cloud's queue can hold is made by the cloud when its window opens; the rest is sent by our clock.
    return is_immediate or (inputs.window_open and change.queue is Queue.NONE)


def _destroy_limit(inputs: Inputs[SpecT], held: tuple[Change, ...], *, edited: bool) -> Refuse | None:
    """Refuse what would interrupt now, where the destroy rate limit holds it."""
    interrupting = [change for change in held if change.kind in INTERRUPTING and change.veto is None]
    if not inputs.destroy_limit_reached or not any(_in_time(inputs, change, edited=edited) for change in interrupting):
        return None
    return Refuse("Brake", inputs.destroy_limit_reached, held)


def is_due(inputs: Inputs[SpecT], change: Change, *, edited: bool) -> bool:
    """Return whether a change is made now; one that was not `edited` is drift."""
    if change.queue is Queue.CANCEL:
        return True
    in_time = _in_time(inputs, change, edited=edited) and not inputs.destroy_limit_reached
    match change.kind:
        case Class.ONLINE:
            return True
        case Class.RESTART | Class.LOCKOUT:
            return in_time
        case Class.LOSS:
            # What can wait in a queue also interrupts: consent allows it to happen, not to happen now.
            return is_consented(inputs, change) and (in_time or change.queue is Queue.NONE)
        case never:
            assert_never(never)


def is_consented(inputs: Inputs[SpecT], change: Change) -> bool:
    """Return whether the platform agreed to this very loss."""
    return inputs.consent.to(change.shown, describe(change.want))


def _used_consent(inputs: Inputs[SpecT], losses: tuple[Change, ...]) -> str:
    texts = (inputs.consent.again(change.shown, describe(change.want)) for change in losses)
    return next(filter(None, texts), "")


def _without_queue_flushes(
    due: tuple[Change, ...], pending: tuple[str, ...]
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Leave out what would also make what waits in the cloud's queue and is not due; return that as well."""
    paths = {change.path for change in due}
    others = tuple(sorted(name for name in pending if (name,) not in paths))
    flushing = tuple(change for change in due if _empties_the_queue(change))
    if not others or not flushing:
        return due, ()
    return tuple(change for change in due if change not in flushing), others


def _with_companions(inputs: Inputs[SpecT], now: tuple[Change, ...]) -> tuple[Change, ...]:
    """Leave out what needs another change that is neither made nor handed to the cloud's queue now."""
    sent = {change.path for change in now}
    if not any(_empties_the_queue(change) for change in now):
        sent |= {change.path for change in inputs.changes if _may_queue(inputs, change)}
    missing = {change.path for change in inputs.changes} - sent
    return tuple(change for change in now if change.along not in missing)


def _in_one_request(changes: tuple[Change, ...], *, sent: tuple[Change, ...] = ()) -> tuple[Change, ...]:
    """Return the changes that go into a request, with those that are in it: all that may share it, else the first."""
    if any(change.alone for change in sent):
        return ()
    together = tuple(change for change in changes if not change.alone)
    return together or (() if sent else changes[:1])


def _empties_the_queue(change: Change) -> bool:
    return change.queue in {Queue.OPEN, Queue.WAITING}


def _may_queue(inputs: Inputs[SpecT], change: Change) -> bool:
    """Return whether a change that is not made now may be handed to the cloud's queue."""
    if change.queue is not Queue.OPEN or change.veto is not None or inputs.destroy_limit_reached:
        return False
    return change.kind is not Class.LOSS or is_consented(inputs, change)


def _cause_of_hold(
    inputs: Inputs[Any],
    held: tuple[Change, ...],
    in_the_way: tuple[str, ...],
    unconsented: tuple[tuple[Change, ...], str],
    *,
    edited: bool,
) -> Rest | Refuse | Wait | None:
    losses, used_consent = unconsented
    if not held:
        return None
    vetoed = [change.veto for change in held if change.veto is not None]
    waiting = tuple(change for change in held if change.veto is None)
    if in_the_way:
        text = (
            f"{describe_changes(waiting)}; to make it now would also make what waits for the maintenance window:"
            f" {', '.join(in_the_way)}"
        )
        return Wait("PendingChangesInTheWay", text, _LATER, held=held)
    if losses:
        consent = inputs.consent_command(*(f"{change.shown}={describe(change.want)}" for change in losses))
        text = (
            f"{describe_changes(losses)}: this cannot be taken back, or loses data. To agree: {consent}{used_consent}"
        )
        return Refuse("HeldChange", text, held)
    if vetoed:
        reason, text = vetoed[0]
        return Wait(reason, text, _LATER, held=held) if reason == "CloudBusy" else Refuse(reason, text, held)
    return _until_window(inputs, held, edited=edited)


def _until_window(inputs: Inputs[Any], held: tuple[Change, ...], *, edited: bool) -> Rest:
    window = "a maintenance window, and none is set" if inputs.window_at is None else "the maintenance window"
    if all(change.path == RESTART for change in held):
        text = (
            f"a restart is {describe(held[0].have)}; it waits for {window}, maintenance.apply: Immediate, or a person"
        )
        return Rest("PendingRestart", text, held)
    if edited:
        return Rest("WaitingForWindow", f"waits for {window}: {describe_changes(held)}", held)
    return Rest("DriftHeld", f"waits for {window}, or driftPolicy Correct: {describe_changes(held)}", held)


def describe_changes(changes: tuple[Change, ...]) -> str:
    """Return for people what differs, five changes by name."""
    if not changes:
        return "no differences"
    texts = [
        f"{change.shown} is {describe(change.have)}, wanted {describe(change.want)}" for change in changes[:_MOST_NAMED]
    ]
    more = f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
    return "; ".join(texts) + more
