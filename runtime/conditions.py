"""Conditions (metav1.Condition) and kstatus. Pure.

Sources: Kubernetes API conventions, "Typical status properties"; sigs.k8s.io/cli-utils, pkg/kstatus/README.md.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from runtime.objects import Object, generation_of, status_of
from runtime.text import readable

Status = Literal["True", "False", "Unknown"]

_ORDER: Final = ("Ready", "Synced", "Reconciling", "Stalled")
# What the API takes of a metav1.Condition, and of a message what a person reads.
REASON_LIMIT: Final = 1_024
MESSAGE_LIMIT: Final = 2_000
UNKNOWN_REASON: Final = "Unknown"
_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `last_transition_time` is filled by `merge` (RFC 3339, UTC, seconds).

    The message is made readable and cut, whoever's words it repeats.
    """

    type: str
    status: Status
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", readable(self.message, MESSAGE_LIMIT))


def merge(old: Sequence[Mapping[str, Any]], new: Sequence[Condition], now: datetime) -> list[Object]:
    """Return the conditions to write: `new`, with the old transition time where the status did not flip.

    The order is stable (Ready, Synced, Reconciling, Stalled, then by type); types absent in `new` vanish.
    """
    before = {condition["type"]: condition for condition in conditions_of({"status": {"conditions": old}})}
    return [_merged(before.get(condition.type), condition, now) for condition in sorted(new, key=_position)]


def find(obj: Object, type_: str) -> Object | None:
    """Return the condition of that type, or None; its shape is that of `conditions_of`."""
    conditions = status_of(obj).get("conditions")
    for condition in conditions if isinstance(conditions, list | tuple) else ():
        # Passes ask often: the others are not even looked at.
        if isinstance(condition, dict) and condition.get("type") == type_ and isinstance(condition.get("status"), str):
            return condition if _is_whole(condition) else _made_whole(condition)
    return None


def conditions_of(obj: Object) -> Iterator[Object]:
    """Yield the conditions of any object, those that are no map of type and status left out.

    A reason that is missing, or that the API would not take, is `Unknown`; a missing message is empty. Both are cut.
    `observedGeneration` is left out unless it is a whole number.
    """
    conditions = status_of(obj).get("conditions")
    for condition in conditions if isinstance(conditions, list | tuple) else ():
        if (
            isinstance(condition, dict)
            and isinstance(condition.get("type"), str)
            and isinstance(condition.get("status"), str)
        ):
            yield condition if _is_whole(condition) else _made_whole(condition)


def _is_whole(condition: Object) -> bool:
    reason, message = condition.get("reason"), condition.get("message")
    return (
        isinstance(reason, str)
        and isinstance(message, str)
        and len(message) <= MESSAGE_LIMIT
        and len(reason) <= REASON_LIMIT
        and _is_reason(reason)
        and isinstance(condition.get("observedGeneration", 0), int)
    )


@functools.lru_cache(maxsize=1_024)
def _is_reason(text: str) -> bool:
    return _REASON.fullmatch(text) is not None


def _made_whole(condition: Object) -> Object:
    reason, message = condition.get("reason"), condition.get("message")
    is_reason = isinstance(reason, str) and len(reason) <= REASON_LIMIT and _is_reason(reason)
    whole = {
        **condition,
        "reason": reason if is_reason else UNKNOWN_REASON,
        "message": readable(message, MESSAGE_LIMIT) if isinstance(message, str) else "",
    }
    if not isinstance(condition.get("observedGeneration", 0), int):
        del whole["observedGeneration"]
    return whole


def is_true(obj: Object, type_: str) -> bool:
    """Return whether the condition is there with status True, whatever generation it speaks of."""
    condition = find(obj, type_)
    return condition is not None and condition.get("status") == "True"


def current(obj: Object, type_: str) -> bool:
    """Return whether the condition is there and speaks of the object's present generation."""
    condition = find(obj, type_)
    return condition is not None and condition.get("observedGeneration") == generation_of(obj)


def timestamp(now: datetime) -> str:
    """Write an instant as the API server does: RFC 3339, UTC, whole seconds."""
    return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def instant(text: str) -> datetime | None:
    """Return the instant that a text spells (RFC 3339 with its zone); None for any other text."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read.tzinfo is not None else None


def _position(condition: Condition) -> tuple[int, str]:
    known = condition.type in _ORDER
    return (_ORDER.index(condition.type) if known else len(_ORDER), condition.type)


def _merged(old: Mapping[str, Any] | None, new: Condition, now: datetime) -> Object:
    kept = old.get("lastTransitionTime") if old and old.get("status") == new.status else None
    return {
        "type": new.type,
        "status": new.status,
        "observedGeneration": new.observed_generation,
        "lastTransitionTime": kept or new.last_transition_time or timestamp(now),
        "reason": new.reason,
        "message": new.message,
    }
