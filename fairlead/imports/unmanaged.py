"""What the clouds hold that no resource here names, and which could be taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fairlead.account_lists import Search, called, provider_configs, without_resource
from fairlead.cluster import connected
from fairlead.imports.thing import Thing
from fairlead.kube_options import Server
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """What one ProviderConfig's account holds without a resource; `complete`: there is no more.

    `former` are the claims, as `namespace/claim (resource)`, of what this installation made and orphaned or retired.
    """

    config: str
    complete: bool
    things: tuple[Thing, ...]
    former: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield a line for each thing, and one where there may be more."""
        for thing in self.things:
            former = self.former.get(f"{thing.kind}/{thing.name}")
            yield f"{self.config}: {thing.kind} {thing.name}" + (f", formerly of {former}" if former else "")
        if not self.complete:
            yield f"{self.config}: not every list was whole, there may be more; see the condition of {self.config}"


async def find(reference: str, search: Search, server: Server) -> tuple[Unmanaged, ...]:
    """Have each provider list its accounts, or one ProviderConfig's; return what of it has no resource, by name.

    Raises CommandError where a provider has not answered within a minute, and ApiError.
    """
    async with connected(server) as kube:
        configs = await provider_configs(kube, reference)
        return tuple(await asyncio.gather(*(unmanaged(kube, *config, search) for config in configs)))


async def unmanaged(kube: Kube, resource: Resource, key: Key, search: Search) -> Unmanaged:
    """Have one account listed."""
    report = await without_resource(kube, resource, key, search)
    former = {f"{item['kind']}/{item['name']}": _former(item) for item in report.orphans}
    items = sorted((str(item["kind"]), str(item["name"])) for item in (*report.orphans, *report.unmanaged))
    return Unmanaged(called(resource, key), report.complete, tuple(Thing(*item) for item in items), former)


def _former(item: Object) -> str:
    resource = f" ({item['resource']})" if item.get("resource") else ""
    return f"{item.get('namespace', '?')}/{item.get('claim', '?')}{resource}"
