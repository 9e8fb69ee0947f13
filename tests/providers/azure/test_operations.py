"""What ARM refuses and how its operations end, as failure classes; where a token is never sent."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from providers.azure.arm import Answer
from providers.azure.errors import Refused, failure_of, pause, refused
from providers.azure.operations import LONGEST_URL, ArmOperations, operation_of, outcome_of
from providers.external.client import Operation
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient
from tests.architecture.tree import CRDS
from tests.providers.azure.arm_stub import ArmStub
from tests.providers.azure.azure_world import connected

ARM = "https://management.azure.com"


@pytest.mark.parametrize(
    ("status", "code", "ended"),
    [
        ("InProgress", "", False),
        ("", "", False),
        ("Succeeded", "", True),
        ("succeeded", "", True),
    ],
)
def test_status_of_an_operation(status: str, code: str, *, ended: bool) -> None:
    assert outcome_of(status, Refused(200, code, "No."), "Update") is ended


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("QuotaExceeded", "QuotaExceeded"),
        ("InvalidParameterValue", "InvalidValue"),
        ("ServerNameAlreadyExists", "NameTaken"),
        ("NeverSeenBefore", "CloudBusy"),
        ("ServerIsBusy", "CloudBusy"),
        ("OperationCancelled", "CloudBusy"),
        ("InternalServerError", "CloudBusy"),
        ("", "CloudBusy"),
    ],
)
def test_operation_that_failed(code: str, reason: str) -> None:
    with pytest.raises((Blocked, Terminal)) as failed:
        outcome_of("Failed", Refused(200, code, "No."), "Create")

    assert getattr(failed.value, "reason", "") == reason


def _answer(url: str) -> Answer:
    return Answer(202, {"Azure-AsyncOperation": url}, None)


def test_url_is_remembered_as_it_is() -> None:
    url = f"{ARM}/subscriptions/s/x?t=1&s={'a' * 3000}"

    operation = operation_of(_answer(url), "Create", ARM)

    assert operation is not None
    assert (operation.id, operation.kind) == (url, "Create")


@pytest.mark.parametrize(
    "url", ["", f"{ARM}/{'a' * LONGEST_URL}", "https://evil.example/x", "http://management.azure.com/x"]
)
def test_no_handle_of_arms_own_is_none(url: str) -> None:
    assert operation_of(_answer(url), "Create", ARM) is None


def test_crds_have_room_for_it() -> None:
    for path in CRDS.glob("azure.fairlead.dev_flexibleserver*.yaml"):
        _, followed = path.read_text(encoding="utf-8").split("\n              operation:\n")
        room = re.search(r"\n                  id:\n.*?maxLength: (\d+)", "\n" + followed, re.DOTALL)
        assert room is not None
        assert int(room[1]) == LONGEST_URL


def _operation(url: str) -> Operation:
    return Operation(url, "Update")


async def test_url_of_another_host_gets_no_token_and_has_ended(stub: ArmStub) -> None:
    async with connected(stub) as account:
        operations = ArmOperations(account)
        elsewhere = stub.url.replace("127.0.0.1", "localhost")

        assert await operations.poll(_operation(f"{elsewhere}/subscriptions/s/azureAsyncOperation/op1"))
        assert await operations.poll(_operation("https://evil.example/op1"))

    assert stub.log == []


async def test_handle_that_arm_forgot_has_ended(stub: ArmStub) -> None:
    async with connected(stub) as account:
        provider = f"{stub.url}/subscriptions/s/providers/Microsoft.DBforPostgreSQL"
        url = f"{provider}/locations/UK%20South/azureAsyncOperation/op1"

        assert await ArmOperations(account).poll(_operation(url))

    assert len(stub.log) == 1


async def test_retry_after_paces_the_poll(stub: ArmStub) -> None:
    now = [0.0]
    stub.operations["op1"] = 1
    url = f"{stub.url}/subscriptions/s/providers/Microsoft.DBforPostgreSQL/locations/uksouth/azureAsyncOperation/op1"
    async with connected(stub) as account:
        operations = ArmOperations(account, lambda: now[0])
        stub.retry_after = "60"

        assert not await operations.poll(_operation(url))
        now[0] = 59.0
        assert not await operations.poll(_operation(url))
        assert len(stub.log) == 1
        now[0] = 60.0
        assert await operations.poll(_operation(url))

    assert len(stub.log) == 2


def _failure_of(status: int, code: str, *, action: str = "change server rg/s", message: str = "No.") -> Failure:
    return failure_of(refused(status, {"error": {"code": code, "message": message}}, {}), action)


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (409, "ServerIsBusy", Blocked, "CloudBusy"),
        (200, "InternalServerError", Blocked, "CloudBusy"),
        (404, "ResourceNotFound", NotThere, "ReferenceNotFound"),
        (409, "ServerNameAlreadyExists", AlreadyThere, "NameTaken"),
        (400, "SkuNotAvailable", Blocked, "QuotaExceeded"),
        (403, "AuthorizationFailed", Terminal, "AccessDenied"),
        (401, "ExpiredAuthenticationToken", Terminal, "CredentialsInvalid"),
        (400, "PasswordTooLong", Terminal, "InvalidPassword"),
        (400, "InvalidParameterValue", Terminal, "InvalidValue"),
        (409, "ScopeLocked", Terminal, "AccessDenied"),
        (400, "NeverSeenBefore", Terminal, "InvalidValue"),
        (401, "", Terminal, "CredentialsInvalid"),
        (409, "NeverSeenBefore", Blocked, "CloudBusy"),
    ],
)
def test_code_has_its_class(status: int, code: str, kind: type[Failure], reason: str) -> None:
    failure = _failure_of(status, code)

    assert type(failure) is kind
    assert getattr(failure, "reason", "") == reason


def test_lock_holds_a_deletion() -> None:
    failure = _failure_of(409, "ScopeLocked", action="delete server rg/s")

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
