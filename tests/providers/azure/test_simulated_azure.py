"""Azure's kinds by the generic reconciler at the simulated Azure: what its own rules make of what is sent."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from devcloud.azure.server import Options, Served, running
from providers.azure import FLEXIBLE_SERVERS, PROVIDER
from providers.azure.arm import AzureAccount, client_of
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES
from providers.azure.config import ProviderConfigSpec
from providers.external.metering import Meter
from providers.external.provider import Kind, Provider, RecordedAccount
from runtime.objects import Key, Object
from tests.providers.azure.azure_world import RATE, SERVER, StubToken
from tests.providers.toy import ToyCloud
from tests.providers.world import World

GROUP = "databases"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulator() -> Iterator[Served]:
    with running(Options(durations=0.001)) as served:
        _control(served, "POST", "behaviour", {"retry_after_s": 0, "throttle": None})
        token = _token(served)
        url = f"{served.url}/subscriptions/{served.subscription}/resourceGroups/{GROUP}?api-version=2022-09-01"
        _request("PUT", url, {"location": "uksouth"}, token)
        yield served


def _request(method: str, url: str, body: object, token: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, method=method, data=data, headers=headers)  # noqa: S310 - loop-back
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - as above
        return json.loads(reply.read() or b"{}")


def _control(served: Served, method: str, path: str, body: object = None) -> Any:
    return _request(method, f"{served.url}/_control/{path}", body, served.control_token)


def _token(served: Served) -> str:
    client, secret = served.credentials
    form = {
        "grant_type": "client_credentials", "client_id": client, "client_secret": secret,
        "scope": "https://management.azure.com/.default",
    }  # fmt: skip
    url = f"{served.url}/{served.tenant}/oauth2/v2.0/token"
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, data=data, timeout=30) as reply:  # noqa: S310 - loop-back
        return str(json.load(reply)["access_token"])


class EntraToken(StubToken):
    """A token of the simulated Entra."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


@dataclass
class Subscription:
    """The simulated subscription, and the clients that were connected to it."""

    served: Served
    token: str
    connected: list[Any]

    def provider(self, kind: Kind[Any, Any]) -> Provider[Any]:
        """Return Azure's provider with one kind and without a bound on its calls."""

        @asynccontextmanager
        async def connect(
            config: ProviderConfigSpec, _secrets: Mapping[str, Any], _recorded: RecordedAccount, meter: Meter
        ) -> AsyncIterator[AzureAccount]:
            account = client_of(config, EntraToken(self.token), meter)
            self.connected.append(account.client)
            await account.whoami()
            yield account

        return replace(PROVIDER, kinds=(kind,), rate=RATE, connect=connect, endpoint_of=lambda _config: "")

    def calls(self, *methods: str) -> list[str]:
        """Return the paths that were changed since the last `forget`."""
        entries = _control(self.served, "GET", "audit?since=0")
        return [entry["action"] for entry in entries if entry["mutating"] or entry["action"] in methods]

    def forget(self) -> None:
        """Count from here on."""
        _control(self.served, "DELETE", "audit")


@pytest.fixture
async def subscription(simulator: Served) -> AsyncIterator[Subscription]:
    connected = Subscription(simulator, _token(simulator), [])
    connected.forget()
    yield connected
    for client in connected.connected:
        await client.close()


class SimulatedWorld(World):
    """One kind of Azure's in namespace `team`, at the simulated Azure."""

    def __init__(self, subscription: Subscription, kind: Kind[Any, Any], spec: Object) -> None:
        self.subscription, self.spec = subscription, spec
        super().__init__(ToyCloud(), provider=subscription.provider(kind))

    def config(self) -> Object:
        """Return the subscription and where it is asked."""
        return {
            "subscriptionID": self.subscription.served.subscription,
            "endpoint": self.subscription.served.url,
            "credentials": {"source": "ManagedIdentity"},
            "limits": {"publicAccess": True},
        }

    def parameters(self, spec: Object) -> Object:
        """Return the fields of `forProvider`: those of the world, changed by what is asked for as `parameters`."""
        return {**self.spec, **spec.pop("parameters", {})}

    @property
    def external_name(self) -> str:
        """The name of what was made in the cloud."""
        return str((self.get() or {})["metadata"]["annotations"]["fairlead.dev/external-name"])

    async def until(self, reason: str = "InSync", *, name: str = "db") -> None:
        """Make passes until Synced has a reason; Azure's time passes by itself."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            await self.step(name)
            self.now += timedelta(seconds=30)
            if self.get(name) is None or self.reason(name=name) == reason:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"not {reason}: {self.reason(name=name)} {self.condition(name=name)}")

    async def until_gone(self) -> None:
        """Make passes until the object is gone."""
        await self.until("Gone")


async def _server(subscription: Subscription, **fields: Any) -> SimulatedWorld:
    world = SimulatedWorld(subscription, FLEXIBLE_SERVERS, {**SERVER, "resourceGroupName": GROUP, **fields})
    world.ask()
    await world.until()
    return world


async def test_server_and_what_is_inside_are_made_changed_and_taken_away(subscription: Subscription) -> None:
    server = await _server(subscription)
    assert server.reason("Ready") == "Available"
    assert subscription.calls() == ["flexibleServers.put"]
    specs: tuple[tuple[Kind[Any, Any], Object, Object], ...] = (
        (DATABASES, {"name": "orders"}, {}),
        (FIREWALL_RULES, {"cidr": "203.0.113.0/24"}, {"cidr": "198.51.100.0/24"}),
        (CONFIGURATIONS, {"name": "work_mem", "value": "64MB"}, {"value": "32MB"}),
    )
    children = []
    for kind, spec, edit in specs:
        child = SimulatedWorld(subscription, kind, {**spec, "server": server.external_name})
        child.ask()
        await child.until()
        assert child.reason("Ready") == "Available"
        if edit:
            child.ask(parameters=edit)
            await child.until("InSync")
        children.append(child)
    subscription.forget()
    for world in (server, *children):
        for _ in range(10):
            await world.step()
    assert subscription.calls() == []

    server.ask(parameters={"backupRetentionDays": 14, "storageSizeGB": 128}, maintenance={"apply": "Immediate"})
    await server.until()
    assert subscription.calls() == ["flexibleServers.patch"]
    for world in (*children, server):
        world.delete()
        await world.until_gone()
    assert _control(subscription.served, "GET", "servers") == {}


async def test_drift_of_others_is_put_back(subscription: Subscription) -> None:
    world = await _server(subscription, backupRetentionDays=14, autoGrow="Enabled")
    name = world.external_name.split("/")[1]
    subscription.forget()
    _control(subscription.served, "POST", f"servers/{name}", {"properties": {"backup": {"backupRetentionDays": 7}}})
    await world.until()
    _control(subscription.served, "POST", f"servers/{name}", {"autogrow": True})
    _control(subscription.served, "POST", f"servers/{name}", {"minor": "99"})
    for _ in range(10):
        await world.step()

    assert subscription.calls() == ["flexibleServers.patch"]
    world.delete()
    await world.until_gone()


async def test_password_rotates_by_one_operation(subscription: Subscription) -> None:
    world = await _server(subscription)
    subscription.forget()
    world.ask(passwordRotation={"token": "1"})
    await world.until()

    assert subscription.calls() == ["flexibleServers.patch"]
    world.delete()
    await world.until_gone()


async def test_server_that_vanished_or_was_replaced_is_never_made_again(subscription: Subscription) -> None:
    world = await _server(subscription)
    name = world.external_name.split("/")[1]
    subscription.forget()
    _control(subscription.served, "POST", f"servers/{name}", {"replace": True})
    await world.until("Replaced")
    _control(subscription.served, "POST", f"servers/{name}", {"vanish": True})
    await world.until("DatabaseLost")

    assert subscription.calls() == []


async def test_five_children_at_once_provoke_no_refusal(subscription: Subscription) -> None:
    server = await _server(subscription)
    subscription.forget()
    world = SimulatedWorld(subscription, FIREWALL_RULES, {"server": server.external_name})
    names = [f"rule-{number}" for number in range(5)]
    for number, name in enumerate(names):
        world.ask(name=name, parameters={"cidr": f"203.0.113.{number}/32"})
    for _ in range(200):
        world.feed()
        await asyncio.gather(*(world.reconcile(Key("team", name)) for name in names))
        world.now += timedelta(seconds=30)
        if all(world.reason(name=name) == "InSync" for name in names):
            break
        await asyncio.sleep(0.01)

    assert [world.reason("Ready", name) for name in names] == ["Available"] * 5
    assert subscription.calls() == ["firewallRules.put"] * 5
    assert {entry["outcome"] for entry in _control(subscription.served, "GET", "audit?since=0")} <= {
        "ok",
        "ResourceNotFound",
    }
    server.delete()
    await server.until_gone()
