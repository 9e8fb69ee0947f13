"""What an object of another operator says of itself, in one form for all operators. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from composer.render.operators.fields import Fields
from runtime.conditions import find
from runtime.objects import Object, status_of

LONGEST_NAME: Final = 63
"""The most characters that the name of a child can have, and that a label can hold."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a live object, by its own status.

    `ready`: it is as its spec says. `usable`: nothing says that what it was before cannot be used. `failed`: its
    operator expects a person to act. `why`: the operator's words where it is not ready, empty where it says none.
    """

    ready: bool
    usable: bool
    failed: bool = False
    why: str = ""


ReadState: TypeAlias = Callable[[Object], State]
"""Return the state of a live object that its operator has written a status of."""


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """One kind (`Kind.group`) of another operator.

    `holds_data`: losing an object loses data. `longest_name`: how many characters its operator takes of a name.
    `on_deletion`: what becomes of the data when the object is deleted, as a sentence without a subject. `fields`: what
    a Composition may set of it.
    """

    group_kind: str
    state: ReadState
    holds_data: bool
    on_deletion: str
    fields: Fields
    longest_name: int = LONGEST_NAME


def text_at(live: Object, *path: str) -> str:
    """Return a text of the status; empty where the path has none."""
    value: Any = status_of(live)
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def number_at(live: Object, name: str) -> int:
    """Return a whole number of the status; 0 where there is none."""
    value = status_of(live).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def words_of(live: Object, type_: str) -> str:
    """Return reason and message of a condition, as `reason: message`; empty where there is no such condition."""
    condition = find(live, type_)
    if condition is None:
        return ""
    reason = "" if condition["reason"] == "Unknown" else str(condition["reason"])
    return ": ".join(filter(None, (reason, str(condition["message"]))))
