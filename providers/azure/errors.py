"""What ARM refuses, as the five failure classes. Pure.

Codes: "Troubleshoot common Azure deployment errors", "Common REST API error codes", and the codes that recorded
answers of Microsoft.DBforPostgreSQL carry. A 202 is no acceptance: the same codes come out of a poll, minutes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from providers.external.cloud_api.refusals import AlreadyThere, NotThere, clean, sentence
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient

_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=10)

THROTTLING = frozenset({"SubscriptionRequestsThrottled"})
# Another change is at work on the server, or took it away from this one: the same request is right a little later.
BUSY = frozenset({
    "ServerIsBusy", "ServerBusy", "ServerIsNotReady", "ServerGroupDropping", "AnotherOperationInProgress", "Conflict",
    "OperationCancelled", "InternalServerError",
})  # fmt: skip
ABSENT = frozenset({"ResourceNotFound", "NotFound", "ResourceGroupNotFound", "ParentResourceNotFound"})
TAKEN = frozenset({"ServerNameAlreadyExists", "PreconditionFailed", "DatabaseAlreadyExists"})
QUOTA = frozenset({
    "QuotaExceeded", "ResourceQuotaExceeded", "AllocationFailed", "ZonalAllocationFailed", "SkuNotAvailable",
    "LocationIsOfferRestricted", "RegionIsOfferRestricted", "OverconstrainedAllocationRequest",
})  # fmt: skip
DENIED = frozenset({
    "AuthorizationFailed", "LinkedAuthorizationFailed", "RequestDisallowedByPolicy", "SubscriptionNotFound",
    "MissingSubscriptionRegistration", "SubscriptionNotRegistered", "ReadOnlyDisabledSubscription",
})  # fmt: skip
CREDENTIALS = frozenset({
    "InvalidAuthenticationToken", "InvalidAuthenticationTokenTenant", "ExpiredAuthenticationToken",
    "AuthenticationFailed",
})  # fmt: skip
PASSWORD = frozenset({"PasswordTooLong", "PasswordTooShort", "PasswordNotComplex"})
INVALID = frozenset({
    "BadRequest", "InvalidParameterValue", "InvalidRequestContent", "InvalidResourceType", "InvalidResourceLocation",
    "InvalidTemplate", "LocationRequired", "LocationNotAvailableForResourceType", "MethodNotAllowed",
    "MissingRequiredParameter", "NoRegisteredProviderFound", "ParameterOutOfRange", "PropertyChangeNotAllowed",
})  # fmt: skip
_LOCKED = "ScopeLocked"
_REMEDIES = {
    "AuthorizationFailed": "give the identity the roles of deploy/iam/azure, and wait some minutes until it counts",
    "LinkedAuthorizationFailed": "give the identity the role of deploy/iam/azure/optional at the subnet, zone or"
    " identity that is named",
    "RequestDisallowedByPolicy": "a policy of Azure forbids it; ask whoever assigned it",
    "SubscriptionNotFound": "the identity does not see this subscription",
    "MissingSubscriptionRegistration": "register Microsoft.DBforPostgreSQL in the subscription",
    "SubscriptionNotRegistered": "register Microsoft.DBforPostgreSQL in the subscription",
    "SkuNotAvailable": "this SKU is not to be had there now; choose another one, or another location",
    "RegionIsOfferRestricted": "this location is closed to the subscription; ask Microsoft, or choose another",
    "LocationIsOfferRestricted": "this location is closed to the subscription; ask Microsoft, or choose another",
    "AllocationFailed": "Azure has none left there; wait, or choose another SKU or zone",
    "ServerNameAlreadyExists": "names of servers are one for all of Azure",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that is a refusal: HTTP status, ARM's code and sentence, how long it wants to be left alone."""

    status: int
    code: str
    message: str
    retry_after: str = field(default="")


def refused(status: int, body: Any, headers: Mapping[str, str]) -> Refused:
    """Read the refusal out of an answer: `{"error": {"code", "message", "details"}}`, of which details know more.

    "ResourceDeploymentFailure" and "Failed" wrap the cause as the first of `details`.
    """
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else (body if isinstance(body, dict) else {})
    details = error.get("details")
    inner = details[0] if isinstance(details, list) and details and isinstance(details[0], dict) else {}
    code, message = str(error.get("code") or ""), str(error.get("message") or "")
    known = THROTTLING | BUSY | ABSENT | TAKEN | QUOTA | DENIED | CREDENTIALS | PASSWORD | INVALID | {_LOCKED}
    if code not in known and inner.get("code"):
        code, message = str(inner["code"]), str(inner.get("message") or message)
    return Refused(status, code, message, headers.get("Retry-After", ""))


def failure_of(refusal: Refused, action: str, *, hide: Iterable[str] = ()) -> Failure:
    """Return the failure class of a refusal; `action` says what was tried, `hide` are secret values."""
    remedy = _REMEDIES.get(refusal.code, "")
    text = sentence(action, clean(refusal.message, hide), refusal.code or str(refusal.status))
    text = f"{text}; {remedy}" if remedy else text
    by_code = _by_code(refusal, text, is_deletion=action.startswith("delete "))
    return by_code or _by_status(refusal, text)


def _by_code(  # noqa: PLR0911 - one row for each class of codes
    refusal: Refused, text: str, *, is_deletion: bool
) -> Failure | None:
    code = refusal.code
    if code in THROTTLING or refusal.status == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(text, after=pause(refusal.retry_after))
    if code == _LOCKED and is_deletion:
        return Blocked("DeleteBlocked", f"{text}; take the lock away first")
    if code == _LOCKED:
        return Terminal("AccessDenied", f"{text}; take the lock away, or let it be read only here too")
    if code in BUSY:
        return Blocked("CloudBusy", text)
    if code in ABSENT:
        return NotThere(text, code=code)
    if code in TAKEN:
        return AlreadyThere(text, code=code)
    if code in QUOTA:
        return Blocked("QuotaExceeded", text)
    reasons = (
        ("AccessDenied", DENIED),
        ("CredentialsInvalid", CREDENTIALS),
        ("InvalidPassword", PASSWORD),
        ("InvalidValue", INVALID),
    )
    return next((Terminal(reason, text) for reason, codes in reasons if code in codes), None)


def _by_status(refusal: Refused, text: str) -> Failure:
    """Return the class of a code that is not known here; where even the status says little it may pass."""
    match refusal.status:
        case HTTPStatus.BAD_REQUEST | HTTPStatus.UNPROCESSABLE_ENTITY:
            return Terminal("InvalidValue", text)
        case HTTPStatus.UNAUTHORIZED:
            return Terminal("CredentialsInvalid", text)
        case HTTPStatus.FORBIDDEN:
            return Terminal("AccessDenied", text)
        case HTTPStatus.CONFLICT:
            return Blocked("CloudBusy", text)
        case HTTPStatus.PRECONDITION_FAILED:
            return AlreadyThere(text, code=refusal.code)
        case _:
            return Transient(text, is_momentary=refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR)


def is_busy(refusal: Refused) -> bool:
    """Return whether an operation ended for a reason that passes by itself."""
    return refusal.code in BUSY or refusal.code in THROTTLING


def pause(retry_after: str, least: timedelta = _PAUSE) -> timedelta:
    """Return how long ARM wants to be left alone, by Retry-After in seconds; between 5 s and 10 min."""
    try:
        asked_for = timedelta(seconds=float(retry_after))
    except (ValueError, OverflowError):
        return least
    return min(max(asked_for, least), _LONGEST_PAUSE)
