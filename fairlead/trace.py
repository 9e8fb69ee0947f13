"""`fairlead trace`: read a claim, what it became and its Secret's name, and show them as one tree."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from apis import names
from fairlead.cluster import connected, current_namespace, existing, split_reference
from fairlead.discovery import Discovery
from fairlead.kube_options import USUAL, Server
from fairlead.tree import Node, tree_of
from runtime.conditions import conditions_of, find
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import SECRETS, Key, Object, loads, metadata


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
        children += await _refused_compositions(kube, root)
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
