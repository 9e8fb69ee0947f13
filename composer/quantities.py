"""Amounts as Kubernetes writes them: whole numbers, and quantities such as "20Gi" or "1500m". Pure.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, TypeAlias

Amount: TypeAlias = int | str
"""A whole number, or the text of a quantity; both count in the same unit."""

_BINARY = {name: Fraction(1024**power) for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_LARGE = {name: Fraction(1000**power) for power, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)}
_SMALL = {name: Fraction(1, 1000**power) for power, name in enumerate(("m", "u", "n"), 1)}
_SUFFIXES = {"": Fraction(1), **_BINARY, **_LARGE, **_SMALL}
# As many digits as the API server itself can tell apart.
_QUANTITY = re.compile(
    r"([+-]?)(\d{1,19}(?:\.\d{0,9})?|\.\d{1,9})(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE])?)", re.ASCII
)


def measured(value: Any) -> Fraction | None:
    """Return how much an amount is, exactly; None for what is neither a whole number nor a quantity."""
    match value:
        case bool():
            return None
        case int():
            return Fraction(value)
        case str():
            return _read(value)
        case _:
            return None


def _read(text: str) -> Fraction | None:
    quantity = _QUANTITY.fullmatch(text)
    if quantity is None:
        return None
    sign, number, exponent, suffix = quantity.groups()
    unit = Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return (-1 if sign == "-" else 1) * Fraction(number) * unit
