"""Conditions (metav1.Condition) and kstatus. Pure.

Sources: Kubernetes API conventions, "Typical status properties"; sigs.k8s.io/cli-utils, pkg/kstatus/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from runtime.objects import Object, generation_of

Status = Literal["True", "False", "Unknown"]

_ORDER: Final = ("Ready", "Synced", "Reconciling", "Stalled")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `last_transition_time` is filled by `merge` (RFC 3339, UTC, seconds)."""

    type: str
    status: Status
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str = ""


def merge(old: Sequence[Mapping[str, Any]], new: Sequence[Condition], now: datetime) -> list[Object]:
    """Return the conditions to write: `new`, with the old transition time where the status did not flip.

    The order is stable (Ready, Synced, Reconciling, Stalled, then by type); types absent in `new` vanish.
    """
    before = {condition["type"]: condition for condition in old}
    return [_merged(before.get(condition.type), condition, now) for condition in sorted(new, key=_position)]


def find(obj: Object, type_: str) -> Object | None:
    """Return the condition of that type, or None."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def is_true(obj: Object, type_: str) -> bool:
    """Tell whether the condition is there with status True, whatever generation it speaks of."""
    condition = find(obj, type_)
    return condition is not None and condition.get("status") == "True"


def current(obj: Object, type_: str) -> bool:
    """Tell whether the condition is there and speaks of the object's present generation."""
    condition = find(obj, type_)
    return condition is not None and condition.get("observedGeneration") == generation_of(obj)


def timestamp(now: datetime) -> str:
    """Write an instant as the API server does: RFC 3339, UTC, whole seconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
