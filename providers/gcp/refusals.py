"""What Google's APIs answer, as the five failure classes. Pure.

A refusal is `{"error": {"code", "message", "status", "errors": [{"reason", "domain", "message"}]}}`; one HTTP status
stands for several things, which `reason` distinguishes (recorded answers; "Error messages" of the Cloud SQL Admin API).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient

_PAUSE = timedelta(seconds=10)
_LONGEST_PAUSE = timedelta(minutes=5)
_LONGEST = 600
_SERVER_ERROR, _TOO_MANY, _UNAUTHENTICATED, _DENIED, _ABSENT, _CONFLICT, _STALE = 500, 429, 401, 403, 404, 409, 412

THROTTLING = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "RATE_LIMIT_EXCEEDED"})
BUSY = frozenset({"operationInProgress", "invalidState"})
THERE = frozenset({"instanceAlreadyExists"})
ABSENT = frozenset({"instanceDoesNotExist", "operationDoesNotExist", "notFound"})
QUOTA = frozenset({"quotaExceeded"})
STALE = frozenset({"staleData"})
# What an operation that ended says in its error; the rest are the spec's.
PASSING = frozenset({
    "INTERNAL_ERROR", "internalError", "INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "ABORTED",
    "CANCELLED", "DEADLINE_EXCEEDED", "backendError", "serverException",
})  # fmt: skip

_REMEDIES = {
    "accessNotConfigured": "enable the Cloud SQL Admin API in the project",
}


class Denied(Terminal):
    """The credentials may not do it, or the thing is gone: Google answers both alike; a list distinguishes them."""

    def __init__(self, message: str) -> None:
        super().__init__("AccessDenied", message)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an answer says: HTTP status, reason, sentence, and for how long to leave Google alone if it says so."""

    status: int
    reason: str = ""
    said: str = ""
    pause: timedelta | None = None


def refusal_in(status: int, body: str, headers: Mapping[str, str]) -> Refusal:
    """Read an answer that is no success; one that is no JSON has no reason."""
    try:
        error = json.loads(body).get("error") or {}
    except (ValueError, AttributeError):
        error = {}
    if not isinstance(error, dict):
        # The token endpoints write {"error": "invalid_grant", "error_description": ...} (RFC 6749, section 5.2).
        return Refusal(status, str(error), str(error), _pause(headers))
    return Refusal(status, _reason(error), str(error.get("message", "")), _pause(headers))


def _reason(error: Mapping[str, Any]) -> str:
    members = [member for member in error.get("errors") or () if isinstance(member, dict)]
    details = [detail for detail in error.get("details") or () if isinstance(detail, dict)]
    reasons = [str(part.get("reason", "")) for part in (*members, *details) if part.get("reason")]
    return reasons[0] if reasons else str(error.get("status", ""))


def _pause(headers: Mapping[str, str]) -> timedelta | None:
    try:
        return min(timedelta(seconds=float(headers.get("retry-after", ""))), _LONGEST_PAUSE)
    except (ValueError, OverflowError):
        return None


def clean(text: str, hide: Iterable[str]) -> str:
    """Return a sentence of Google's in one line, without secret values, cut to 600 characters."""
    for secret in hide:
        if secret:
            text = text.replace(secret, "[redacted]")
    return " ".join(text.split())[:_LONGEST]


def failure_of(refusal: Refusal, action: str, *, hide: Iterable[str] = ()) -> Failure:
    """Return the failure class of a refusal; `action` says what was tried, `hide` are secret values.

    A status without a reason that is known here counts by itself.
    """
    reason, said = refusal.reason, clean(refusal.said, hide) or "it was refused"
    text = f"cannot {action}: {said.rstrip('.')} ({reason or refusal.status})"
    remedy = _REMEDIES.get(reason, "")
    text = f"{text}; {remedy}" if remedy else text
    return _by_reason(refusal, text) or _by_status(refusal, text)


def _by_reason(refusal: Refusal, text: str) -> Failure | None:  # noqa: PLR0911 - each return is a row of the table
    reason = refusal.reason
    if reason in THROTTLING or refusal.status == _TOO_MANY:
        return Throttled(text, after=max(refusal.pause or _PAUSE, _PAUSE))
    if reason in BUSY:
        return Blocked("CloudBusy", text)
    if reason in THERE or reason.endswith("AlreadyExists"):
        return AlreadyThere(text, code=reason)
    if (reason in ABSENT or reason.endswith("DoesNotExist")) and refusal.status == _ABSENT:
        return NotThere(text, code=reason)
    if reason in QUOTA:
        return Blocked("QuotaExceeded", text)
    if reason in STALE or refusal.status == _STALE:
        return Conflict(text)
    return None


def _by_status(refusal: Refusal, text: str) -> Failure:  # noqa: PLR0911 - as above
    status = refusal.status
    if status >= _SERVER_ERROR:
        return Transient(text, is_momentary=True)
    match status:
        case 401:
            return Terminal("CredentialsInvalid", f"{text}; renew the credentials")
        case 403:
            return Denied(text)
        case 404:
            # Without a reason it may be any other page of a proxy: nothing is known to be absent.
            return Transient(text)
        case 409:
            return AlreadyThere(text, code=refusal.reason) if _says_there(refusal) else Blocked("CloudBusy", text)
        case 400:
            return _invalid(refusal, text)
        case _:
            return Transient(text)


def _says_there(refusal: Refusal) -> bool:
    return any(text in refusal.said.lower() for text in ("already exists", "exists with the same name"))


def _invalid(refusal: Refusal, text: str) -> Failure:
    said = refusal.said.lower()
    if _says_there(refusal):
        return AlreadyThere(text, code=refusal.reason)
    if "deletion protection" in said or "protected from deletion" in said or "is protected" in said:
        return Blocked("DeleteBlocked", f"{text}; set deletionProtectionEnabled to false first")
    if ("replica" in said and "delete" in said) or "depend" in said or "owns" in said:
        return Blocked("DeleteBlocked", text)
    # A flag may be called after a password, too.
    if "password" in said and "flag" not in said:
        return Terminal("InvalidPassword", text)
    if "not running" in said or "operation in progress" in said or "another operation" in said:
        return Blocked("CloudBusy", text)
    return Terminal("InvalidValue", text)


def operation_failure(operation: Mapping[str, Any], action: str) -> Failure | None:
    """Return why an operation that is DONE failed, None where it did not: DONE is no success by itself.

    What may pass is Blocked, for the next try to find out; all else is the spec's.
    """
    errors = (operation.get("error") or {}).get("errors") or ()
    if not errors:
        return None
    code = str(errors[0].get("code", ""))
    said = clean(str(errors[0].get("message", "")), ()) or "no sentence came with it"
    text = f"{action} failed: {said.rstrip('.')} ({code or 'no code'})"
    return _by_sentence(said.lower(), action, text) or _by_code(code, text)


def _by_sentence(said: str, action: str, text: str) -> Failure | None:
    """Return what PostgreSQL's own words say, which come under the code of any internal error; None for others."""
    if "backup" in said and "delete" in action.lower():
        return Blocked("BackupImpossible", text)
    if "depend on it" in said or "being accessed by other users" in said:
        return Blocked("DeleteBlocked", text)
    if action != "Delete" and 'role "' in said and "does not exist" in said:
        return Blocked("ReferenceNotFound", f"{text}; create that role with SQL, it is tried again by itself")
    return None


def _by_code(code: str, text: str) -> Failure:
    if code in PASSING:
        return Blocked("CloudBusy", text)
    if code in QUOTA:
        return Blocked("QuotaExceeded", text)
    if code in THERE:
        return AlreadyThere(text, code=code)
    return Terminal("InvalidValue", text)
