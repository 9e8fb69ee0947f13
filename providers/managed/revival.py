"""Until when a cloud can bring back a database that was deleted there, where it can. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, assert_never

from providers.external.observation import Absent, Present, Unknown
from providers.managed.decisions.plan import Delete, Plan
from providers.managed.inputs import Inputs
from runtime.conditions import instant, timestamp
from runtime.objects import status_of

FIELD = "revivableUntil"
"""The field of status that says it."""


def revivable_until(inputs: Inputs[Any], plan: Plan | None = None) -> datetime | None:
    """Return until when, at the latest, the cloud can bring back the database; None for one that is there.

    The period begins when our deletion is sent. Of what somebody else deleted nobody knows when that was: there it
    begins when the database was first missed, which is later. What was reported once stays over a restart.
    """
    if inputs.revival is None or not inputs.external_ref.incarnation:
        return None
    reported = instant(str(status_of(inputs.obj).get(FIELD, "")))
    match inputs.observation:
        case Unknown():
            return reported
        case Absent():
            return reported or (inputs.external_ref.absent_since or inputs.now) + inputs.revival.period
        case Present() if isinstance(plan, Delete):
            # Whatever was sent before: it is there.
            return inputs.now + inputs.revival.period
        case Present():
            return reported if inputs.lifecycle.deleting else None
        case never:
            assert_never(never)


def written_until(inputs: Inputs[Any], plan: Plan) -> str:
    """Return what `status.revivableUntil` says, empty where it is left out."""
    until = revivable_until(inputs, plan)
    return "" if until is None else timestamp(until)


def how_to_revive(inputs: Inputs[Any], plan: Plan | None = None) -> str:
    """Return until when and how a person brings the database back, empty where the cloud does not or no longer can."""
    until = revivable_until(inputs, plan)
    if until is None or inputs.revival is None or inputs.now >= until:
        return ""
    return f"it can be revived until {timestamp(until)} at the latest, by `{inputs.revival.command}`"
