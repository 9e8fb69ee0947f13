"""Values of PostgreSQL's parameters as Azure writes them. Pure.

Azure takes bare numbers in each parameter's own unit, which its answer names (`unit`: 8KB, KB, MB, ms, s, min), and on
or off for switches; people write 64MB, 5min and true, as postgresql.conf does (manual, "Setting Parameters").
"""

from __future__ import annotations

import re
from typing import Final

_BYTES: Final = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_MICROSECONDS: Final = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
_WITH_UNIT = re.compile(r"([0-9]{1,15})\s*([A-Za-z]{1,3})")
_UNIT = re.compile(r"([0-9]{0,4})\s*([A-Za-z]{1,3})")
_ON, _OFF = frozenset({"on", "true", "yes", "1"}), frozenset({"off", "false", "no", "0"})


def as_azure_writes(value: str, unit: str, data_type: str) -> str:
    """Return a parameter's value as Azure wants and shows it; what is no quantity and no switch stays as it is.

    A quantity that is no whole number of units stays as well: Azure refuses it with the range that it allows.
    """
    text = value.strip()
    if data_type.lower() == "boolean":
        return "on" if text.lower() in _ON else "off" if text.lower() in _OFF else value
    quantity, step = _WITH_UNIT.fullmatch(text), _size(unit)
    if quantity is None or step is None:
        return value
    size = _size(quantity[2])
    if size is None or size[0] != step[0] or int(quantity[1]) * size[1] % step[1]:
        return value
    return str(int(quantity[1]) * size[1] // step[1])


def _size(unit: str) -> tuple[str, int] | None:
    """Return what a unit measures, and how much: 8KB is 8192 bytes."""
    match = _UNIT.fullmatch(unit.strip())
    if match is None:
        return None
    count, name = int(match[1] or 1), match[2].lower()
    if name in _BYTES:
        return "bytes", count * _BYTES[name]
    return ("time", count * _MICROSECONDS[name]) if name in _MICROSECONDS else None


def same_value(first: str, second: str) -> bool:
    """Return whether two values mean the same: letter case, and of a list the blanks, do not count."""
    return _plain(first) == _plain(second)


def _plain(value: str) -> list[str]:
    return [part.strip().lower() for part in value.split(",")]
