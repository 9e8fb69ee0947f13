"""What was called, by whom, and what came of it: as a cloud's audit log keeps it, without passwords."""

from collections import deque
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

import msgspec

_KEPT = 200_000
_REDACTED = "****"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A call; a cloud may derive its own, with more.

    Attributes:
        seq: Counts from 1.
        at: The simulated time.
        account: Of the caller (a project, a subscription), empty for one that is not known.
        region: Where; empty for a call without one.
        principal: The caller by the cloud's own name.
        action: As `ModifyDBInstance` or `instances.patch`.
        identifier: Of what it concerned, empty for none.
        params: The parameters, secrets blotted out.
        request_id: As in the answer.
        outcome: `ok`, an error's code, `dropped` or `hung`.
        mutating: Whether the action changes something.
    """

    seq: int = 0
    at: datetime
    account: str
    region: str
    principal: str
    action: str
    identifier: str
    params: dict[str, Any]
    request_id: str
    outcome: str
    mutating: bool


class Audit:
    """The calls of late, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_KEPT)
        self._seq = 0

    def add(self, entry: Entry) -> None:
        """Write a call down."""
        self._seq += 1
        self._entries.append(msgspec.structs.replace(entry, seq=self._seq))

    def since(self, seq: int) -> list[Entry]:
        """Return the calls after one."""
        return [entry for entry in self._entries if entry.seq > seq]

    def clear(self) -> None:
        """Forget all; numbers go on."""
        self._entries.clear()


def redacted(content: dict[str, Any], secrets: AbstractSet[str]) -> dict[str, Any]:
    """Return the parameters of a call with the value of every field of these names blotted out, however deep."""
    return {name: _REDACTED if name in secrets else _redacted(value, secrets) for name, value in content.items()}


def _redacted(value: Any, secrets: AbstractSet[str]) -> Any:
    match value:
        case dict():
            return redacted(value, secrets)
        case list():
            return [_redacted(item, secrets) for item in value]
        case _:
            return value
