"""`fairlead trace`: read a claim, what it became and its Secret's name, and show them as one tree."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from fairlead.cluster import connected, current_namespace, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.kube_options import USUAL, Server
from fairlead.tree import Node, tree_of
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube
from runtime.objects import SECRETS, Key, Object


async def trace(reference: str, *, namespace: str | None, server: Server = USUAL) -> Node:
    """Return the tree of one claim or managed resource.

    Raises CommandError when it does not exist, and ApiError when the server cannot be asked.
    """
    word, name = split_reference(reference)
    key = Key(namespace or current_namespace(server), name)
    async with connected(server) as kube:
        discovery = Discovery(kube)
        resource = await discovery.resource_named(word)
        root = await existing(kube, resource, key)
        children = await asyncio.gather(*(_child(kube, discovery, key, entry) for entry in _inventory(root)))
        secret = await _secret(kube, key, root)
    return tree_of(root, children, secret, datetime.now(UTC))


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
