"""Requests to ARM pass through the account's rate, by a name that holds no name of a thing."""

from __future__ import annotations

import pytest

from providers.accounts.rate_limit import CALLS, AccountMeter, Budget
from providers.azure.arm import _type_of
from providers.external.provider import Rate
from tests.providers.azure.arm_stub import ArmStub
from tests.providers.azure.azure_world import connected
from tests.support.stepped_clock import SteppedClock


async def test_each_request_to_arm_takes_a_token_and_is_counted(stub: ArmStub) -> None:
    time = SteppedClock()
    async with connected(stub) as account:
        account.meter = AccountMeter("azure-of-rates", "default", Budget(Rate(1, 1), time.clock))
        for _ in range(3):
            await account.whoami()

    assert sum(time.waits) == pytest.approx(2.0)
    assert CALLS.labels("azure-of-rates", "GET subscriptions", "ok")._value.get() == 3


@pytest.mark.parametrize(
    ("path", "resource_type"),
    [
        ("/subscriptions/s", "subscriptions"),
        ("/subscriptions/s/providers/Microsoft.DBforPostgreSQL/flexibleServers", "flexibleServers"),
        (
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.DBforPostgreSQL/flexibleServers/one/databases/orders",
            "flexibleServers/databases",
        ),
    ],
)
def test_request_is_counted_by_its_type_of_resource(path: str, resource_type: str) -> None:
    assert _type_of(path) == resource_type
