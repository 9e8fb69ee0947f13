"""What tests choose of Azure's conduct beside its rules and what every cloud has of it. Pure."""

from typing import Annotated, Literal

import msgspec

from devcloud.simulator.behaviour import Behaviour, Throttle


class ArmThrottle(Throttle, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token buckets of ARM for a subscription and a principal in a region, by the real time.

    The figures are those of "Understand how Azure Resource Manager throttles requests". `burst` is that of writes and
    deletes, `accounts` are subscriptions.

    Attributes:
        read_burst: How many reads may come at once.
        delete_per_s: Deletes a second; their burst is that of writes.
    """

    read_per_s: float = 25.0
    write_per_s: float = 10.0
    burst: int = 200
    read_burst: int = 250
    delete_per_s: float = 10.0


class AzureBehaviour(Behaviour, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; `list_lag_s` and `get_lag_s` are those of servers.

    Attributes:
        throttle: None for no limit.
        page_size: How many entries a page of a list has.
        busy: How a second operation in a server is answered, for databases, rules and parameters: accepted, and then
            `Failed` in its poll with ServerIsBusy (recorded, 2025-08-01), or refused at once with 409. A second
            operation of the server itself is always refused at once.
        children_overlap: Whether a database, a rule and a parameter may be worked on at the same time (recorded in
            2021-06-01 and 2022-12-01); at most one of each kind.
        signed_urls: Whether the URLs of operations carry a signature of 3,000 characters (recorded, 2026-01).
        retry_after_s: What every `Retry-After` of an operation says, 0 for clients that shall ask at once; None is what
            was recorded for each kind, times the clock's `durations`.
        lost_status: What a poll of a handle that is not known is answered with.
        honours_if_none_match: Whether `If-None-Match: *` refuses a PUT of what exists. No recording shows it.
        no_capacity: Sizes of compute of which there are none left: their creation is accepted, and fails.
        is_registered: Whether the subscription is registered with the resource provider; else writes are refused.
        activity_lag_s: After how long an entry of the activity log is shown.
        subscription_disabled: Whether servers show `Disabled`, and every write is refused.
    """

    throttle: ArmThrottle | None = ArmThrottle()
    page_size: Annotated[int, msgspec.Meta(ge=1)] = 100
    busy: Literal["fail", "refuse"] = "fail"
    children_overlap: bool = False
    signed_urls: bool = True
    retry_after_s: int | None = None
    lost_status: Literal[404, 410] = 404
    honours_if_none_match: bool = False
    no_capacity: tuple[str, ...] = ()
    is_registered: bool = True
    activity_lag_s: float = 0.0
    subscription_disabled: bool = False
