"""Backup and maintenance windows, in UTC: their format, their starts, whether they overlap. Pure.

Formats: RDS API Reference, CreateDBInstance, PreferredBackupWindow (`hh24:mi-hh24:mi`) and PreferredMaintenanceWindow
(`ddd:hh24:mi-ddd:hh24:mi`), both at least 30 minutes.
"""

import re
from datetime import datetime, timedelta

from devcloud.aws.refusals import invalid_combination, invalid_value

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_SHORTEST_MINUTES = 30
_BACKUP = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
_MAINTENANCE = re.compile(r"([a-z]{3}):(\d\d):(\d\d)-([a-z]{3}):(\d\d):(\d\d)")


def backup_window(text: str) -> tuple[int, int]:
    """Return the start in minutes of the day, and the length in minutes.

    Raises:
        Refusal: It is no window, or too short.
    """
    match = _BACKUP.fullmatch(text)
    if match is None:
        raise invalid_value(f"The parameter PreferredBackupWindow has an invalid format: {text}")
    hour, minute, end_hour, end_minute = map(int, match.groups())
    start, end = _minutes(hour, minute, text), _minutes(end_hour, end_minute, text)
    return start, _length((end - start) % _DAY_MINUTES, text)


def maintenance_window(text: str) -> tuple[int, int]:
    """Return the start in minutes of the week that begins on Monday, and the length in minutes.

    Raises:
        Refusal: It is no window, or too short.
    """
    match = _MAINTENANCE.fullmatch(text.lower())
    if match is None or match[1] not in _DAYS or match[4] not in _DAYS:
        raise invalid_value(
            f"Invalid maintenance window format: {text}. Should be specified as a range ddd:hh24:mi-ddd:hh24:mi"
        )
    start = _DAYS.index(match[1]) * _DAY_MINUTES + _minutes(int(match[2]), int(match[3]), text)
    end = _DAYS.index(match[4]) * _DAY_MINUTES + _minutes(int(match[5]), int(match[6]), text)
    return start, _length((end - start) % _WEEK_MINUTES, text)


def refuse_overlap(backup: str, maintenance: str) -> None:
    """Refuse two windows that share a minute (RDS User Guide, "Backup window").

    Raises:
        Refusal: They overlap, or one of them is no window.
    """
    if overlap(backup, maintenance):
        raise invalid_combination("The backup window and maintenance window must not overlap.")


def overlap(backup: str, maintenance: str) -> bool:
    """Return whether two windows share a minute.

    Raises:
        Refusal: One of them is no window.
    """
    daily, daily_length = backup_window(backup)
    weekly, weekly_length = maintenance_window(maintenance)
    starts = [daily + day * _DAY_MINUTES for day in range(7)]
    return any(
        (start - weekly) % _WEEK_MINUTES < weekly_length or (weekly - start) % _WEEK_MINUTES < daily_length
        for start in starts
    )


def last_backup_start(window: str, now: datetime) -> datetime:
    """Return when the backup window began last."""
    start, _ = backup_window(window)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight + timedelta(minutes=start)
    return moment if moment <= now else moment - timedelta(days=1)


def last_maintenance_start(window: str, now: datetime) -> datetime:
    """Return when the maintenance window began last."""
    start, _ = maintenance_window(window)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight - timedelta(days=now.weekday()) + timedelta(minutes=start)
    return moment if moment <= now else moment - timedelta(weeks=1)


def is_open(window: str, now: datetime) -> bool:
    """Return whether the maintenance window is open."""
    _, minutes = maintenance_window(window)
    return now < last_maintenance_start(window, now) + timedelta(minutes=minutes)


def far_windows(now: datetime, backup: str | None = None, maintenance: str | None = None) -> tuple[str, str]:
    """Choose the backup and maintenance window that an instance leaves to the service; what it names stays.

    Chosen windows are half a day and three days away, so that none opens by chance, and do not overlap.

    Raises:
        Refusal: A window that was named is no window.
    """
    day = _DAYS[(now + timedelta(days=3)).weekday()]
    backup_hours = [f"{(now.hour + hours) % 24:02d}" for hours in (12, 14, 16)]
    maintenance_hours = [f"{(now.hour + hours) % 24:02d}" for hours in (6, 8, 10)]
    backups = [backup] if backup else [f"{hour}:00-{hour}:30" for hour in backup_hours]
    weekly = [maintenance] if maintenance else [f"{day}:{hour}:00-{day}:{hour}:30" for hour in maintenance_hours]
    pairs = [(daily, chosen) for daily in backups for chosen in weekly]
    return next((pair for pair in pairs if not overlap(*pair)), pairs[0])


def _minutes(hour: int, minute: int, text: str) -> int:
    if hour > 23 or minute > 59:  # noqa: PLR2004 - a clock's
        raise invalid_value(f"Invalid time in window {text}")
    return hour * 60 + minute


def _length(minutes: int, text: str) -> int:
    if minutes < _SHORTEST_MINUTES:
        raise invalid_value(f"The window {text} must be at least {_SHORTEST_MINUTES} minutes.")
    return minutes
