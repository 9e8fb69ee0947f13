"""What may be done with an instance in which state and for how long, and when its maintenance window opens. Pure.

RDS User Guide, "Viewing Amazon RDS DB instance status" and "Working with storage"; the status is a free text, so one
that is not known here is waited out and shown as it is.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from providers.external.observation import Phase
from providers.external.windows import next_opening

_READY = frozenset({
    "available", "storage-optimization", "storage-initialization", "storage-full", "incompatible-parameters",
})  # fmt: skip
_ENCRYPTION = "have its KMS key enabled and granted to RDS again, and start it"
_FAILED = {
    "failed": "restore it from a backup",
    "restore-error": "delete it, and restore it anew",
    "incompatible-create": "delete it, correct what it was to be made with, and make it anew",
    "incompatible-credentials": "set passwordRotation.token to a new value",
    "incompatible-network": "see to free addresses in its subnets, and restore it from a backup",
    "incompatible-option-group": "give it an option group that fits",
    "incompatible-restore": "restore it by PostgreSQL's own tools",
    "inaccessible-encryption-credentials": _ENCRYPTION,
    "inaccessible-encryption-credentials-recoverable": _ENCRYPTION,
    "insufficient-capacity": "wait for capacity, or choose another class",
    "unsupported-configuration": "see RDS's own events for what does not fit",
}
_SHUT = frozenset({
    "creating", "deleting", "delete-precheck", "rebooting", "renaming", "starting", "stopping", "upgrading",
    "moving-to-vpc", "converting-to-vpc", "storage-full", "incompatible-parameters",
})  # fmt: skip
_REMEDIES = _FAILED | {
    "stopped": "start it",
    "storage-full": "raise storageGiB of the claim (allocatedStorage of the instance)",
    "incompatible-parameters": "correct its parameters or give it another parameter group, then reboot it",
}
NEVER_WORKED = frozenset({*_FAILED, "incompatible-parameters"})
"""States in which what was never Ready holds nothing of anybody's."""
_STORAGE_AT_WORK = frozenset({"storage-optimization", "storage-initialization"})
RESETTING = "resetting-master-credentials"
STORAGE = frozenset({"allocatedStorage", "storageType", "iops", "storageThroughput"})
UNSNAPSHOTTABLE = frozenset({"failed", "incompatible-restore", "incompatible-network"})
"""States of which RDS takes no final snapshot (DeleteDBInstance, SkipFinalSnapshot)."""
_USUAL, _HALF_AN_HOUR, _HOUR, _DAY = timedelta(minutes=10), timedelta(minutes=30), timedelta(hours=1), timedelta(days=1)
_CHANGING = timedelta(minutes=90)
# A Multi-AZ create takes over ten minutes; a restore, a first backup and storage at work as long as there are data.
_DEADLINES = {
    "": _USUAL,
    "available": _USUAL,
    "modifying": _CHANGING,
    "upgrading": _CHANGING,
    "maintenance": _CHANGING,
    "rebooting": _HALF_AN_HOUR,
    "renaming": _HALF_AN_HOUR,
    RESETTING: _HALF_AN_HOUR,
} | dict.fromkeys(("backing-up", "deleting", "delete-precheck", "storage-config-upgrade", *_STORAGE_AT_WORK), _DAY)
# How long they are seen to last; lists are paced by it, and whoever is wrong here is listed a little later or oftener.
_EXPECTED = {
    "creating": timedelta(minutes=5),
    "backing-up": timedelta(minutes=2),
    "configuring-enhanced-monitoring": timedelta(minutes=2),
    "configuring-log-exports": timedelta(minutes=1),
    "configuring-iam-database-auth": timedelta(minutes=1),
    "modifying": timedelta(minutes=6),
    "maintenance": timedelta(minutes=10),
    "upgrading": timedelta(minutes=15),
    "rebooting": timedelta(minutes=2),
    "renaming": timedelta(minutes=2),
    "starting": timedelta(minutes=5),
    "stopping": timedelta(minutes=5),
    "moving-to-vpc": timedelta(minutes=5),
    "storage-config-upgrade": timedelta(hours=1),
    "delete-precheck": timedelta(minutes=1),
    "deleting": timedelta(minutes=5),
    RESETTING: timedelta(minutes=2),
}
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
    """Return whether logins may work in a status; one that is not known may be usable."""
    return status not in _SHUT and status not in _FAILED and status != "stopped"


def remedy(status: str) -> str:
    """Return what ends a state in which nobody can use an instance, empty where it ends by itself."""
    return _REMEDIES.get(status, "")


def deadline(status: str, *, restored: bool) -> timedelta:
    """Return after how long in one state a person should look; one that is not known gets an hour."""
    if status == "creating" and restored:
        return _DAY
    return _DEADLINES.get(status, _HOUR)


def veto(status: str, field: str) -> tuple[str, str] | None:
    """Return reason and sentence when a status does not take a change of this field."""
    if status in _STORAGE_AT_WORK and field in STORAGE:
        return "CloudBusy", f"{field} waits: RDS takes no change of storage while it is at work on it ({status})"
    if status == "storage-full" and field not in STORAGE:
        return "CloudBusy", f"{field} waits: the storage is full, and RDS takes nothing but more of it"
    return None


def expected(status: str, *, restored: bool) -> timedelta | None:
    """Return how long a status at which RDS is at work is known to take, None where that is not known.

    What it depends on (data, the class, the change) is not known here: a single instance without many data is meant.
    """
    return timedelta(minutes=20) if status == "creating" and restored else _EXPECTED.get(status)


def next_window(window: str, now: datetime) -> datetime | None:
    """Return when a weekly window `ddd:hh:mm-ddd:hh:mm` in UTC opens next: `now` while it is open.

    None for one that cannot be read (PreferredMaintenanceWindow of DescribeDBInstances).
    """
    match = _WINDOW.fullmatch(window.lower())
    if match is None:
        return None
    day, hour, minute, last, end_hour, end_minute = match.groups()
    begins = timedelta(days=_DAYS.index(day), hours=int(hour), minutes=int(minute))
    ends = timedelta(days=_DAYS.index(last), hours=int(end_hour), minutes=int(end_minute))
    return next_opening(begins, (ends - begins) % _WEEK, now)
