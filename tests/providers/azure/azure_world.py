"""The generic reconciler between an API server in memory and ARM on this machine, over ARM's wire, by one clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self

import msgspec
from azure.core.credentials import AccessToken

from providers.azure import FLEXIBLE_SERVERS, PROVIDER
from providers.azure.arm import AzureAccount, client_of
from providers.azure.config import ProviderConfigSpec
from providers.external.metering import Meter
from providers.external.provider import Kind, Provider, Rate, RecordedAccount
from runtime.objects import Object
from tests.providers.azure.arm_stub import SUBSCRIPTION, ArmStub
from tests.providers.toy import ToyCloud
from tests.providers.world import World
from tests.support.fake_kube import FakeKube

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


def provider(stub: ArmStub, kind: Kind[Any, Any]) -> Provider[Any]:
    """Return Azure's provider with one kind, the stub's token, and without a bound on its calls."""

    @asynccontextmanager
    async def connect(
        config: ProviderConfigSpec, _secrets: Mapping[str, Mapping[str, str]], _recorded: RecordedAccount, meter: Meter
    ) -> AsyncIterator[AzureAccount]:
        assert config.endpoint == stub.url
        account = client_of(config, StubToken(), meter)
        stub.connected.append(account)
        await account.whoami()
        yield account

    return replace(PROVIDER, kinds=(kind,), rate=RATE, connect=connect, endpoint_of=lambda _config: "")


class AzureWorld(World):
    """One kind of Azure's in namespace `team`, at an ARM of this machine."""

    def __init__(
        self,
        stub: ArmStub,
        *,
        kind: Kind[Any, Any] = FLEXIBLE_SERVERS,
        spec: Object | None = None,
        kube: FakeKube | None = None,
        process: str = "process-1",
    ) -> None:
        self.stub, self.spec = stub, SERVER if spec is None else spec
        super().__init__(ToyCloud(), provider=provider(stub, kind), kube=kube, process=process)

    def config(self) -> Object:
        """Return the subscription and where it is asked."""
        return config_of(self.stub)

    def parameters(self, spec: Object) -> Object:
        """Return the fields of `forProvider`: those of the world, changed by what is asked for as `parameters`."""
        return {**self.spec, **spec.pop("parameters", {})}
