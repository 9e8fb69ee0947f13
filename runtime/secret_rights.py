"""What to say, and when to look again, where a namespace does not let a process use its Secrets. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from runtime.conditions import find, instant
from runtime.errors import Forbidden, NotGranted
from runtime.objects import Object

REASON: Final = "AccessDenied"

_SOONEST = timedelta(seconds=2)
_LATEST = timedelta(minutes=1)


def refusal(who: str, namespace: str, error: Forbidden, *, remedy: str) -> str:
    """Say that `who` may not use a namespace's Secrets, and how to change that: `remedy` is a command.

    What the API server said is not repeated: it may quote a Secret.
    """
    if not isinstance(error, NotGranted):
        return (
            f"the API server refuses a Secret of {who} in namespace {namespace} (HTTP {error.status}), by a quota or an"
            f" admission policy: see `kubectl describe resourcequota -n {namespace}`"
        )
    return (
        f"{who} may not use Secrets in namespace {namespace}, which is not prepared: {remedy}; it goes on by itself"
        " afterwards"
    )


def look_again(obj: Object, now: datetime) -> timedelta:
    """Return when to try again: as long as it has been refused already by its conditions, 2 s to a minute."""
    stalled = find(obj, "Stalled") or {}
    since = instant(str(stalled.get("lastTransitionTime")))
    return min(max(now - since, _SOONEST), _LATEST) if since else _SOONEST
