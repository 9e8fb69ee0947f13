"""`fairlead orphans`: what the clouds hold of this installation without a resource, listed by its providers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.account_lists import called, provider_configs, without_resource
from fairlead.cluster import connected
from fairlead.kube_options import Server
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource


@dataclass(frozen=True, slots=True)
class Account:
    """What one ProviderConfig's account holds.

    Each entry has `kind` and `name`, and where they are known `namespace`, `claim`, `resource` and `since`.
    """

    config: str
    complete: bool
    items: tuple[Object, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each entry, and one where there may be more."""
        for item in self.items:
            claim = f" of {item.get('namespace', '?')}/{item['claim']}" if item.get("claim") else ""
            resource = f" ({item['resource']})" if item.get("resource") else ""
            since = f", since {item['since']}" if item.get("since") else ""
            yield f"{self.config}: {item['kind']} {item['name']}{claim}{resource}{since}"
        if not self.complete:
            yield f"{self.config}: not every list was whole, there may be more; see the condition of {self.config}"


async def orphans(reference: str, server: Server) -> tuple[Account, ...]:
    """Have each provider list its accounts, or one ProviderConfig's; return what they hold without a resource.

    Raises CommandError where a provider has not answered within a minute, and ApiError.
    """
    async with connected(server) as kube:
        configs = await provider_configs(kube, reference)
        return tuple(await asyncio.gather(*(_account(kube, resource, key) for resource, key in configs)))


async def _account(kube: Kube, resource: Resource, key: Key) -> Account:
    report = await without_resource(kube, resource, key)
    return Account(called(resource, key), report.complete, report.orphans)
