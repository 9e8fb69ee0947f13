"""Refusals in Google's words: the JSON envelope with `errors[].reason`, and a sentence for each reason. Pure.

The form of the envelope and `instanceDoesNotExist` are recorded (Config Connector's runs of 2024 and 2025); the other
sentences are those that users quote in public threads, named beside each. The limits are those of the page
"Standardized error responses" of Google's API infrastructure.
"""

from typing import Any

import msgspec

from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Answer, Refusal, json_answer

STATUSES = {
    "required": 401,
    "authError": 401,
    "notAuthorized": 403,
    "forbidden": 403,
    "quotaExceeded": 403,
    "accessNotConfigured": 403,
    "dailyLimitExceeded": 403,
    "userRateLimitExceeded": 403,
    "instanceDoesNotExist": 404,
    "notFound": 404,
    "operationDoesNotExist": 404,
    "instanceAlreadyExists": 409,
    "operationInProgress": 409,
    "invalidState": 409,
    "staleData": 412,
    "rateLimitExceeded": 429,
    "internalError": 500,
    "backendError": 503,
    "serverException": 503,
}
"""The HTTP status of each reason; of one that is not here it is 400."""
FAILED_OPERATIONS = (
    "ERROR_RDBMS", "INTERNAL_ERROR",
    "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN",
)  # fmt: skip
"""Codes of an operation that ended with an error: terraform-provider-google 12912 has UNKNOWN, without a sentence;
the second line is of google.rpc.Code, those that may pass."""
_CANONICAL = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
# These come from the layer before Cloud SQL, which adds the canonical status; Cloud SQL's own do not (recorded 404).
_BEFORE_CLOUD_SQL = frozenset({"required", "authError", "badRequest", "rateLimitExceeded", "backendError"})


class GcpFault(Fault, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault whose `code` is one of Google's reasons; its HTTP status follows from it."""

    code: str = "internalError"
    message: str = "An internal error has occurred. Retry your request."


def envelope(refusal: Refusal, *, number: str = "") -> Answer:
    """Return the answer of a refusal.

    Args:
        refusal: Its code is Google's reason.
        number: The project's number, for the details of a quota.
    """
    status = refusal.status or STATUSES.get(refusal.code, 400)
    item: dict[str, Any] = {"message": refusal.message, "domain": "global", "reason": refusal.code}
    if refusal.code in {"required", "authError"}:
        item |= {"location": "Authorization", "locationType": "header"}
    if refusal.code == "staleData":
        item |= {"location": "If-Match", "locationType": "header"}
    error: dict[str, Any] = {"code": status, "message": refusal.message, "errors": [item]}
    if refusal.code in _BEFORE_CLOUD_SQL:
        error["status"] = _CANONICAL[status]
    if refusal.code == "rateLimitExceeded":
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": {"service": "sqladmin.googleapis.com", "consumer": f"projects/{number}"},
            }
        ]
    return json_answer({"error": error}, status=status)


def oauth_refusal(refusal: Refusal) -> Answer:
    """Return the answer of a refused token request (RFC 6749, section 5.2)."""
    content = {"error": refusal.code, "error_description": refusal.message}
    return Answer(status=refusal.status or 400, body=msgspec.json.encode(content))


def no_credentials() -> Refusal:
    """Return the refusal of a request without a token."""
    return Refusal(
        "required",
        "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other "
        "valid authentication credential.",
    )


def bad_credentials() -> Refusal:
    """Return the refusal of an unknown or expired token."""
    return Refusal(
        "authError",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    )


def not_authorized() -> Refusal:
    """Return what a caller without the permission meets (terraform-provider-google, thread 1069)."""
    return Refusal("notAuthorized", "The client is not authorized to make this request.")


def no_instance() -> Refusal:
    """Return the refusal for an instance that there is not (recorded)."""
    return Refusal("instanceDoesNotExist", "The Cloud SQL instance does not exist.")


def name_taken(*, reserved: bool) -> Refusal:
    """Return the refusal of a name in use, or reserved after a deletion (terraform-google-forseti, thread 251)."""
    more = (
        " When you delete an instance, you can't reuse the name of the deleted instance until one week from the "
        "deletion date."
    )
    return Refusal("instanceAlreadyExists", "The Cloud SQL instance already exists." + (more if reserved else ""))


def in_progress(status: int) -> Refusal:
    """Return the refusal beside another operation of the instance: a 409, or a 403 with the same reason.

    Source: apache/airflow, thread 62671, and provider-gcp, thread 121 (409); forseti-security, thread 1493 (403).
    """
    sentence = (
        "Operation failed because another operation was already in progress. Try your request after the current "
        "operation is complete."
    )
    return Refusal("operationInProgress", sentence, status=status)


def stale() -> Refusal:
    """Return the refusal of a former settingsVersion (terraform-provider-google, threads 12324 and 25246)."""
    return Refusal("staleData", "Condition does not match.")


def wrong_state() -> Refusal:
    """Return the refusal in a state that allows no change (terraform-provider-google, thread 5179)."""
    return Refusal("invalidState", "The instance or operation is not in an appropriate state to handle the request.")


def not_running() -> Refusal:
    """Return what users and databases of an instance that is stopped or pending meet.

    Source: terraform-google-sql-db, thread 408 (stopped); steampipe-plugin-gcp, thread 243 (PENDING_CREATE).
    """
    return invalid("Invalid request since instance is not running.")


def invalid(sentence: str) -> Refusal:
    """Return the refusal of values that Cloud SQL does not accept; its sentences begin so."""
    return Refusal("invalid", f"Invalid request: {sentence}")


def no_backup_of_then() -> Refusal:
    """Return the refusal of a time outside what an instance can be recovered to.

    Source: "Use point-in-time recovery" of Cloud SQL for PostgreSQL, its table of errors.
    """
    return Refusal("invalid", "Successful backup required for carrying out the operation was not found.")


def bad_request(sentence: str) -> Refusal:
    """Return the refusal of a body that is no message of the API."""
    return Refusal("badRequest", sentence, status=400)


def over_quota(number: str, status: int) -> Refusal:
    """Return the refusal over the quota (cloud-sql-jdbc-socket-factory, thread 979)."""
    sentence = (
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service "
        f"'sqladmin.googleapis.com' for consumer 'project_number:{number}'."
    )
    return Refusal("rateLimitExceeded", sentence, status=status)


def not_simulated(subject: str) -> Refusal:
    """Return the refusal of what the simulation lacks, by name."""
    return Refusal("notSimulated", f"{subject} is not simulated.", status=400)
