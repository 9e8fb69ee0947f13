"""What the clouds hold that no resource here names, and which could be taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.account_lists import called, listed, provider_configs
from fairlead.cluster import connected
from fairlead.imports.thing import Thing
from fairlead.kube_options import Server
from runtime.kube import Kube
from runtime.objects import Key, Resource


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """What one ProviderConfig's account holds of others; `complete`: there is no more."""

    config: str
    complete: bool
    things: tuple[Thing, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each thing, and one where there may be more."""
        for thing in self.things:
            yield f"{self.config}: {thing.kind} {thing.name}"
        if not self.complete:
            yield f"{self.config}: not every list was whole, there may be more; see the condition of {self.config}"


async def find(reference: str, pattern: str, server: Server) -> tuple[Unmanaged, ...]:
    """Have each provider list its accounts, or one ProviderConfig's; return what of it has no resource, by name.

    `pattern` is one of a shell, as `shop-*`. Raises CommandError where a provider has not answered within a minute, and
    ApiError.
    """
    async with connected(server) as kube:
        configs = await provider_configs(kube, reference)
        return tuple(await asyncio.gather(*(unmanaged(kube, *config, pattern) for config in configs)))


async def unmanaged(kube: Kube, resource: Resource, key: Key, pattern: str = "*") -> Unmanaged:
    """Have one account listed."""
    report = (await listed(kube, resource, key)).get("unmanaged") or {}
    things = (Thing(str(item["kind"]), str(item["name"])) for item in report.get("items") or ())
    chosen = tuple(thing for thing in things if thing.is_called(pattern))
    return Unmanaged(called(resource, key), bool(report.get("complete")), chosen)
