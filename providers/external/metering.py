"""What every request to an account passes through: it waits for its place in the account's rate, and is counted.

The transport of a cloud takes part: one place for each request that leaves, be it a page of a list or a retry. A cloud
whose calls are no requests to a limited API has its methods counted instead (`metered`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

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

T = TypeVar("T")


_IS_ROUTINE: ContextVar[bool] = ContextVar("is_routine", default=False)


@contextmanager
def routine(*, is_routine: bool) -> Iterator[None]:
    """Make the requests of a block as those of a pass that nobody waits for, or as those of one that somebody does."""
    former = _IS_ROUTINE.set(is_routine)
    try:
        yield
    finally:
        _IS_ROUTINE.reset(former)


def end_routine() -> None:
    """Make all further requests of the block as those that somebody waits for."""
    _IS_ROUTINE.set(False)


def is_routine() -> bool:
    """Return whether nobody waits for what is requested now."""
    return _IS_ROUTINE.get()


class Meter(Protocol):
    """The rate of one account, as its transport meets it; `operation` is the request's name in the metrics."""

    async def read(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        """Make a request that changes nothing; raises what it raises, and Throttled while the account is paused."""

    async def write(self, operation: str, request: Callable[[], Awaitable[T]], fence: Fence | None = None) -> T:
        """Make a request that changes something; raises FenceClosed where its place comes too late as well."""


class _Unmetered:
    """Lets every request pass."""

    async def read(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        del operation
        return await request()

    async def write(self, operation: str, request: Callable[[], Awaitable[T]], fence: Fence | None = None) -> T:
        del operation, fence
        return await request()


UNMETERED: Final[Meter] = _Unmetered()
"""For whoever connects to an account outside of a provider's process."""


@dataclass(slots=True)
class MeteredExternal(Generic[SpecT]):
    """An ExternalClient of which each call of a method is one request."""

    client: ExternalClient[SpecT, Any]
    meter: Meter

    async def observe(self, target: Target[SpecT]) -> Present[SpecT, Any] | Absent:
        """Count as a read."""
        return await self.meter.read("observe", lambda: self.client.observe(target))

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("create", lambda: self.client.create(target, credential, fence), fence)

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("update", lambda: self.client.update(target, observed, changes, fence), fence)

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("adopt", lambda: self.client.adopt(target, observed, fence), fence)

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("release", lambda: self.client.release(target, observed, fence), fence)

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT, Any] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("delete", lambda: self.client.delete(target, observed, policy, fence), fence)


@dataclass(slots=True)
class MeteredAccount(Generic[SpecT]):
    """An Account of which each call of a method is one request."""

    client: Account[SpecT]
    meter: Meter

    async def whoami(self) -> str:
        """Count as a read."""
        return await self.meter.read("whoami", self.client.whoami)

    async def list(self) -> ExternalList:
        """Count as a read."""
        return await self.meter.read("observe_all", self.client.list)

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """Count as a read."""
        return await self.meter.read("find", lambda: self.client.find_predecessors(owner))

    def refusal(self, spec: SpecT) -> tuple[str, str] | None:
        """Return what the client does: no request is made."""
        return self.client.refusal(spec)

    def warnings(self) -> tuple[str, ...]:
        """Return what the client does: no request is made."""
        return self.client.warnings()


@dataclass(slots=True)
class MeteredLogins(Generic[SpecT]):
    """Logins of which each call of a method is one request."""

    client: Logins[SpecT, Any]
    meter: Meter

    async def set(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Count as a write."""
        return await self.meter.write(
            "set_password", lambda: self.client.set(target, observed, credential, fence), fence
        )

    async def disable(
        self, target: Target[SpecT], observed: Observed[SpecT, Any], username: str, fence: Fence
    ) -> Operation | None:
        """Count as a write."""
        return await self.meter.write("disable", lambda: self.client.disable(target, observed, username, fence), fence)


@dataclass(slots=True)
class MeteredBackups(Generic[SpecT]):
    """Backups of which each call of a method is one request."""

    client: Backups[SpecT]
    meter: Meter

    async def latest(self, target: Target[SpecT]) -> str:
        """Count as a read."""
        return await self.meter.read("backup_of", lambda: self.client.latest(target))

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """Count as a read."""
        return await self.meter.read("restorable", lambda: self.client.restorable(target))


@dataclass(slots=True)
class MeteredOperations:
    """Operations of which each call of a method is one request."""

    client: Operations
    meter: Meter

    async def poll(self, operation: Operation) -> bool:
        """Count as a read."""
        return await self.meter.read("poll", lambda: self.client.poll(operation))


def metered(clients: Clients[SpecT, Any], meter: Meter) -> Clients[SpecT, Any]:
    """Return a kind's clients with each call of a method as one request to its account.

    A login is one to the database and none to the account: it counts for no rate.
    """
    return Clients(
        MeteredExternal(clients.external, meter),
        MeteredAccount(clients.account, meter),
        None if clients.logins is None else MeteredLogins(clients.logins, meter),
        None if clients.backups is None else MeteredBackups(clients.backups, meter),
        None if clients.operations is None else MeteredOperations(clients.operations, meter),
        clients.try_login,
        # They ask the cloud nothing.
        clients.listed,
        clients.changes,
        clients.owners,
        clients.strangers,
    )
