"""The pause of an object: annotation `fairlead.dev/paused`, "true" or its end (RFC 3339). Pure.

A value that is neither counts as a pause without an end: to stop is the safe reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from apis import names
from runtime.conditions import instant

_SHOWN_CHARACTERS = 64


def is_paused(annotations: Mapping[str, str], now: datetime) -> bool:
    """Return whether a pause is on; one whose end has passed is none."""
    if annotations.get(names.PAUSED, "") in ("", "false"):
        return False
    end = pause_end(annotations)
    return end is None or end > now


def pause_end(annotations: Mapping[str, str]) -> datetime | None:
    """Return when a pause ends by itself; None when it does not, or when there is none."""
    return instant(annotations.get(names.PAUSED, ""))


def until(annotations: Mapping[str, str]) -> str:
    """Return in words when a pause ends; what is no time is quoted."""
    value = annotations.get(names.PAUSED, "")
    if pause_end(annotations) is not None:
        return f"until {value[:_SHOWN_CHARACTERS]}"
    return "until lifted" + ("" if value == "true" else f" ({value[:_SHOWN_CHARACTERS]!r} is neither true nor a time)")


def pause_reason(annotations: Mapping[str, str]) -> str:
    """Return why there is a pause, in the words of who set it."""
    return annotations.get(names.PAUSED_REASON, "no reason given")
