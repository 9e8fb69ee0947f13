"""How long a step of a cloud usually takes, as far as that is documented or was measured. Pure.

Of AWS as `providers.aws.instances.states.expected` has it, for a single instance without many data. Of Azure a create
and a small update of a flexible server, measured. Google documents no duration; its own connector for Workflows waits
for 30 minutes (cloud.google.com/workflows/docs/reference/googleapis/sqladmin/v1/instances/insert). What depends on the
data, as a restore, is longer with many. A database on premises takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_USUAL: Final[Mapping[tuple[str, str], str]] = {
    ("aws", "Creating"): "usually 5 min",
    ("aws", "Updating"): "usually 6 min",
    ("aws", "Restoring"): "usually 20 min",
    ("aws", "Rotating"): "usually 2 min",
    ("aws", "Deleting"): "usually 5 min",
    ("azure", "Creating"): "usually 6 min",
    ("azure", "Updating"): "usually 1 min",
    ("gcp", "Creating"): "up to 30 min",
    ("onprem", "Creating"): "usually seconds",
    ("onprem", "Updating"): "usually seconds",
    ("onprem", "Deleting"): "usually seconds",
}


def usual_time(cloud: str, reason: str) -> str:
    """Return in words how long a cloud takes for what a reason says, empty where nothing is known."""
    return _USUAL.get((cloud, reason), "")
