"""When to reconcile a resource again after a pass. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from apis.reasons import deadline_of
from providers.credentials.passwords import Await, Missing
from providers.managed import record
from providers.managed.decisions.attempts import PASSWORD_READ
from providers.managed.decisions.plan import Create, Delete, Orphan, Plan, Refuse, RemoveFinalizer, Rest, Update, Wait
from providers.managed.inputs import Inputs
from runtime import secret_rights
from runtime.conditions import find, instant
from runtime.objects import Object

_FOLLOWED = timedelta(seconds=5)
_FOLLOWED_CLOSELY = timedelta(seconds=1)
_CLOSELY_FOR = timedelta(minutes=5)
_FORMER_IN_USE = timedelta(seconds=15)


def requeue_after(inputs: Inputs[Any], plan: Plan, status: Object, now: datetime) -> timedelta | None:
    """Return after how long to reconcile again; None leaves it to the resync.

    A password of a user's own is in a Secret that is not watched: it is read again every minute.
    """
    after = _after_plan(inputs, plan, status, now)
    if inputs.envelope.password_secret_ref is None or isinstance(plan, Rest | Delete | Orphan | RemoveFinalizer):
        return after
    return _first(PASSWORD_READ, after)


def _after_plan(inputs: Inputs[Any], plan: Plan, status: Object, now: datetime) -> timedelta | None:
    match plan:
        case Wait(after=after):
            return _first(after, _until_overdue(inputs, status, now))
        case Refuse():
            after = _after_problem(inputs, status, now, timedelta(minutes=5))
            return _first(after, _until_overdue(inputs, status, now))
        case Rest(reason="Paused"):
            return _until_unpaused(inputs, now)
        case _ if isinstance(inputs.step, Await):
            followed = follow_after(inputs, status, now) or _FOLLOWED
            after = timedelta(minutes=1) if inputs.step.unproven else followed
            return _first(after, _until_overdue(inputs, status, now))
        case _ if inputs.step == Missing(refused=True):
            return timedelta(minutes=1)
        case _:
            retire_at = instant(str((status.get("rotation") or {}).get("retireAt", "")))
            retire_after = None if retire_at is None else _until_retired(retire_at - now)
            after = _after_problem(inputs, status, now, timedelta(minutes=1))
            return retire_after if inputs.password_problem is None else _first(after, retire_after)


def _until_retired(left: timedelta) -> timedelta:
    """Return when to end a former login; one whose end is due already waits for its users."""
    return max(timedelta(seconds=1), left) if left > timedelta() else _FORMER_IN_USE


def follow_after(inputs: Inputs[Any], status: Object, now: datetime) -> timedelta | None:
    """Return how soon to observe a password that was sent, None where there is none or no login shows when it counts.

    Of one login the former password ends with the next one's beginning: no login works until that is published.
    """
    rotation = status.get("rotation") or {}
    sent_at = instant(str(rotation.get("sentAt", "")))
    is_awaited = isinstance(inputs.step, Await) and inputs.step.closely
    if not is_awaited or sent_at is None or now - sent_at > _CLOSELY_FOR:
        return None
    return _FOLLOWED_CLOSELY


def is_followed(inputs: Inputs[Any], plan: Plan) -> bool:
    """Return whether lists of the account show what becomes of what the cloud is at work on, or was just asked for."""
    if not inputs.listed or inputs.operating:
        return False
    match plan:
        case Create() | Delete():
            return inputs.eventual
        case Wait(by_list=by_list) if by_list is not None:
            return True
        case _:
            return isinstance(inputs.step, Await)


def until_window(inputs: Inputs[Any], plan: Plan) -> timedelta | None:
    """Return after how long the maintenance window opens for which a change waits; None where none does."""
    held = plan.held if isinstance(plan, Update) else plan
    is_waiting = isinstance(held, Rest) and held.reason in {"WaitingForWindow", "DriftHeld", "PendingRestart"}
    if not is_waiting or inputs.window_at is None or inputs.window_at <= inputs.now:
        return None
    return inputs.window_at - inputs.now


def _after_problem(inputs: Inputs[Any], status: Object, now: datetime, usual: timedelta) -> timedelta:
    is_denied = inputs.password_problem is not None and inputs.password_problem[0] == secret_rights.REASON
    return secret_rights.look_again({"status": status}, now) if is_denied else usual


def _until_unpaused(inputs: Inputs[Any], now: datetime) -> timedelta | None:
    paused = (inputs.obj, inputs.account.config_object if inputs.account is not None else {"metadata": {}})
    pauses = [pause for pause in (record.pause_left(obj, now) for obj in paused) if pause is not None]
    return max(min(pauses), timedelta(seconds=1)) if pauses else None


def _until_overdue(inputs: Inputs[Any], status: Object, now: datetime) -> timedelta | None:
    reconciling = find({"status": status}, "Reconciling")
    if reconciling is None:
        return None
    since = instant(str(reconciling.get("lastTransitionTime", "")))
    if since is None:
        return None
    return max(timedelta(seconds=1), since + deadline_of(str(reconciling["reason"]), inputs.deadline) - now)


def _first(after: timedelta, other: timedelta | None) -> timedelta:
    return after if other is None else min(after, other)
