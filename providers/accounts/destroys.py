"""How many databases were destroyed or interrupted of late, by minute, as the status of a ProviderConfig records it.

It outlives the process: a restart in the middle of a mass deletion must not begin the count again. Pure.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from runtime.conditions import instant
from runtime.objects import Object, status_of

MADE_AT = "madeAt"

FIELD = "recentDestroys"
# A minute counts until its last second is an hour old.
_WINDOW = timedelta(minutes=61)
# The status holds 512; beyond that the namespaces are left out, and what is left is at most 61 minutes of each kind.
_MOST = 500


def destroys_within_the_hour(status: Object, kind: str, now: datetime) -> Counter[str]:
    """Return how many of one kind the status records, by namespace (empty where it is not known).

    What lies ahead of a clock that was set back counts, too.
    """
    counts: Counter[str] = Counter()
    for entry in _recent(status, now):
        if entry["kind"] == kind:
            counts[str(entry.get("namespace", ""))] += int(entry["count"])
    return counts


def with_one_more(status: Object, kind: str, namespace: str, now: datetime) -> Object:
    """Return the status with one more of this kind and namespace within this minute, and without what is older."""
    minute = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:00Z")
    entries = _recent(status, now)
    entries.append({"kind": kind, "minute": minute, "count": 1} | ({"namespace": namespace} if namespace else {}))
    entries = _joined(entries)
    if len(entries) > _MOST:
        entries = _joined([{key: value for key, value in entry.items() if key != "namespace"} for entry in entries])
    return {**status, FIELD: entries}


def _joined(entries: list[Object]) -> list[Object]:
    """Return one entry for each kind, minute and namespace, in the order of the first of each."""
    joined: dict[tuple[str, str, str], Object] = {}
    for entry in entries:
        key = (str(entry["kind"]), str(entry["minute"]), str(entry.get("namespace", "")))
        count = int(entry["count"]) + (int(joined[key]["count"]) if key in joined else 0)
        joined[key] = {**entry, "count": count}
    return list(joined.values())


def _recent(status: Object, now: datetime) -> list[Object]:
    recent = []
    for entry in status.get(FIELD) or ():
        minute = instant(str(entry.get("minute", "")))
        if minute is not None and now - minute < _WINDOW:
            recent.append(dict(entry))
    return recent


def made_at(obj: Object) -> datetime | None:
    """Return when this database was made for this very object; None where it was taken over or had one before."""
    return instant(str(status_of(obj).get(MADE_AT, "")))
