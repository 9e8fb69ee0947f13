"""A flexible server as people ask for it, and an account that is connected to the stub of ARM."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
from azure.core.credentials import AccessToken

from providers.azure.arm import AzureAccount, client_of
from providers.azure.config import ProviderConfigSpec
from providers.external.provider import Rate
from runtime.objects import Object
from tests.providers.azure.arm_stub import SUBSCRIPTION, ArmStub

SERVER: Object = {
    "resourceGroupName": "Databases",
    "location": "uksouth",
    "administratorLogin": "app",
    "skuName": "Standard_D2ds_v5",
    "skuTier": "GeneralPurpose",
    "version": "16",
    "storageSizeGB": 64,
}
# Nothing waits for a budget: the clock that is moved on is not that of budgets.
RATE = Rate(reads_per_second=100_000, writes_per_second=100_000)


class StubToken:
    """A credential whose token the stub takes; `scopes` are those that were asked for."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    async def get_token(self, *scopes: str, **_options: Any) -> AccessToken:
        self.scopes += scopes
        return AccessToken("stub-token", int(time.time()) + 3600)

    async def close(self) -> None:
        """Close nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_details: object) -> None:
        """Close nothing."""


def config_of(stub: ArmStub, **fields: Any) -> Object:
    """Return a ProviderConfig's spec for the stub."""
    limits = {"publicAccess": True}
    return {
        "subscriptionID": SUBSCRIPTION,
        "endpoint": stub.url,
        "credentials": {"source": "ManagedIdentity"},
        "limits": limits,
        **fields,
    }


@asynccontextmanager
async def connected(stub: ArmStub, **fields: Any) -> AsyncIterator[AzureAccount]:
    """Connect to the stub with a token that it takes."""
    account = client_of(msgspec.convert(config_of(stub, **fields), ProviderConfigSpec), StubToken())
    async with account.client:
        yield account
