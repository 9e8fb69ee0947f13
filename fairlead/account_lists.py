"""What the accounts of ProviderConfigs hold without a resource: each provider lists for a requested reconcile."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from apis import names
from fairlead.annotate import annotate
from fairlead.cluster import existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, key_of, loads, status_of

_LIMIT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.3
_CONFIG: Final = "ProviderConfig"


async def provider_configs(kube: Kube, reference: str) -> list[tuple[Resource, Key]]:
    """Return the ProviderConfig that a person named, as `onprempc/default`, or all. Raises CommandError."""
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


def called(resource: Resource, key: Key) -> str:
    """Return a ProviderConfig as people and kubectl call it."""
    return f"{resource.plural}.{resource.group}/{key.name}"


async def listed(kube: Kube, resource: Resource, key: Key) -> Object:
    """Have a provider list the account of a ProviderConfig; return its status then.

    Raises CommandError where the provider has not answered within a minute.
    """
    token = f"list-{secrets.token_hex(8)}"
    await annotate(kube, resource, key, lambda _obj: {names.RECONCILE_REQUESTED_AT: token})
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _LIMIT_SECONDS
    while True:
        status = status_of(await existing(kube, resource, key))
        if status.get("lastHandledReconcileAt") == token:
            return status
        if loop.time() > deadline:
            cloud = resource.group.removesuffix(names.GROUP_SUFFIX)
            text = f"no answer within {_LIMIT_SECONDS:g} s: does fairlead-provider-{cloud} run and lead?"
            raise CommandError(f"{called(resource, key)}: {text}", exit_code=Exit.NOT_READY)
        await asyncio.sleep(_PAUSE_SECONDS)
