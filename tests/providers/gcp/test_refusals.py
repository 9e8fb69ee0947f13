"""What Google answers, as failures: one HTTP status stands for several things, which its reason distinguishes."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.gcp.refusals import (
    Denied,
    Refusal,
    failure_of,
    operation_failure,
    refusal_in,
)
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient


def _body(status: int, reason: str, said: str = "It was refused.") -> str:
    error = {"code": status, "message": said, "errors": [{"domain": "global", "message": said, "reason": reason}]}
    return json.dumps({"error": error})


CASES = [
    (404, "instanceDoesNotExist", "", NotThere, "ReferenceNotFound"),
    (404, "", "", Transient, ""),
    (403, "instanceDoesNotExist", "", Denied, "AccessDenied"),
    (403, "rateLimitExceeded", "", Throttled, ""),
    (403, "operationInProgress", "", Blocked, "CloudBusy"),
    (403, "quotaExceeded", "", Blocked, "QuotaExceeded"),
    (409, "instanceAlreadyExists", "", AlreadyThere, "NameTaken"),
    (409, "operationInProgress", "", Blocked, "CloudBusy"),
    (409, "", "The user already exists.", AlreadyThere, "NameTaken"),
    (412, "conditionNotMet", "", Conflict, ""),
    (429, "rateLimitExceeded", "", Throttled, ""),
    (401, "authError", "", Terminal, "CredentialsInvalid"),
    (400, "invalid", "Invalid value for tier.", Terminal, "InvalidValue"),
    (400, "invalid", "The instance is protected from deletion.", Blocked, "DeleteBlocked"),
    (400, "invalid", "role cannot be dropped because some objects depend on it", Blocked, "DeleteBlocked"),
    (400, "invalid", "Invalid flag name: password_encryptor.", Terminal, "InvalidValue"),
    (400, "invalid", "The password does not meet the policy.", Terminal, "InvalidPassword"),
    (400, "invalid", "The instance is not running.", Blocked, "CloudBusy"),
    (400, "invalid", 'pq: database "app" already exists.', AlreadyThere, "NameTaken"),
    (400, "invalid", "It cannot be created because a user exists with the same name.", AlreadyThere, "NameTaken"),
    (500, "internalError", "", Transient, ""),
    (418, "teapot", "", Transient, ""),
]


@pytest.mark.parametrize(
    ("status", "reason", "said", "kind", "condition"), CASES, ids=[f"{row[0]} {row[1]} {row[2]}" for row in CASES]
)
def test_refusal_is_one_failure(status: int, reason: str, said: str, kind: type[Failure], condition: str) -> None:
    failure = failure_of(refusal_in(status, _body(status, reason, said), {}), "change instance fl-orders")
    assert type(failure) is kind
    assert getattr(failure, "reason", "") == condition
    assert "change instance fl-orders" in str(failure)


def test_server_errors_may_be_sent_again_in_the_same_pass_and_a_strange_404_may_not() -> None:
    broken, strange = failure_of(Refusal(503), "list"), failure_of(Refusal(404), "list")
    assert isinstance(broken, Transient)
    assert isinstance(strange, Transient)
    assert (broken.is_momentary, strange.is_momentary) == (True, False)


@pytest.mark.parametrize(("header", "seconds"), [("", 10), ("3", 10), ("45", 45), ("86400", 300), ("soon", 10)])
def test_throttle_pauses_as_long_as_google_says_within_bounds(header: str, seconds: int) -> None:
    failure = failure_of(refusal_in(429, "{}", {"retry-after": header}), "list")
    assert isinstance(failure, Throttled)
    assert failure.after == timedelta(seconds=seconds)


@pytest.mark.parametrize("body", ["", "<html>no</html>", "[]", '{"error": "invalid_grant"}', '{"error": null}', "null"])
def test_answer_of_another_form_is_no_refusal_that_is_known(body: str) -> None:
    assert type(failure_of(refusal_in(404, body, {}), "look")) is Transient


def test_reason_is_read_out_of_details_as_well() -> None:
    error = {"error": {"code": 403, "status": "PERMISSION_DENIED", "details": [{"reason": "accessNotConfigured"}]}}
    refusal = refusal_in(403, json.dumps(error), {})
    assert refusal.reason == "accessNotConfigured"
    assert "enable the Cloud SQL Admin API" in str(failure_of(refusal, "list"))


OPERATIONS = [
    ("", None, ""),
    ("INTERNAL_ERROR", Blocked, "CloudBusy"),
    ("UNKNOWN", Blocked, "CloudBusy"),
    ("quotaExceeded", Blocked, "QuotaExceeded"),
    ("instanceAlreadyExists", AlreadyThere, "NameTaken"),
    ("INVALID_ARGUMENT", Terminal, "InvalidValue"),
    ("ERROR_RDBMS", Terminal, "InvalidValue"),
]


@pytest.mark.parametrize(("code", "kind", "condition"), OPERATIONS)
def test_operation_that_is_done_may_have_failed(code: str, kind: type[Failure] | None, condition: str) -> None:
    operation = {"status": "DONE", "error": {"errors": [{"code": code, "message": "It failed."}]}} if code else {}
    failure = operation_failure(operation, "Create")
    assert (None if failure is None else type(failure)) == kind
    assert getattr(failure, "reason", "") == condition


SENTENCES = [
    ("Create", 'failed to create user app: . role "owner" does not exist', "ReferenceNotFound"),
    ("Update", 'role "owner" does not exist', "ReferenceNotFound"),
    ("Delete", 'failed to delete user app: . role "app" does not exist', "CloudBusy"),
    ("Delete", 'role "app" cannot be dropped because some objects depend on it', "DeleteBlocked"),
    ("Delete", 'pq: database "app" is being accessed by other users', "DeleteBlocked"),
]


@pytest.mark.parametrize(("action", "said", "reason"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_what_postgresql_said_counts_more_than_the_code_of_any_internal_error(
    action: str, said: str, reason: str
) -> None:
    operation = {"error": {"errors": [{"code": "INTERNAL_ERROR", "message": said}]}}
    failure = operation_failure(operation, action)
    assert isinstance(failure, Blocked)
    assert failure.reason == reason


def test_final_backup_that_failed_is_no_invalid_value() -> None:
    operation = {"error": {"errors": [{"code": "FINAL_BACKUP", "message": "The backup could not be made."}]}}
    failure = operation_failure(operation, "Delete")
    assert isinstance(failure, Blocked)
    assert failure.reason == "BackupImpossible"
