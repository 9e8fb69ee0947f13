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
from providers.external.client import Cloud, Endpoint, Fence, Operation, Sweep, Target
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
class Metered(Generic[SpecT]):
    """A cloud behind the budgets of its account; implements providers.external.client.Cloud."""

    provider: str
    cloud: Cloud[SpecT]
    reads: Budget
    writes: Budget

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

    async def whoami(self) -> str:
        """Ask through the budget of reads."""
        return await self._call("whoami", self.reads, self.cloud.whoami)

    async def observe(self, target: Target[SpecT]) -> Present[SpecT] | Absent:
        """Ask through the budget of reads."""
        return await self._call("observe", self.reads, lambda: self.cloud.observe(target))

    async def observe_all(self) -> Sweep:
        """Ask through the budget of reads."""
        return await self._call("observe_all", self.reads, self.cloud.observe_all)

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """Ask through the budget of reads."""
        return await self._call("find", self.reads, lambda: self.cloud.find(owner))

    async def login(self, target: Target[SpecT], credential: Credential) -> Login:
        """Ask the database itself, which is no call to the account and counts for no budget."""
        return await self.cloud.login(target, credential)

    async def backup_of(self, target: Target[SpecT]) -> str:
        """Ask through the budget of reads."""
        return await self._call("backup_of", self.reads, lambda: self.cloud.backup_of(target))

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """Ask through the budget of reads."""
        return await self._call("restorable", self.reads, lambda: self.cloud.restorable(target))

    async def poll(self, operation: Operation) -> bool:
        """Ask through the budget of reads."""
        return await self._call("poll", self.reads, lambda: self.cloud.poll(operation))

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Change through the budget of writes."""
        return await self._call("create", self.writes, lambda: self.cloud.create(target, credential, fence))

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self._call("update", self.writes, lambda: self.cloud.update(target, observed, changes, fence))

    async def set_password(
        self, target: Target[SpecT], observed: Observed[SpecT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self._call(
            "set_password", self.writes, lambda: self.cloud.set_password(target, observed, credential, fence)
        )

    async def disable(self, target: Target[SpecT], username: str, fence: Fence) -> None:
        """Change through the budget of writes."""
        await self._call("disable", self.writes, lambda: self.cloud.disable(target, username, fence))

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Change through the budget of writes."""
        await self._call("adopt", self.writes, lambda: self.cloud.adopt(target, observed, fence))

    async def release(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Change through the budget of writes."""
        await self._call("release", self.writes, lambda: self.cloud.release(target, observed, fence))

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Change through the budget of writes."""
        return await self._call("delete", self.writes, lambda: self.cloud.delete(target, observed, policy, fence))

    def endpoint(self, target: Target[SpecT]) -> Endpoint:
        """Answer without a call."""
        return self.cloud.endpoint(target)

    def objection(self, spec: SpecT) -> tuple[str, str] | None:
        """Answer without a call."""
        return self.cloud.objection(spec)

    def advice(self) -> str:
        """Answer without a call."""
        return self.cloud.advice()


def budgets_of(rate: Rate) -> tuple[Budget, Budget]:
    """Return the budgets of an account's reads and writes."""
    return budget(rate.reads_per_second), budget(rate.writes_per_second)


def metered(provider: str, cloud: Cloud[Any], budgets: tuple[Budget, Budget]) -> Cloud[Any]:
    """Put a cloud behind the budgets of its account, which all its kinds share."""
    return Metered(provider, cloud, *budgets)
