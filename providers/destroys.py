"""How many databases were taken away or interrupted of late, by minute, as the status of a ProviderConfig remembers it.

It outlives the process: a restart in the middle of a mass deletion must not begin to count anew.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from providers import reading
from runtime.objects import Object

FIELD = "recentDestroys"
# A minute counts until its last second is an hour old.
_WINDOW = timedelta(minutes=61)


def destroys_within_the_hour(status: Object, kind: str, now: datetime) -> int:
    """Return how many of one kind the status remembers; what lies ahead of a clock that was set back counts, too."""
    return sum(int(each["count"]) for each in _recent(status, now) if each["kind"] == kind)


def with_one_more(status: Object, kind: str, now: datetime) -> Object:
    """Return the status with one more of this kind within this minute, and without what is older than an hour."""
    minute = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:00Z")
    entries = _recent(status, now)
    known = next((each for each in entries if (each["kind"], each["minute"]) == (kind, minute)), None)
    if known is None:
        entries.append({"kind": kind, "minute": minute, "count": 1})
    else:
        known["count"] = int(known["count"]) + 1
    return {**status, FIELD: entries}


def _recent(status: Object, now: datetime) -> list[Object]:
    found = []
    for each in status.get(FIELD) or ():
        minute = reading.instant(str(each.get("minute", "")))
        if minute is not None and now - minute < _WINDOW:
            found.append(dict(each))
    return found
