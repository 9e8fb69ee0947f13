"""Values of PostgreSQL's parameters as Azure writes them. Pure.

Azure takes bare numbers in each parameter's own unit, which its answer names (`unit`: 8KB, KB, MB, ms, s, min), and on
or off for switches; people write 64MB, 5min and true, as postgresql.conf does (manual, "Setting Parameters").
"""

from __future__ import annotations

from providers.external.cloud_api.quantities import in_units

_ON, _OFF = frozenset({"on", "true", "yes", "1"}), frozenset({"off", "false", "no", "0"})


def as_azure_writes(value: str, unit: str, data_type: str) -> str:
    """Return a parameter's value as Azure wants and shows it; what is no quantity and no switch stays as it is.

    A quantity that is no whole number of units stays as well: Azure refuses it with the range that it allows.
    """
    text = value.strip()
    if data_type.lower() == "boolean":
        return "on" if text.lower() in _ON else "off" if text.lower() in _OFF else value
    return in_units(text, unit) or value


def same_value(first: str, second: str) -> bool:
    """Return whether two values mean the same: letter case, and of a list the blanks, do not count."""
    return _plain(first) == _plain(second)


def _plain(value: str) -> list[str]:
    return [part.strip().lower() for part in value.split(",")]
