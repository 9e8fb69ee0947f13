"""Filters over times of day and of the week, and over windows between two of them; all in UTC. Pure.

A time is `hh:mm` or `ddd:hh:mm` (`sun:23:30`; the whole name of a day is read too), a window two of one form joined by
a `-`: `23:30-00:30`, `sun:23:30-mon:00:30`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from composer.render.values import ExpressionError

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT: Final = tuple(day[:3] for day in _DAYS)
_DAY: Final = 24 * 60
_TIME: Final = re.compile(r"(?:([A-Za-z]{3,9}):)?([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_SHOWN_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class _Time:
    """Minutes since midnight, or since the beginning of the week where it names a day."""

    minutes: int
    has_day: bool

    @property
    def period(self) -> int:
        """After how many minutes it comes again."""
        return _DAY * len(_DAYS) if self.has_day else _DAY

    def later(self, minutes: int) -> _Time:
        """Return the time so many minutes later, across midnight and the end of the week."""
        return replace(self, minutes=(self.minutes + minutes) % self.period)

    def __str__(self) -> str:
        day, minutes = divmod(self.minutes, _DAY)
        hour, minute = divmod(minutes, 60)
        clock = f"{hour:02}:{minute:02}"
        return f"{_SHORT[day]}:{clock}" if self.has_day else clock


def shift(value: Any, *, hours: Any = 0, minutes: Any = 0) -> str:
    """Return a time, or a window, so much later; earlier where the numbers are negative."""
    later = _minutes(hours, minutes)
    times = _times(value)
    if len(times) not in (1, 2) or len({time.has_day for time in times}) > 1:
        raise _no_time(value, "time or window", "02:30, sun:02:30, 23:30-00:30 or sun:23:30-mon:00:30")
    return "-".join(str(time.later(later)) for time in times)


def window(value: Any, *, hours: Any = 0, minutes: Any = 0) -> str:
    """Return the window of that length that begins at a time."""
    length = _minutes(hours, minutes)
    times = _times(value)
    if len(times) != 1:
        raise _no_time(value, "time", "02:30 or sun:02:30")
    (start,) = times
    if not 0 < length < start.period:
        most = "a week" if start.has_day else "a day"
        raise ExpressionError(f"a window of {length} minutes is not longer than nothing and shorter than {most}")
    return f"{start}-{start.later(length)}"


def _times(value: Any) -> tuple[_Time, ...]:
    return tuple(_time(part, value) for part in value.split("-")) if isinstance(value, str) else ()


def _time(text: str, value: str) -> _Time:
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise _no_time(value, "time", "02:30 or sun:02:30")
    day, hour, minute = parts.groups()
    since_midnight = int(hour) * 60 + int(minute)
    if day is None:
        return _Time(since_midnight, has_day=False)
    name = day.lower()
    if name not in _DAYS and name not in _SHORT:
        raise ExpressionError(f"{day!r} is no day of the week; one is {', '.join(_SHORT)}")
    return _Time(_SHORT.index(name[:3]) * _DAY + since_midnight, has_day=True)


def _minutes(hours: Any, minutes: Any) -> int:
    for name, value in (("hours", hours), ("minutes", minutes)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ExpressionError(f"{name} is {str(value)[:_SHOWN_CHARACTERS]!r}, and not a whole number")
    return int(hours) * 60 + int(minutes)


def _no_time(value: Any, form: str, example: str) -> ExpressionError:
    return ExpressionError(f"{str(value)[:_SHOWN_CHARACTERS]!r} is no {form} like {example}")
