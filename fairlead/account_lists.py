"""What the accounts of ProviderConfigs hold without a resource: each provider lists for a requested reconcile."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from apis import names
from fairlead.annotate import annotate
from fairlead.cluster import existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, dumps, key_of, loads, status_of

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


@dataclass(frozen=True, slots=True)
class Without:
    """What has no resource: entries with `kind` and `name`, of ours with `namespace`, `claim` and `resource` too.

    `complete`: there is no more. `backups` are of databases that are gone, where they were asked for.
    """

    complete: bool
    orphans: tuple[Object, ...]
    unmanaged: tuple[Object, ...]
    backups: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for: a pattern of a shell for names, as `shop-*`, and tags that a thing has all of.

    `within` is a server whose contents are listed in the place of the account. `progress` gets a sentence after each
    part of a long list. `backups`: what is kept of databases that are gone is listed, too.
    """

    name: str = "*"
    tags: Mapping[str, str] = field(default_factory=dict)
    within: str = ""
    progress: Callable[[str], None] = lambda _text: None
    backups: bool = False


async def without_resource(kube: Kube, resource: Resource, key: Key, search: Search = Search()) -> Without:
    """Have a provider list the account of a ProviderConfig, again from where its status had no more room.

    Raises CommandError where the provider has not answered within a minute.
    """
    known: dict[str, dict[str, Object]] = {"orphans": {}, "unmanaged": {}}
    complete, after, backups = True, "", tuple[Object, ...]()
    while True:
        request = {"name": search.name, "tags": dict(search.tags), "after": after, "within": search.within}
        # They are listed once, whatever else is in parts.
        asks = search.backups and not after
        status, ends = await _listed(kube, resource, key, request | ({"backups": True} if asks else {})), []
        if asks:
            report = status.get("backups") or {}
            backups, complete = tuple(report.get("items") or ()), bool(report.get("complete"))
        for name in known:
            report = status.get(name) or {}
            items = {f"{item['kind']}/{item['name']}": item for item in report.get("items") or ()}
            known[name] |= items
            is_cut = bool(report.get("left"))
            complete = complete and (bool(report.get("complete")) or is_cut)
            ends += [max(items)] if is_cut else []
        if not ends or min(ends) <= after:
            orphans, unmanaged = (tuple(items[name] for name in sorted(items)) for items in known.values())
            return Without(complete and not ends, orphans, unmanaged, backups)
        after = min(ends)
        search.progress(f"{called(resource, key)}: {sum(map(len, known.values()))} so far, up to {after}")


async def _listed(kube: Kube, resource: Resource, key: Key, search: Object) -> Object:
    """Have a provider list the account of a ProviderConfig; return its status then."""
    token = f"list-{secrets.token_hex(8)}"
    find = dumps({"token": token, **search}).decode()
    await annotate(kube, resource, key, lambda _obj: {names.RECONCILE_REQUESTED_AT: token, names.FIND: find})
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
