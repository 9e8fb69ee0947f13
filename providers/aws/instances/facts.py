"""What RDS showed of an instance beyond the spec's fields. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.external.observation import Value
from providers.external.sql.alternating import Roles


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
