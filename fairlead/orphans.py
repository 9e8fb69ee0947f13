"""`fairlead orphans`: what the clouds hold of this installation without a resource, listed by its providers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apis import names
from fairlead.annotate import annotate
from fairlead.cluster import connected, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.kube_options import Server
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, key_of, loads, status_of

_LIMIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.3
_CONFIG = "ProviderConfig"


@dataclass(frozen=True, slots=True)
class Account:
    """What one ProviderConfig's account holds: an entry (`kind`, `name`, `namespace`, `claim`, `resource`) each."""

    config: str
    complete: bool
    items: tuple[Object, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each entry, and one where there may be more."""
        for item in self.items:
            claim = f" of {item.get('namespace', '?')}/{item['claim']}" if item.get("claim") else ""
            resource = f" ({item['resource']})" if item.get("resource") else ""
            yield f"{self.config}: {item['kind']} {item['name']}{claim}{resource}"
        if not self.complete:
            yield f"{self.config}: not every list was whole, there may be more; see the condition of {self.config}"


async def orphans(reference: str, server: Server) -> tuple[Account, ...]:
    """Have each provider list its accounts, or one ProviderConfig's; return what they hold without a resource.

    Raises CommandError where a provider has not answered within a minute, and ApiError.
    """
    async with connected(server) as kube:
        configs = await _configs(kube, reference)
        return tuple(await asyncio.gather(*(_listed(kube, resource, key) for resource, key in configs)))


async def _configs(kube: Kube, reference: str) -> list[tuple[Resource, Key]]:
    discovery = Discovery(kube)
    if reference:
        word, name = split_reference(reference)
        resource = await discovery.resource_named(word)
        if resource.kind != _CONFIG:
            raise CommandError(f"{reference} is no ProviderConfig, as onprempc/default is", exit_code=Exit.USAGE)
        return [(resource, Key("", name))]
    kinds = await discovery.config_kinds()
    pages = [(kind, await kube.list_page(kind, Selection(metadata_only=True))) for kind in kinds]
    return [(kind, key_of(loads(item))) for kind, page in pages for item in page.items]


async def _listed(kube: Kube, resource: Resource, key: Key) -> Account:
    token = f"orphans-{secrets.token_hex(8)}"
    await annotate(kube, resource, key, lambda _obj: {names.RECONCILE_REQUESTED_AT: token})
    called = f"{resource.plural}.{resource.group}/{key.name}"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _LIMIT_SECONDS
    while True:
        status = status_of(await existing(kube, resource, key))
        if status.get("lastHandledReconcileAt") == token:
            report = status.get("orphans") or {}
            return Account(called, bool(report.get("complete")), tuple(report.get("items") or ()))
        if loop.time() > deadline:
            cloud = resource.group.removesuffix(names.GROUP_SUFFIX)
            text = f"{called}: no answer within {_LIMIT_SECONDS:g} s: does fairlead-provider-{cloud} run and lead?"
            raise CommandError(text, exit_code=Exit.NOT_READY)
        await asyncio.sleep(_PAUSE_SECONDS)
