"""What tests choose of Cloud SQL's conduct beside its rules and what every cloud has of it. Pure."""

from typing import Literal

import msgspec

from devcloud.simulator.behaviour import Behaviour


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Queries of a caller in a project.

    Attributes:
        per_minute: 180 by default (cloudquery, thread 1351).
        burst: How many at once: the limit is held in shorter windows too (cloud-sql-go-connector, thread 415).
        status: 429, or the 403 of older errors, with the same reason.
    """

    per_minute: float = 180.0
    burst: int = 15
    status: Literal[403, 429] = 429


class GcpBehaviour(Behaviour, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; `list_lag_s` is that of instances.list, `get_lag_s` of instances.get.

    Attributes:
        quota: None for no limit.
        unreachable_regions: What instances.list leaves out, with a warning in an answer of 200.
        forbidden_when_gone: Patterns of instance names that answer 403 instead of 404 once they are gone.
        dropped_settings: Settings that are accepted and never kept nor shown, as `edition` for some instances.
        name_reserved_days: How long the name of a deleted instance stays taken. Older pages say a week, the present one
            says that it is free at once: 0.
        in_progress_status: The HTTP status beside an open operation; the reason is the same.
        failing_backups: Patterns of names of instances whose backups and final backups fail.
    """

    quota: Quota | None = None
    unreachable_regions: tuple[str, ...] = ()
    forbidden_when_gone: tuple[str, ...] = ()
    dropped_settings: tuple[str, ...] = ()
    name_reserved_days: float = 7.0
    in_progress_status: Literal[403, 409] = 409
    failing_backups: tuple[str, ...] = ()
