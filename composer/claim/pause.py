"""What a paused claim says: who paused it, when, why and until when. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apis import names
from runtime.objects import Object


@dataclass(frozen=True, slots=True)
class Pauser:
    """Who set the pause, as the API server recorded it: a field manager, and when (RFC 3339)."""

    manager: str
    at: str

    def __str__(self) -> str:
        return f" by {self.manager} at {self.at}" if self.manager else ""


NOBODY = Pauser("", "")


def pauser(claim: Object) -> Pauser:
    """Find who set the pause in a claim that was read with its managedFields; the last of several.

    Source: "Server-Side Apply", field management: an annotation's owner is the manager that set its value last.
    """
    return max(_setters(claim), key=lambda each: each.at, default=NOBODY)


def _setters(claim: Object) -> Iterator[Pauser]:
    for each in claim["metadata"].get("managedFields") or ():
        fields = (each.get("fieldsV1") or {}).get("f:metadata") or {}
        if f"f:{names.PAUSED}" in (fields.get("f:annotations") or {}):
            yield Pauser(str(each.get("manager", ""))[:64], str(each.get("time", "")))
