"""When a weekly maintenance window opens. Pure."""

from __future__ import annotations

from datetime import datetime, time, timedelta

_WEEK = timedelta(days=7)


def next_opening(begins: timedelta, length: timedelta, now: datetime) -> datetime:
    """Return when a window opens next that begins so long after Monday, 00:00; `now` itself while it is open."""
    monday = datetime.combine(now.date(), time(), now.tzinfo) - timedelta(days=now.weekday())
    since = (now - monday - begins) % _WEEK
    return now if since < length else now + _WEEK - since
