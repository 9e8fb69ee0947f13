"""What tests choose of RDS's conduct beside its rules and what every cloud has of it: quotas, capacity. Pure."""

from typing import Annotated, Literal

import msgspec

from devcloud.aws.lifecycle.master_password import MIDDLE_S, RESET_S
from devcloud.simulator.behaviour import Behaviour, Throttle


class Quotas(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The quotas that requests meet ("Quotas and constraints for Amazon RDS" of the User Guide has these defaults)."""

    instances: int = 40
    snapshots: int = 100
    storage_gib: int = 100_000
    subnet_groups: int = 50
    parameter_groups: int = 50


class AwsThrottle(Throttle, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rate limit that answers with one of AWS's codes."""

    code: Literal["Throttling", "ThrottlingException", "RequestLimitExceeded"] = "Throttling"


class AwsBehaviour(Behaviour, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; `list_lag_s` is that of DescribeDBInstances without a name, `get_lag_s` with one.

    Attributes:
        list_without_tags: Patterns of identifiers whose TagList such a list lacks.
        throttle: None for no limit.
        quotas: How much there may be.
        no_capacity: Classes of which there are none left.
        hidden_versions: Engine versions that are not offered any more; present instances keep theirs.
        password_after_s: How long after ModifyDBInstance a new master password takes the former one's place, before
            the clock's `durations`: 0 is with the request itself, while the instance still shows its former status; the
            most is the reset's end. By default it is in the middle of `resetting-master-credentials`.
        storage_initialization_s: How long an instance shows `storage-initialization` after a restore, before the
            clock's `durations`; 0 for never.
        failing_snapshots: Patterns of identifiers of manual and final snapshots that end `failed`. A deletion goes on
            all the same, which is the worst for whoever relies on its final snapshot; AWS does not say what happens.
    """

    list_without_tags: tuple[str, ...] = ()
    throttle: AwsThrottle | None = None
    quotas: Quotas = Quotas()
    no_capacity: tuple[str, ...] = ()
    hidden_versions: tuple[str, ...] = ()
    password_after_s: Annotated[float, msgspec.Meta(ge=0, le=RESET_S)] = MIDDLE_S
    storage_initialization_s: float = 0.0
    failing_snapshots: tuple[str, ...] = ()
