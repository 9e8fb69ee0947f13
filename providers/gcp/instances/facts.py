"""What Cloud SQL showed of an instance beyond the spec's fields, and how it writes versions and numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Answer: TypeAlias = Mapping[str, Any]
"""A resource as the Cloud SQL Admin API writes it in JSON: numbers of 64 bits are texts."""

PORT = 5432
"""Cloud SQL for PostgreSQL listens on no other port, and no answer names one."""
_MAJOR = re.compile(r"POSTGRES_(\d+)(?:_(\d+))?")


@dataclass(frozen=True, slots=True)
class Facts:
    """One answer of instances.get, as far as decisions need it.

    `settings_version` is the optimistic lock of a change; `window` is day and hour of the maintenance window, day 0 for
    none; `auto_resize` says that Cloud SQL may have grown the disk.
    """

    state: str
    activation: str
    settings_version: str
    version: str
    disk_gb: int
    auto_resize: bool
    edition: str
    protected: bool
    labels: Mapping[str, str]
    window: tuple[int, int] = (0, 0)
    private_network: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)


def number(value: Any) -> int:
    """Return a number that JSON may hold as a text; 0 for none."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def major_of(version: str) -> tuple[int, int]:
    """Return the major version: `POSTGRES_16` as (16, 0), `POSTGRES_9_6` as (9, 6); (0, 0) for none."""
    match = _MAJOR.match(version)
    if match is None:
        return 0, 0
    return int(match[1]), int(match[2] or 0) if match[1] == "9" else 0


def settings_of(answer: Answer) -> Answer:
    """Return `settings` of an instance."""
    settings: Answer = answer.get("settings") or {}
    return settings


def member(answer: Answer, name: str) -> Answer:
    """Return an object within another one, an empty one where it is missing."""
    value: Answer = answer.get(name) or {}
    return value


def addresses(answer: Answer) -> dict[str, str]:
    """Return the addresses of an instance by their type (PRIMARY, PRIVATE, OUTGOING), without those that retire."""
    return {
        str(mapping.get("type", "")): str(mapping["ipAddress"])
        for mapping in answer.get("ipAddresses") or ()
        if mapping.get("ipAddress") and not mapping.get("timeToRetire")
    }
