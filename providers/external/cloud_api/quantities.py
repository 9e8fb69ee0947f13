"""Quantities with units, as postgresql.conf has them (manual, "Setting Parameters"), as bare numbers. Pure."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_BYTES: Final = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_MICROSECONDS: Final = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
_WITH_UNIT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]{1,3})")
_UNIT = re.compile(r"([0-9]{0,4})\s*([A-Za-z]{1,3})")


def in_units(text: str, unit: str) -> str:
    """Return a quantity as a number of units (`8kB`, `ms`); empty where it is none, or no whole number of them.

    A fraction is rounded to the next smaller unit, as PostgreSQL does: 0.3GB are 307MB.
    """
    quantity, step = _WITH_UNIT.fullmatch(text.strip()), _UNIT.fullmatch(unit.strip())
    if quantity is None or step is None:
        return ""
    for scale in (_BYTES, _MICROSECONDS):
        # A cloud may write its units in other letters.
        steps = {name.lower(): size for name, size in scale.items()}
        if quantity[2] in scale and step[2].lower() in steps:
            written, size = scale[quantity[2]], int(step[1] or 1) * steps[step[2].lower()]
            amount = Fraction(quantity[1]) * written
            if "." in quantity[1]:
                smaller = max((other for other in scale.values() if other < written), default=1)
                amount = Fraction(round(amount / smaller) * smaller)
            return "" if amount % size else str(amount // size)
    return ""
