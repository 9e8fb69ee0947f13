"""Creates that had no answer, of what carries no tag: whether one may still be carried out, and until when. Pure.

What turns up meanwhile is ours where the cloud proves it (`Target.unanswered`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from providers.accounts.destroys import MADE_AT, made_at
from providers.external.observation import Absent
from providers.managed import record
from providers.managed.decisions.plan import Create, Plan
from providers.managed.inputs import Inputs
from providers.managed.outcome import Outcome
from runtime.errors import Transient
from runtime.objects import Object, status_of


def since(obj: Object) -> datetime | None:
    """Return when a create was sent that may have been carried out and had no answer; None where there is no such one.

    Its intent stays in status until something of the name is recorded, or nothing was there after the intent's end.
    """
    intent = record.intent_of(obj)
    is_intended = intent is not None and any(call.kind == "Create" for call in intent.calls)
    is_recorded = bool(record.external_ref_of(obj, absent_since=None).incarnation)
    return made_at(obj) if is_intended and not is_recorded else None


def sent_at(obj: Object, now: datetime) -> datetime:
    """Return when the first create was sent that may be on its way, with one that is sent now."""
    before, intent = since(obj), record.intent_of(obj)
    return before if before is not None and intent is not None and now < intent.not_after else now


def is_open(inputs: Inputs[Any], plan: Plan, outcome: Outcome[Any]) -> bool:
    """Return whether a create of what carries no tag may still be carried out, and had no answer: its intent stays.

    An absence after the intent's end is the end of it, as nothing of it is sent any more.
    """
    intent = record.intent_of(outcome.obj)
    if inputs.tagged or intent is None or since(outcome.obj) is None:
        return False
    if isinstance(plan, Create):
        is_in_doubt = since(inputs.obj) is not None or isinstance(outcome.failure, Transient)
        return outcome.failure is not None and is_in_doubt
    return not isinstance(inputs.observation, Absent) or inputs.now < intent.not_after


def is_nothing_made(inputs: Inputs[Any], plan: Plan, outcome: Outcome[Any]) -> bool:
    """Return whether a create of what carries no tag made nothing: what has its name then is somebody else's.

    Only a call without an answer, or with a server's error, may have made it; after one of those a later refusal may be
    about what it is making.
    """
    if inputs.tagged or inputs.external_ref.incarnation:
        return False
    if isinstance(plan, Create):
        is_refused = outcome.failure is not None and not isinstance(outcome.failure, Transient)
        return is_refused and MADE_AT not in status_of(inputs.obj)
    if since(outcome.obj) is not None:
        return not is_open(inputs, plan, outcome)
    operation = record.operation_of(outcome.obj)
    return inputs.operation_failed is not None and operation is not None and operation.kind == "Create"
