"""The api-versions of the resource provider, and from which of them on a field is there. Pure.

Recorded: 2021-06-01, 2022-12-01. From the models of azure-mgmt-postgresqlflexibleservers 3.0.0: 2026-10-01. Those
between them are cut at the fields that the two packages show.
"""

from typing import Any

VERSIONS = ("2021-06-01", "2022-12-01", "2024-08-01", "2025-08-01", "2026-10-01")
GROUP_VERSIONS = ("2020-06-01", "2021-04-01", "2022-09-01", "2024-03-01")
LOCK_VERSIONS = ("2016-09-01", "2020-05-01")
ACTIVITY_VERSIONS = ("2015-04-01",)
SUBSCRIPTION_VERSIONS = ("2020-01-01", "2022-12-01")
ENGINES = {
    "2021-06-01": ("13", "14"),
    "2022-12-01": ("13", "14"),
    "2024-08-01": ("13", "14", "15", "16", "17"),
    "2025-08-01": ("13", "14", "15", "16", "17", "18"),
    "2026-10-01": ("13", "14", "15", "16", "17", "18"),
}
"""The PostgreSQL versions that a server can be created with."""

ADDED = {
    "authConfig": "2022-12-01",
    "dataEncryption": "2022-12-01",
    "highAvailability.standbyAvailabilityZone": "2022-12-01",
    "replicationRole": "2022-12-01",
    "replicaCapacity": "2022-12-01",
    "sourceServerResourceId": "2021-06-01",
    "replica": "2024-08-01",
    "storage.autoGrow": "2024-08-01",
    "storage.iops": "2024-08-01",
    "storage.throughput": "2024-08-01",
    "storage.tier": "2024-08-01",
    "storage.type": "2024-08-01",
    "privateEndpointConnections": "2024-08-01",
}
"""The first version that has a property; what is not here is in all of them."""
WRITABLE = {
    **ADDED,
    "network.publicNetworkAccess": "2024-08-01",
    "version on update": "2022-12-01",
}
"""The first version that lets a property be chosen."""
SYSTEM_DATA_SINCE = "2022-12-01"
STANDBY_STATE_SINCE = "2024-08-01"
"""From here on the state of a standby may be an empty text; when it is, is ours."""
_LATER_STATES_SINCE = "2025-08-01"
_EARLIER_STATES = {"Provisioning": "Starting", "Restarting": "Starting", "Inaccessible": "Disabled"}


def state_name(state: str, api_version: str) -> str:
    """Return a state by the name that an api-version has for it; three came with 2025-08-01."""
    return state if api_version >= _LATER_STATES_SINCE else _EARLIER_STATES.get(state, state)


def without_later(properties: dict[str, Any], api_version: str, *, prefix: str = "") -> dict[str, Any]:
    """Return properties without those that an api-version does not have yet, nor those without a value."""
    kept: dict[str, Any] = {}
    for name, value in properties.items():
        path = f"{prefix}{name}"
        if value is None or ADDED.get(path, "") > api_version:
            continue
        is_tree = isinstance(value, dict)
        kept[name] = without_later(value, api_version, prefix=f"{path}.") if is_tree else value
    return kept
