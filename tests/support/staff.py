"""The two processes of a rig, each of which a test may stop; what the tests around the end of objects share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.api import JsonObject
from tests.support.home import until_gone
from tests.support.kinds import CLAIM, PROVIDER_CONFIG, SECRET
from tests.support.processes import Program
from tests.support.system import System

STRANGER: JsonObject = {
    "apiVersion": CLAIM.api_version,
    "kind": CLAIM.kind,
    "name": "of-a-former-life",
    "uid": "00000000-0000-4000-8000-000000000000",
}
"""An owner that does not exist, as an ownerRef out of a restored backup names it."""

QUICK_LEASE = ("--lease-duration=3", "--lease-renew-deadline=2", "--lease-retry=0.5")


@dataclass(slots=True)
class Staff:
    """Composer and provider at work, and the flags with which each is started again."""

    system: System
    composer: Program
    provider: Program
    composer_flags: tuple[str, ...]
    provider_flags: tuple[str, ...]

    async def stop_composer(self) -> None:
        assert await self.composer.terminate() == 0

    async def start_composer(self) -> None:
        self.composer = await self.system.start_composer(*self.composer_flags)

    async def stop_provider(self) -> None:
        assert await self.provider.terminate() == 0

    async def start_provider(self) -> None:
        self.provider = await self.system.start_provider(*self.provider_flags)

    async def stop(self) -> None:
        await asyncio.gather(self.stop_composer(), self.stop_provider())

    async def complete(self) -> None:
        """Start what does not run."""
        if not self.composer.is_running:
            await self.start_composer()
        if not self.provider.is_running:
            await self.start_provider()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Have nobody at work for the length of a block."""
        await self.stop()
        yield
        await self.complete()


async def employ(system: System, *flags: str) -> Staff:
    """Start both processes, with no destroy rate limit in reach; `flags` stand for those of short leases."""
    # A test module destroys more databases in an hour than a platform does.
    limits = {"spec": {"limits": {"destroysPerHour": 1000}}}
    await system.api.merge(PROVIDER_CONFIG.path("", "default"), limits)
    chosen = flags or QUICK_LEASE
    composer, provider = await asyncio.gather(system.start_composer(*chosen), system.start_provider(*chosen))
    return Staff(system, composer, provider, chosen, chosen)


async def give_to_a_stranger(system: System, path: str, stranger: JsonObject = STRANGER) -> None:
    """Make an object depend on an owner that is not there: the collector deletes it."""
    await system.api.merge(path, {"metadata": {"ownerReferences": [stranger]}})


async def collector_has_looked(system: System, namespace: str, *, name: str = "collector-probe") -> None:
    """Wait until the collector has taken an object that was given to a stranger after all that happened before."""
    await system.create(SECRET, SECRET.new(namespace, name))
    path = SECRET.path(namespace, name)
    # Of a kind that the API server serves in any case: of another the collector knows nothing and does nothing.
    await give_to_a_stranger(system, path, STRANGER | {"apiVersion": "v1", "kind": "ConfigMap"})
    await until_gone(system, path)


def is_deleting(obj: JsonObject) -> bool:
    return "deletionTimestamp" in obj["metadata"]
