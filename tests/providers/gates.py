"""Where a process may end in a test: after each of its writes to the API server in memory, and to its cloud."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from providers.external.client import Fence
from providers.external.provider import Provider
from runtime.objects import Key, Object, Resource
from tests.support.memory_kube import MemoryKube

T = TypeVar("T")
OPEN = Fence(until=float("inf"), leads=lambda: True, monotonic=lambda: 0.0)
_FIRST_UIDS = itertools.count(1000, 1000)


class KilledError(BaseException):
    """The process ends here: nothing catches it."""


@dataclass
class Gate:
    """Where a process may end: after each of its writes to the API server and to the cloud.

    `left` is how many writes it still makes; None: it is not killed. `only` are the writes that count.
    """

    left: int | None = None
    only: str = ""
    writes: int = 0

    async def passed(self, write: Awaitable[T], place: str) -> T:
        """Make one write; raises KilledError after the last that the process is given."""
        result = await write
        if self.only in {"", place}:
            self.writes += 1
            if self.left is not None:
                self.left -= 1
                if self.left <= 0:
                    raise KilledError
        return result

    def kill_after(self, writes: int, *, only: str = "") -> None:
        """End the process after so many more writes: of all, or of those to `cloud` or `kube` alone."""
        self.left, self.only = writes, only

    def open(self) -> None:
        """Kill nobody any more."""
        self.left, self.only = None, ""


class GatedKube(MemoryKube):
    """An API server in memory after each of whose writes a process may end."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate
        # Names follow from uids: what one test left in a cloud is no other's.
        self._uids = itertools.count(next(_FIRST_UIDS))

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self.gate.passed(super().create(resource, obj, manager=manager), "kube")

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        write = super().apply(resource, obj, manager=manager, force=force, subresource=subresource)
        return await self.gate.passed(write, "kube")

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self.gate.passed(super().replace(resource, obj, manager=manager), "kube")

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        write = super().json_patch(resource, key, operations, manager=manager, subresource=subresource)
        return await self.gate.passed(write, "kube")


@dataclass
class Calls:
    """What happens around a changing call: after it its process may end; `before_create` is called once by a create.

    `looked` is called with the path before each call that reads, by accounts that have paths.
    """

    gate: Gate
    before_create: Callable[[], None] | None = None
    looked: Callable[[str], None] = lambda _path: None

    async def passed(self, call: Awaitable[T], *, is_create: bool) -> T:
        """Make a changing call."""
        act = self.before_create
        if is_create and act is not None:
            self.before_create = None
            act()
        return await self.gate.passed(call, "cloud")


@dataclass
class GatedAccount:
    """A cloud's account whose changing calls pass a gate; `reads` and `creates` know calls by their names."""

    account: Any
    calls: Calls
    reads: Callable[[str], bool]
    creates: Callable[[str], bool]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.account, name)

    async def call(self, name: str, action: str, /, **fields: Any) -> Any:
        """Call the cloud as the account does."""
        call = self.account.call(name, action, **fields)
        return await (call if self.reads(name) else self.calls.passed(call, is_create=self.creates(name)))


def gated(of: Provider[Any], account: Callable[[Any], GatedAccount]) -> Provider[Any]:
    """Return a provider whose connections yield what `account` makes of its own accounts."""

    async def wrap(connected: Any) -> GatedAccount:
        return account(connected)

    return replace(of, connect=lambda *arguments: Wrapped(of.connect(*arguments), wrap))


class Wrapped(AbstractAsyncContextManager[Any]):
    """A provider's connection with what it yields replaced by what `wrap` makes of it."""

    def __init__(self, connection: AbstractAsyncContextManager[Any], wrap: Callable[[Any], Awaitable[Any]]) -> None:
        self._connection, self._wrap = connection, wrap

    async def __aenter__(self) -> Any:
        return await self._wrap(await self._connection.__aenter__())

    async def __aexit__(self, *error: object) -> bool | None:
        return await self._connection.__aexit__(*cast("Any", error))
