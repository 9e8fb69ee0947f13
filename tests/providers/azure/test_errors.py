"""What ARM refuses, as failure classes: by code wherever it comes from, else by status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from providers.azure.errors import failure_of, pause, refused
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient


def _failure(status: int, code: str, *, action: str = "change server rg/s", message: str = "No.") -> Failure:
    return failure_of(refused(status, {"error": {"code": code, "message": message}}, {}), action)


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (409, "ServerIsBusy", Blocked, "CloudBusy"),
        (200, "InternalServerError", Blocked, "CloudBusy"),
        (409, "AnotherOperationInProgress", Blocked, "CloudBusy"),
        (404, "ResourceNotFound", NotThere, "ReferenceNotFound"),
        (404, "ResourceGroupNotFound", NotThere, "ReferenceNotFound"),
        (409, "ServerNameAlreadyExists", AlreadyThere, "NameTaken"),
        (412, "PreconditionFailed", AlreadyThere, "NameTaken"),
        (400, "SkuNotAvailable", Blocked, "QuotaExceeded"),
        (403, "AuthorizationFailed", Terminal, "AccessDenied"),
        (404, "SubscriptionNotFound", Terminal, "AccessDenied"),
        (409, "MissingSubscriptionRegistration", Terminal, "AccessDenied"),
        (401, "ExpiredAuthenticationToken", Terminal, "CredentialsInvalid"),
        (400, "PasswordTooLong", Terminal, "InvalidPassword"),
        (400, "InvalidParameterValue", Terminal, "InvalidValue"),
        (409, "ScopeLocked", Terminal, "AccessDenied"),
        (400, "NeverSeenBefore", Terminal, "InvalidValue"),
        (401, "", Terminal, "CredentialsInvalid"),
        (403, "NeverSeenBefore", Terminal, "AccessDenied"),
        (409, "NeverSeenBefore", Blocked, "CloudBusy"),
    ],
)
def test_code_has_its_class(status: int, code: str, kind: type[Failure], reason: str) -> None:
    failure = _failure(status, code)

    assert type(failure) is kind
    assert getattr(failure, "reason", "") == reason


def test_lock_holds_a_deletion() -> None:
    failure = _failure(409, "ScopeLocked", action="delete server rg/s")

    assert isinstance(failure, Blocked)
    assert failure.reason == "DeleteBlocked"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_server_error_is_momentary(status: int) -> None:
    failure = failure_of(refused(status, None, {}), "look")

    assert isinstance(failure, Transient)
    assert failure.is_momentary


def test_404_without_a_code_of_arm_proves_nothing() -> None:
    """As a proxy answers it."""
    assert type(failure_of(refused(404, None, {}), "look")) is Transient


@pytest.mark.parametrize(
    ("header", "seconds"), [("17", 17), ("0", 5), ("", 5), ("soon", 5), ("99999", 600), ("1e400", 5)]
)
def test_throttle_waits_as_long_as_arm_says(header: str, seconds: int) -> None:
    failure = failure_of(refused(429, {"error": {"code": "X"}}, {"Retry-After": header}), "look")

    assert isinstance(failure, Throttled)
    assert failure.after == timedelta(seconds=seconds) == pause(header)


def test_wrapped_cause_is_read() -> None:
    inner: dict[str, Any] = {"code": "ServerIsBusy", "message": "Busy."}
    body = {"error": {"code": "ResourceDeploymentFailure", "message": "See details.", "details": [inner]}}

    assert refused(409, body, {}).code == "ServerIsBusy"


def test_secret_leaves_no_trace() -> None:
    refusal = refused(400, {"error": {"code": "BadRequest", "message": "Password Pa55 is weak."}}, {})

    assert "Pa55" not in str(failure_of(refusal, "set", hide=("Pa55",)))


def test_message_holds_no_id_that_differs_every_time() -> None:
    headers = {"x-ms-request-id": "4d1b", "x-ms-correlation-request-id": "77aa"}
    failure = failure_of(refused(409, {"error": {"code": "ServerIsBusy", "message": "Busy."}}, headers), "look")

    assert str(failure) == "cannot look: Busy (ServerIsBusy)"
