"""`fairlead trace`: read a claim, what it became and its Secret's name, and show them as one tree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from apis import names
from fairlead.cluster import connected, current_namespace, every_object, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.exits import CommandError
from fairlead.imports.following import Followed
from fairlead.kube_options import USUAL, Server
from fairlead.tree import Node, tree_of
from fairlead.tree import with_events as events_in
from runtime import clock
from runtime.conditions import conditions_of, find
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import EVENTS, SECRETS, Key, Object, Resource, loads, metadata

_SETTLED_S: Final = 0.5


async def trace(reference: str, *, namespace: str | None, server: Server = USUAL, with_events: bool = False) -> Node:
    """Return the tree of one claim, managed resource or other object of the platform.

    Raises CommandError when it does not exist, and ApiError when the server cannot be asked.
    """
    words = split_reference(reference)
    async with connected(server) as kube:
        discovery = Discovery(kube)
        target = await _named(discovery, words, namespace, server)
        return await _gathered(kube, discovery, target, with_events=with_events)


async def traces(
    reference: str, *, namespace: str | None, server: Server = USUAL, with_events: bool = False
) -> AsyncIterator[Node]:
    """Yield the tree whenever something of it changes, but for ages, until the object is gone."""
    words = split_reference(reference)
    async with connected(server) as kube:
        discovery = Discovery(kube)
        target = await _named(discovery, words, namespace, server)
        before: object = None
        try:
            while True:
                places = await _places(kube, discovery, target)
                of_events = [(EVENTS, target[1].namespace or "default")] if with_events else []
                async with Followed.begin(kube, [*places, *of_events]) as followed:
                    while await _places(kube, discovery, target) == places:
                        tree = await _gathered(kube, discovery, target, with_events=with_events)
                        if _without_ages(tree) != before:
                            yield tree
                        before = _without_ages(tree)
                        await followed.change()
                        await asyncio.sleep(_SETTLED_S)
        except CommandError as error:
            if before is None or not isinstance(error.__cause__, NotFound):
                raise


async def _named(
    discovery: Discovery, words: tuple[str, str], namespace: str | None, server: Server
) -> tuple[Resource, Key]:
    resource = await discovery.resource_named(words[0])
    return resource, Key((namespace or current_namespace(server)) if resource.namespaced else "", words[1])


async def _gathered(kube: Kube, discovery: Discovery, target: tuple[Resource, Key], *, with_events: bool) -> Node:
    resource, key = target
    root = {"apiVersion": resource.api_version, "kind": resource.kind} | await existing(kube, resource, key)
    children = await asyncio.gather(*(_child(kube, discovery, key, entry) for entry in _inventory(root)))
    children += await _refused_compositions(kube, root)
    tree = tree_of(root, children, await _secret(kube, key, root), clock.now())
    return events_in(tree, await _events(kube, key.namespace), clock.now()) if with_events else tree


async def _places(kube: Kube, discovery: Discovery, target: tuple[Resource, Key]) -> list[tuple[Resource, str]]:
    """Return the kinds that a tree is of now, each with the namespace."""
    resource, key = target
    inventory = _inventory(await existing(kube, resource, key))
    kinds = [await discovery.resource_of(entry["apiVersion"], entry["kind"]) for entry in inventory]
    return list(dict.fromkeys([(resource, key.namespace), *((kind, key.namespace) for kind in kinds if kind)]))


def _without_ages(tree: Node) -> object:
    aged = (replace(event, age=None) for event in tree.events), (replace(drift, age=None) for drift in tree.drift)
    children = tuple(_without_ages(child) for child in tree.children)
    return replace(tree, age=None, events=tuple(aged[0]), drift=tuple(aged[1]), children=()), children


async def _events(kube: Kube, namespace: str) -> dict[tuple[str, str], list[Object]]:
    """Return the events of a namespace by kind and name; of what has no namespace they are in `default`."""
    events: dict[tuple[str, str], list[Object]] = {}
    try:
        async for event in every_object(kube, EVENTS, namespace or "default"):
            about = event.get("regarding") or {}
            events.setdefault((str(about.get("kind")), str(about.get("name"))), []).append(event)
    except Forbidden as error:
        raise CommandError(f"you may not read events of namespace {namespace}: leave out --events") from error
    return events


def _inventory(root: Object) -> list[Object]:
    return list((root.get("status") or {}).get("inventory") or ())


async def _child(kube: Kube, discovery: Discovery, of: Key, entry: Object) -> tuple[str, str, Object | None]:
    resource = await discovery.resource_of(entry["apiVersion"], entry["kind"])
    if resource is None:
        return entry["kind"], entry["name"], None
    try:
        child: Object | None = await kube.get(resource, Key(of.namespace, entry["name"]))
    except NotFound:
        child = None
    return entry["kind"], entry["name"], child


async def _refused_compositions(kube: Kube, root: Object) -> list[tuple[str, str, Object | None]]:
    """Return the Compositions of a claim's kind that may not be used, where no controller looks at the claim."""
    if any(conditions_of(root)):
        return []
    try:
        page = await kube.list_page(names.COMPOSITIONS, Selection())
    except (Forbidden, NotFound):
        # A person may see claims and no Compositions.
        return []
    kind = (root["apiVersion"].rpartition("/")[0], root["kind"])
    served = (composition for composition in map(loads, page.items) if _kind_of_claims(composition) == kind)
    refused = (composition for composition in served if (find(composition, "Ready") or {}).get("status") == "False")
    about = {"apiVersion": names.COMPOSITIONS.api_version, "kind": names.COMPOSITIONS.kind}
    return [("Composition", str(metadata(composition)["name"]), about | composition) for composition in refused]


def _kind_of_claims(composition: Object) -> tuple[str, str]:
    claims = (composition.get("spec") or {}).get("compositeTypeRef") or {}
    return str(claims.get("apiVersion")).rpartition("/")[0], str(claims.get("kind"))


async def _secret(kube: Kube, of: Key, root: Object) -> Object | None:
    bound = ((root.get("status") or {}).get("binding") or {}).get("name")
    if not bound:
        return None
    try:
        return await kube.get(SECRETS, Key(of.namespace, bound), metadata_only=True)
    except NotFound:
        return None
    except Forbidden:
        # A person may see claims and no Secrets: the claim's own word for it has to do.
        return {"metadata": {"name": bound}}
