"""The generic reconciler between an API server in memory and a simulated ARM, over ARM's wire, by one clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from azure.core.credentials import AccessToken

from providers.azure import FLEXIBLE_SERVERS, PROVIDER
from providers.azure.arm import client_of
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES
from providers.azure.config import ProviderConfigSpec
from providers.azure.restarts import Restarts
from providers.external.metering import Meter
from providers.external.provider import Kind, RecordedAccount
from runtime.errors import Failure
from runtime.objects import Object
from runtime.results import Result
from tests.providers.azure.azure_world import RATE, SERVER, StubToken
from tests.providers.azure.simulated_arm import Arm
from tests.providers.gates import Calls
from tests.providers.paced import Paced
from tests.providers.toy import ToyCloud
from tests.providers.world import World
from tests.support.memory_kube import MemoryKube

_RARE = timedelta(minutes=4)


class EntraToken(StubToken):
    """A token of the simulated Entra, which is asked for by nobody."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    async def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


@dataclass
class GatedAccount:
    """An AzureAccount whose changing calls pass a gate."""

    account: Any
    calls: Calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.account, name)

    async def send(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Send a request as the account does."""
        call = self.account.send(method, *arguments, **options)
        if method not in {"PUT", "PATCH", "DELETE"}:
            self.calls.looked(str(arguments[0]))
            return await call
        return await self.calls.passed(call, is_create=method == "PUT")


class ArmWorld(World):
    """One kind of Azure's in namespace `team`, at a simulated ARM whose clock goes with the world's.

    `calls` is what happens around its changing calls.
    """

    def __init__(
        self,
        arm: Arm,
        *,
        kind: Kind[Any, Any] = FLEXIBLE_SERVERS,
        spec: Object | None = None,
        kube: MemoryKube | None = None,
        process: str = "process-1",
        calls: Calls | None = None,
    ) -> None:
        self.arm, self.spec, self.restarts = arm, SERVER if spec is None else spec, Restarts(self._seconds)

        @asynccontextmanager
        async def connect(
            config: ProviderConfigSpec, _secrets: Any, _recorded: RecordedAccount, meter: Meter
        ) -> AsyncIterator[Any]:
            account = client_of(config, EntraToken(arm.token), meter)
            account.now, account.restarts = lambda: self.now, self.restarts
            async with account.client:
                await account.whoami()
                yield account if calls is None else GatedAccount(account, calls)

        provider: Any = replace(PROVIDER, kinds=(kind,), rate=RATE, connect=connect, endpoint_of=lambda _config: "")
        super().__init__(ToyCloud(), kube=kube, process=process, provider=provider)
        self.now = datetime.fromisoformat(arm.control("GET", "clock")["now"]).replace(microsecond=0)
        arm.connected.push_async_callback(self.close)

    def config(self) -> Object:
        """Return the subscription and where it is asked."""
        return {
            "subscriptionID": self.arm.served.subscription,
            "endpoint": self.arm.served.url,
            "credentials": {"source": "ManagedIdentity"},
            "limits": {"publicAccess": True, "destroysPerHour": 10_000},
        }

    def parameters(self, spec: Object) -> Object:
        """Return the fields of `forProvider`: those of the world, changed by `parameters`; None leaves one out."""
        wanted = {**self.spec, **spec.pop("parameters", {})}
        return {name: value for name, value in wanted.items() if value is not None}

    def name_of(self, name: str = "db") -> str:
        """Return the external name that a resource recorded."""
        return str((self.get(name) or {})["metadata"]["annotations"]["fairlead.dev/external-name"])

    def status_of(self, name: str = "db") -> Object:
        """Return the status of a resource."""
        status: Object = (self.get(name) or {}).get("status") or {}
        return status

    def shown(self, name: str = "db") -> Object:
        """Return the server of a resource as ARM has it."""
        return self.arm.server(self.name_of(name))

    def pass_time(self, by: timedelta) -> None:
        super().pass_time(by)
        self.arm.pass_time(by)

    async def until(self, goal: str | Callable[[], bool], name: str = "db", *, most: int = 200) -> None:
        """Make passes as they fall due until Synced gives a reason, or something holds."""

        def is_met() -> bool:
            return self.reason("Synced", name) == goal if isinstance(goal, str) else goal()

        for _ in range(most):
            result = await self.step(name)
            if is_met():
                return
            self.pass_time(_due_after(result))
        raise AssertionError(f"not {goal} after {most} passes: {self.get(name)}")

    async def rest(self, name: str = "db") -> None:
        """Make passes until the resource is Ready, in sync and at nothing, or gone."""

        def is_at_rest() -> bool:
            obj, reasons = self.get(name), (self.reason("Ready", name), self.reason("Synced", name))
            if obj is None:
                return True
            if reasons != ("Available", "InSync") or "operation" in self.status_of(name):
                return False
            return bool(self.condition(name=name)["observedGeneration"] == obj["metadata"]["generation"])

        await self.until(is_at_rest, name)

    async def for_hours(self, hours: float, name: str = "db") -> set[str]:
        """Make the passes that a controller makes within some hours; return the reasons of Synced that were seen."""
        paced = Paced(self, name)
        await paced.until(self.now + timedelta(hours=hours))
        assert paced.crashes == 0
        return {condition.partition(" ")[2] for condition in paced.reported() if condition.startswith("Synced=")}

    async def close(self) -> None:
        """Close the connections to ARM."""
        for entry in self.accounts._entries.values():
            await entry.stack.aclose()


async def server_at_rest(arm: Arm, **spec: Any) -> ArmWorld:
    """Return a world with a server at rest, its calls forgotten; `parameters` are fields of its `forProvider`."""
    world = ArmWorld(arm)
    world.ask(**spec)
    await world.rest()
    arm.forget()
    return world


def inside_of(server: ArmWorld, kind: Kind[Any, Any], spec: Object, calls: Calls | None = None) -> ArmWorld:
    """Return a world of what is in a server, by the same clock."""
    world = ArmWorld(server.arm, kind=kind, spec={**spec, "server": server.name_of()}, calls=calls)
    world.now, world.restarts = server.now, server.restarts
    return world


INSIDE: tuple[tuple[Kind[Any, Any], Object], ...] = (
    (DATABASES, {"name": "orders"}),
    (FIREWALL_RULES, {"cidr": "203.0.113.0/24"}),
    (CONFIGURATIONS, {"name": "work_mem", "value": "64MB"}),
)
KIND_IDS = ("database", "rule", "configuration")
WORDS = ("databases", "firewallRules", "configurations")
"""What each kind is called in ARM's paths."""
CHILDREN = tuple((*child, word) for child, word in zip(INSIDE, WORDS, strict=True))


def _due_after(result: Result | Failure) -> timedelta:
    """Return when the next pass is due: as it asks for, at the resync, after an error soon."""
    if isinstance(result, Failure):
        return timedelta(seconds=5)
    return min(max(result.requeue_after or _RARE, timedelta(seconds=1)), _RARE)
