"""The states of a server: what can be done in each, for how long, and when its maintenance window is open. Pure.

`properties.state` of the REST reference 2025-08-01; letter case is not relied on. One that is not known is busy.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from providers.external.observation import Phase
from providers.external.windows import next_opening

_HOUR = timedelta(hours=1)
# Azure keeps a window of an hour from its start ("Scheduled maintenance in Azure Database for PostgreSQL").
_WINDOW = timedelta(hours=1)
_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_DAYS = 7

_PHASES = {"ready": Phase.READY, "stopped": Phase.STOPPED, "disabled": Phase.FAILED, "inaccessible": Phase.FAILED}
_USABLE = frozenset({"ready", "updating"})
# Measured: a create takes 6 minutes, a small update one; a restore and an upgrade depend on the data.
_DEADLINES = {
    "updating": 3 * _HOUR,
    "provisioning": _HOUR,
    "starting": _HOUR,
    "stopping": _HOUR,
    "restarting": timedelta(minutes=30),
    "dropping": _HOUR,
}
_REMEDIES = {
    "stopped": "start it where it was stopped",
    "disabled": "Azure disabled it, as a rule with the subscription; ask whoever owns the subscription",
    "inaccessible": "Azure cannot reach its key; give the server's identity back its rights on the key in the vault",
}


class Window(NamedTuple):
    """A weekly maintenance window in UTC; day 0 is Sunday."""

    day: int
    hour: int
    minute: int


def phase_of(state: str) -> Phase:
    """Return what can be done with a server in a state."""
    return _PHASES.get(state.lower(), Phase.BUSY)


def usable(state: str) -> bool:
    """Return whether logins may work in a state."""
    return state.lower() in _USABLE


def remedy(state: str) -> str:
    """Return what ends a state in which nobody can use a server, empty where it ends by itself."""
    return _REMEDIES.get(state.lower(), "")


def deadline(state: str, *, restored: bool) -> timedelta:
    """Return after how long in one state a person should look."""
    if restored and state.lower() in {"provisioning", "starting", "updating"}:
        return _DAY
    return _DEADLINES.get(state.lower(), _HOUR)


def next_window(window: Window | None, now: datetime) -> datetime | None:
    """Return when a window opens next, `now` while it is open; None where Azure chooses the time itself."""
    if window is None:
        return None
    # Python's week begins on Monday, Azure's on Sunday.
    begins = timedelta(days=(window.day - 1) % _DAYS, hours=window.hour, minutes=window.minute)
    return next_opening(begins, _WINDOW, now)
