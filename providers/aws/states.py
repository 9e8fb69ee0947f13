"""What may be done with an instance in which state, and when its maintenance window is open. Pure.

RDS User Guide, "Viewing Amazon RDS DB instance status" and "Working with storage"; the status is a free text, so one
that is not known here is waited out and shown as it is.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from providers.managed import Phase

_READY = frozenset({"available", "storage-optimization", "storage-full"})
_FAILED = frozenset({
    "failed", "restore-error", "incompatible-credentials", "incompatible-network", "incompatible-option-group",
    "incompatible-parameters", "incompatible-restore", "inaccessible-encryption-credentials",
    "inaccessible-encryption-credentials-recoverable", "insufficient-capacity", "unsupported-configuration",
})  # fmt: skip
_SHUT = frozenset({
    "creating", "deleting", "delete-precheck", "rebooting", "renaming", "starting", "stopping", "upgrading",
    "moving-to-vpc", "converting-to-vpc", "storage-full",
})  # fmt: skip
RESETTING = "resetting-master-credentials"
STORAGE = frozenset({"allocatedStorage", "storageType", "iops", "storageThroughput"})
UNSNAPSHOTTABLE = frozenset({"failed", "incompatible-restore", "incompatible-network"})
"""States of which RDS takes no final snapshot (DeleteDBInstance, SkipFinalSnapshot)."""
_WINDOW = re.compile(r"(mon|tue|wed|thu|fri|sat|sun):(\d\d):(\d\d)-(mon|tue|wed|thu|fri|sat|sun):(\d\d):(\d\d)")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEK = timedelta(days=7)


def phase_of(status: str) -> Phase:
    """Return what a status lets us do."""
    if status in _READY:
        return Phase.READY
    if status == "stopped":
        return Phase.STOPPED
    return Phase.FAILED if status in _FAILED else Phase.BUSY


def usable(status: str) -> bool:
    """Tell whether logins may work in a status; one that is not known may be usable."""
    return status not in _SHUT and status not in _FAILED and status != "stopped"


def veto(status: str, field: str) -> tuple[str, str] | None:
    """Return reason and sentence when a status does not take a change of this field."""
    if status == "storage-optimization" and field in STORAGE:
        return "CloudBusy", f"{field} waits: RDS takes no change of storage while the last one is being optimized"
    if status == "storage-full" and field not in STORAGE:
        return "CloudBusy", f"{field} waits: the storage is full, and RDS takes nothing but more of it"
    return None


def window_open(window: str, now: datetime) -> bool:
    """Tell whether a weekly window `ddd:hh:mm-ddd:hh:mm` in UTC is open; one that cannot be read never is."""
    found = _WINDOW.fullmatch(window.lower())
    if found is None:
        return False
    day, hour, minute, last, end_hour, end_minute = found.groups()
    begins = timedelta(days=_DAYS.index(day), hours=int(hour), minutes=int(minute))
    ends = timedelta(days=_DAYS.index(last), hours=int(end_hour), minutes=int(end_minute))
    moment = timedelta(days=now.weekday(), hours=now.hour, minutes=now.minute)
    return (moment - begins) % _WEEK < (ends - begins) % _WEEK
