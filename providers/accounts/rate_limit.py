"""One rate for each account and kind of call, shared by all workers; a pause that the cloud wants holds them all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from aiolimiter import AsyncLimiter
from prometheus_client import Counter

from apis.teardown import Policy
from providers.external.client import (
    Account,
    Backups,
    Clients,
    ExternalClient,
    ExternalList,
    Fence,
    Logins,
    Operation,
    Operations,
    Target,
)
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Predecessor, Present, SpecT
from providers.external.ownership import Owner
from providers.external.provider import Rate
from providers.external.retries import Charge, charged
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
        # Read again: the pause may have been made longer meanwhile.
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
        """Take a token, make the call and count it; each retry within it does the same."""

        def failed(failure: Failure) -> None:
            if isinstance(failure, Throttled):
                of.pause(failure.after)
            CALLS.labels(self.provider, operation, type(failure).__name__.lower()).inc()

        await of.take()
        try:
            with charged(Charge(failed, of.take)):
                answer = await call()
        except Failure as failure:
            failed(failure)
            raise
        except BaseException:
            CALLS.labels(self.provider, operation, "error").inc()
            raise
        CALLS.labels(self.provider, operation, "ok").inc()
        return answer


@dataclass(slots=True)
class MeteredExternal(Generic[SpecT]):
    """An ExternalClient behind the budgets of its account."""

    client: ExternalClient[SpecT, Any]
    meter: Meter

    async def observe(self, target: Target[SpecT]) -> Present[SpecT, Any] | Absent:
        """Ask through the budget of reads."""
        return await self.meter.read("observe", lambda: self.client.observe(target))

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("create", lambda: self.client.create(target, credential, fence))

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("update", lambda: self.client.update(target, observed, changes, fence))

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("adopt", lambda: self.client.adopt(target, observed, fence))

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("release", lambda: self.client.release(target, observed, fence))

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT, Any] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("delete", lambda: self.client.delete(target, observed, policy, fence))


@dataclass(slots=True)
class MeteredAccount(Generic[SpecT]):
    """An Account behind the budgets of its account."""

    client: Account[SpecT]
    meter: Meter

    async def whoami(self) -> str:
        """Ask through the budget of reads."""
        return await self.meter.read("whoami", self.client.whoami)

    async def list(self) -> ExternalList:
        """Ask through the budget of reads."""
        return await self.meter.read("observe_all", self.client.list)

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """Ask through the budget of reads."""
        return await self.meter.read("find", lambda: self.client.find_predecessors(owner))

    def refusal(self, spec: SpecT) -> tuple[str, str] | None:
        """Answer without a call."""
        return self.client.refusal(spec)

    def warnings(self) -> tuple[str, ...]:
        """Answer without a call."""
        return self.client.warnings()


@dataclass(slots=True)
class MeteredLogins(Generic[SpecT]):
    """Logins behind the budgets of their account."""

    client: Logins[SpecT, Any]
    meter: Meter

    async def set(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("set_password", lambda: self.client.set(target, observed, credential, fence))

    async def disable(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], username: str, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self.meter.write("disable", lambda: self.client.disable(target, observed, username, fence))


@dataclass(slots=True)
class MeteredBackups(Generic[SpecT]):
    """Backups behind the budgets of their account."""

    client: Backups[SpecT]
    meter: Meter

    async def latest(self, target: Target[SpecT]) -> str:
        """Ask through the budget of reads."""
        return await self.meter.read("backup_of", lambda: self.client.latest(target))

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


def metered(provider: str, clients: Clients[SpecT, Any], budgets: tuple[Budget, Budget]) -> Clients[SpecT, Any]:
    """Put a kind's clients behind the budgets of its account, which all its kinds share.

    A login asks the database itself, which is no call to the account: it counts for no budget.
    """
    meter = Meter(provider, *budgets)
    return Clients(
        MeteredExternal(clients.external, meter),
        MeteredAccount(clients.account, meter),
        None if clients.logins is None else MeteredLogins(clients.logins, meter),
        None if clients.backups is None else MeteredBackups(clients.backups, meter),
        None if clients.operations is None else MeteredOperations(clients.operations, meter),
        clients.try_login,
        # It asks the cloud nothing.
        clients.listed,
    )
