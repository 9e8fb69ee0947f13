"""Whether an object is as somebody wants it, and what goes on until then. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from apis import names
from apis.reasons import next_actor
from fairlead.exits import Exit
from fairlead.fleet import cloud_of, speaking
from fairlead.tree import is_claim
from fairlead.usual_times import usual_time
from runtime.conditions import conditions_of
from runtime.kstatus import kstatus
from runtime.objects import Object, deleting, generation_of, status_of

Goal: TypeAlias = Literal["ready", "synced", "gone"]
_TYPES: Mapping[Goal, str] = {"ready": "Ready", "synced": "Synced"}


@dataclass(frozen=True, slots=True)
class Progress:
    """What an object does; `exit` is None while it is worth waiting for it."""

    text: str
    exit: Exit | None = None


def progress_of(obj: Object | None, goal: Goal) -> Progress:
    """Return how far an object is on its way; None is one that is not there."""
    if obj is None:
        return Progress("gone", Exit.DONE) if goal == "gone" else Progress("is gone", Exit.TOOL_FAILED)
    conditions = {condition["type"]: condition for condition in conditions_of(obj)}
    if "Ready" not in conditions and not _is_ours(obj):
        return _of_another_operator(obj, goal)
    if _holds(obj, conditions, "Stalled") and (goal != "gone" or deleting(obj)):
        stalled = conditions["Stalled"]
        actor = next_actor(str(stalled.get("reason", "")))
        move = f"; next move: {actor}" if actor else ""
        return Progress(f"Stalled: {stalled.get('reason')}: {stalled.get('message')}{move}", Exit.STALLED)
    if goal != "gone" and not deleting(obj) and _holds(obj, conditions, _TYPES[goal]):
        return Progress(_TYPES[goal], Exit.DONE)
    if goal == "gone" and not deleting(obj):
        return Progress("nobody has deleted it yet")
    return Progress(_doing(obj, conditions))


def _is_ours(obj: Object) -> bool:
    return names.is_own_group(str(obj.get("apiVersion", "")).rpartition("/")[0]) or is_claim(obj)


def _holds(obj: Object, conditions: Mapping[str, Object], type_: str) -> bool:
    """Return whether a condition is True, and of the newest spec."""
    condition, generation = conditions.get(type_) or {}, generation_of(obj)
    return condition.get("status") == "True" and int(condition.get("observedGeneration", generation)) >= generation


def _doing(obj: Object, conditions: Mapping[str, Object]) -> str:
    generation = generation_of(obj)
    seen = [int(condition.get("observedGeneration", generation)) for condition in conditions.values()]
    if max(seen, default=-1) < generation:
        return "no controller has looked at its newest spec yet"
    condition = speaking(conditions)
    reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
    usual = "" if _is_of_a_setting(obj, message) else usual_time(cloud_of(obj), reason)
    return f"{reason}: {message}" + (f" ({usual})" if usual else "")


def _is_of_a_setting(claim: Object, message: str) -> bool:
    """Return whether a message is of something without data, as a group or a rule, which takes no such time."""
    named = [
        entry
        for entry in status_of(claim).get("inventory") or ()
        if f"{entry.get('kind')} {entry.get('name')}" in message or f"resource '{entry.get('resource')}'" in message
    ]
    return bool(named) and not any(entry.get("stateful") for entry in named)


def _of_another_operator(obj: Object, goal: Goal) -> Progress:
    """Return how far a kind without our conditions is, by the rules of kstatus."""
    state = kstatus(obj)
    if goal == "gone" or state in ("InProgress", "Terminating"):
        return Progress(state)
    return Progress(state, Exit.DONE if state == "Current" else Exit.STALLED)
