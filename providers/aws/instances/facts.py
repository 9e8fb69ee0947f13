"""What RDS showed of an instance beyond the spec's fields, and how it writes versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.aws.instances.roles import Roles
from providers.external.observation import Value


@dataclass(frozen=True, slots=True)
class Facts:
    """One answer of DescribeDBInstances, as far as decisions need it.

    `pending` is the queue by the spec's paths; what the spec has no field for stands under RDS's own name. `upgrading`:
    another major version is asked for than the one that runs. `roles` is what a session as the administrator saw, None
    where there was none; `administrator_refused` that the server refuses the password that the provider alone knows;
    `kept_elsewhere` that Secrets Manager keeps the administrator's password.
    """

    arn: str
    status: str
    address: str
    port: int
    username: str
    database: str
    engine_version: str
    allocated_storage: int
    window: str
    protected: bool
    tags: Mapping[str, str]
    pending: Mapping[str, Value] = field(default_factory=dict)
    allow_major: bool = False
    upgrading: bool = False
    roles: Roles | None = None
    administrator_refused: bool = False
    kept_elsewhere: bool = False


def version_covers(wanted: str, running: str) -> bool:
    """Return whether a version is the wanted one, by whole dotted parts: "16" covers "16.4", "1" does not."""
    parts = wanted.split(".")
    return running.split(".")[: len(parts)] == parts


def major_of(version: str) -> str:
    """Return the major version; of PostgreSQL since 10 the first number."""
    return version.split(".", 1)[0]


def satisfies(wanted: str, running: str) -> bool:
    """Return whether a running version needs no change: the wanted one, or a later minor of the same major."""
    if version_covers(wanted, running):
        return True
    if major_of(wanted) != major_of(running):
        return False
    return _numbers(running) > _numbers(wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
