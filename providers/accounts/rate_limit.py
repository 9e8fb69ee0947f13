"""One rate for each account and kind of call, shared by all workers; a pause that the cloud wants holds them all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Generic, TypeVar

from aiolimiter import AsyncLimiter
from prometheus_client import Counter

from apis.teardown import Policy
from providers.external.client import (
    AccountClient,
    Backups,
    Clients,
    Endpoint,
    ExternalClient,
    Fence,
    Logins,
    Operation,
    Operations,
    Sweep,
    Target,
)
from providers.external.credential import Credential, Login
from providers.external.observation import Absent, Change, Found, Observed, Present, SpecT
from providers.external.ownership import Owner
from providers.external.provider import Rate
from runtime.errors import Failure, Throttled
from runtime.metrics import REGISTRY

T = TypeVar("T")

CALLS: Final = Counter(
    "fairlead_cloud_api_calls",
    "Total number of calls to clouds, partitioned by provider, operation and code",
    ["provider", "operation", "code"],
    registry=REGISTRY,
)


@dataclass(slots=True)
class Budget:
    """How many calls may begin within a second, and until when none may."""

    limiter: AsyncLimiter
    paused_until: float = 0.0

    async def take(self) -> None:
        """Wait for a place; what is throttled waits for the end of the pause first."""
        # Asked again: the pause may have been made longer meanwhile.
        while (left := self.paused_until - time.monotonic()) > 0:  # noqa: ASYNC110 - the wait is for an instant
            await asyncio.sleep(left)
        await self.limiter.acquire()

    def pause(self, after: timedelta) -> None:
        """Let nothing begin for a while: the cloud asked for it, of the account and not of one database."""
        self.paused_until = max(self.paused_until, time.monotonic() + after.total_seconds())


def budget(calls_per_second: float) -> Budget:
    """Return a budget whose bucket holds one second's worth of calls."""
    return Budget(AsyncLimiter(max(1.0, calls_per_second), max(1.0, 1.0 / calls_per_second)))


@dataclass(slots=True)
class Meter:
    """Counts the calls of one account, each within its budget."""

    provider: str
    reads: Budget
    writes: Budget

    async def read(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that reads."""
        return await self._call(operation, self.reads, call)

    async def write(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that changes something."""
        return await self._call(operation, self.writes, call)

    async def _call(self, operation: str, of: Budget, call: Callable[[], Awaitable[T]]) -> T:
        await of.take()
        code = "error"
        try:
            answer = await call()
            code = "ok"
        except Throttled as throttled:
            code = "throttled"
            of.pause(throttled.after)
            raise
        except Failure as failure:
            code = type(failure).__name__.lower()
            raise
        finally:
            CALLS.labels(self.provider, operation, code).inc()
        return answer


@dataclass(slots=True)
class MeteredExternal(Generic[SpecT]):
    """An ExternalClient behind the budgets of its account."""

    client: ExternalClient[SpecT]
    meter: Meter

    async def observe(self, target: Target[SpecT]) -> Present[SpecT] | Absent:
        """Ask through the budget of reads."""
        return await self.meter.read("observe", lambda: self.client.observe(target))

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("create", lambda: self.client.create(target, credential, fence))

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("update", lambda: self.client.update(target, observed, changes, fence))

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Change through the budget of writes."""
        await self.meter.write("adopt", lambda: self.client.adopt(target, observed, fence))

    async def release(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Change through the budget of writes."""
        await self.meter.write("release", lambda: self.client.release(target, observed, fence))

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("delete", lambda: self.client.delete(target, observed, policy, fence))


@dataclass(slots=True)
class MeteredAccount(Generic[SpecT]):
    """An AccountClient behind the budgets of its account."""

    client: AccountClient[SpecT]
    meter: Meter

    async def whoami(self) -> str:
        """Ask through the budget of reads."""
        return await self.meter.read("whoami", self.client.whoami)

    async def observe_all(self) -> Sweep:
        """Ask through the budget of reads."""
        return await self.meter.read("observe_all", self.client.observe_all)

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """Ask through the budget of reads."""
        return await self.meter.read("find", lambda: self.client.find(owner))

    def objection(self, spec: SpecT) -> tuple[str, str] | None:
        """Answer without a call."""
        return self.client.objection(spec)

    def advice(self) -> str:
        """Answer without a call."""
        return self.client.advice()


@dataclass(slots=True)
class MeteredLogins(Generic[SpecT]):
    """Logins behind the budgets of their account."""

    client: Logins[SpecT]
    meter: Meter

    async def set_password(
        self, target: Target[SpecT], observed: Observed[SpecT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write(
            "set_password", lambda: self.client.set_password(target, observed, credential, fence)
        )

    async def login(self, target: Target[SpecT], credential: Credential) -> Login:
        """Ask the database itself, which is no call to the account and counts for no budget."""
        return await self.client.login(target, credential)

    async def disable(self, target: Target[SpecT], username: str, fence: Fence) -> None:
        """Change through the budget of writes."""
        await self.meter.write("disable", lambda: self.client.disable(target, username, fence))

    def endpoint(self, target: Target[SpecT]) -> Endpoint:
        """Answer without a call."""
        return self.client.endpoint(target)


@dataclass(slots=True)
class MeteredBackups(Generic[SpecT]):
    """Backups behind the budgets of their account."""

    client: Backups[SpecT]
    meter: Meter

    async def backup_of(self, target: Target[SpecT]) -> str:
        """Ask through the budget of reads."""
        return await self.meter.read("backup_of", lambda: self.client.backup_of(target))

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """Ask through the budget of reads."""
        return await self.meter.read("restorable", lambda: self.client.restorable(target))


@dataclass(slots=True)
class MeteredOperations:
    """Operations behind the budgets of their account."""

    client: Operations
    meter: Meter

    async def poll(self, operation: Operation) -> bool:
        """Ask through the budget of reads."""
        return await self.meter.read("poll", lambda: self.client.poll(operation))


def budgets_of(rate: Rate) -> tuple[Budget, Budget]:
    """Return the budgets of an account's reads and writes."""
    return budget(rate.reads_per_second), budget(rate.writes_per_second)


def metered(provider: str, clients: Clients[SpecT], budgets: tuple[Budget, Budget]) -> Clients[SpecT]:
    """Put a kind's clients behind the budgets of its account, which all its kinds share."""
    meter = Meter(provider, *budgets)
    return Clients(
        MeteredExternal(clients.external, meter),
        MeteredAccount(clients.account, meter),
        None if clients.logins is None else MeteredLogins(clients.logins, meter),
        None if clients.backups is None else MeteredBackups(clients.backups, meter),
        None if clients.operations is None else MeteredOperations(clients.operations, meter),
    )
