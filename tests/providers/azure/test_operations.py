"""Operations of ARM: how they end, what is remembered of them, and where a token is never sent."""

from __future__ import annotations

import re

import pytest

from providers.azure.arm import Answer
from providers.azure.errors import Refused
from providers.azure.operations import LONGEST_URL, ArmOperations, operation_of, outcome_of
from providers.external.client import Operation
from runtime.errors import Blocked, Terminal
from tests.architecture.tree import CRDS
from tests.providers.azure.arm_stub import ArmStub
from tests.providers.azure.azure_world import connected

ARM = "https://management.azure.com"
NONE = Refused(200, "", "")


@pytest.mark.parametrize(
    ("status", "code", "ended"),
    [
        ("InProgress", "", False),
        ("", "", False),
        ("Succeeded", "", True),
        ("succeeded", "", True),
        ("Failed", "ServerIsBusy", True),
        ("Canceled", "OperationCancelled", True),
        ("Failed", "InternalServerError", True),
        ("Failed", "AadAuthOperationCannotBePerformedWhenServerIsNotAccessible", True),
        ("Failed", "", True),
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
        ("NeverSeenBefore", "InvalidValue"),
    ],
)
def test_operation_that_failed_for_good(code: str, reason: str) -> None:
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
