"""How values of the spec are written into the JSON of a DatabaseInstance. Pure."""

from __future__ import annotations

from typing import Any

from providers.gcp.instances.flags import as_cloud_sql_writes
from providers.gcp.models import DenyMaintenancePeriod

# JSON writes numbers of 64 bits as texts.
_AS_TEXT = frozenset({"dataDiskSizeGb", "storageAutoResizeLimit"})


def put(body: dict[str, Any], place: str, value: Any) -> None:
    """Put a value into a body; `place` is the names of the objects around it and its own, joined by dots.

    Keys of labels hold no dots: whatever stands in one is encoded.
    """
    *parents, last = place.split(".")
    for name in parents:
        body = body.setdefault(name, {})
    body[last] = value


def written(name: str, value: Any) -> Any:
    """Return the value of a field, named as in the spec, as the API takes it."""
    match value:
        case tuple() if name == "authorizedNetworks":
            return [{"value": network} for network in value]
        case tuple():
            return list(value)
        case dict() if name == "databaseFlags":
            return [{"name": flag, "value": as_cloud_sql_writes(flag, value[flag])} for flag in sorted(value)]
        case DenyMaintenancePeriod():
            return [{"startDate": value.start_date, "endDate": value.end_date, "time": value.time}]
        case _:
            return str(value) if name in _AS_TEXT else value
