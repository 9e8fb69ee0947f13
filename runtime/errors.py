"""Everything that can go wrong, as types. Pure.

Two trees. `ApiError` is what the API server answered (or did not answer); `Failure` is what a reconcile makes of
any trouble, and is all that the back-off policy looks at:

    Failure
    ├── Transient          try again, backed off (5xx, broken connection, time-out)
    ├── Throttled(after)   try again after `after`
    ├── Conflict           somebody wrote first: try again at once; backed off when it repeats
    ├── Blocked(reason)    waits for something that is not there yet; woken by a watch, polled slowly
    └── Terminal(reason)   only a person's change can help
"""

# ruff: noqa: N818  # an error is named as the fact that it states
from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


class Failure(Exception):
    """Base of the five classes of trouble a reconcile can end in."""


class Transient(Failure):
    """Try again, backed off.

    `is_momentary`: the connection broke or the other side failed at once, without a time-out, so that a call which
    changes nothing may be sent again within the same pass.
    """

    def __init__(self, message: str, *, is_momentary: bool = False) -> None:
        super().__init__(message)
        self.is_momentary = is_momentary


class Throttled(Failure):
    """The other side asked for a pause of `after`."""

    def __init__(self, message: str, *, after: timedelta) -> None:
        super().__init__(message)
        self.after = after


class Conflict(Failure):
    """Our view was old: read again at once, and later when that happens again and again."""


class Blocked(Failure):
    """Something named in `reason` (a condition reason) is missing or not ready."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Terminal(Failure):
    """Nothing but a changed input helps; `reason` is a condition reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `status.details.causes`: for apply conflicts `message` names the manager and `field` the field."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """The API server refused a request.

    `status` is the HTTP code (0 when no answer came), `reason` the Status reason, `causes` its details.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after


class NotFound(ApiError):
    """404: the object, its namespace or its kind is absent."""


class AlreadyExists(ApiError):
    """409 AlreadyExists: a create met an object of that name."""


class WriteConflict(ApiError):
    """409 Conflict on resourceVersion or uid, or a failed JSON-patch `test` (422 Invalid with such a message)."""


class ApplyConflict(ApiError):
    """409 Conflict of an apply without force: `causes` name each field and its manager."""


class NamespaceTerminating(ApiError):
    """403 with cause NamespaceTerminating: creates in a namespace that is being deleted."""


class Forbidden(ApiError):
    """401 or 403 otherwise."""


class NotGranted(Forbidden):
    """403 by the authorizer: no role that is bound to us grants this verb there."""


class Gone(ApiError):
    """410: the resource version is too old; relist."""


class Invalid(ApiError):
    """400, 422, and the 500 "failed to create typed patch object": the body is at fault, resending is useless."""


class InvalidName(Invalid):
    """Nothing was sent: no object can have that name, and as a part of a path it would mean another request."""


class TooManyRequests(ApiError):
    """429, with `retry_after` when the server said it."""


class Unavailable(ApiError):
    """Any other 5xx."""


class NotLeading(ApiError):
    """Nothing was sent, since the Lease that allowed it is over."""


class NoAnswer(ApiError):
    """Time-out or broken connection: the outcome of a write is unknown."""
