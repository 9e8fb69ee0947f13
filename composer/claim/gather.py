"""Gathers all that a pass over one claim reads: from caches, and live where absence must be proven."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import msgspec

from apis import names
from apis.identity import identity_of
from composer import inventory
from composer.claim.snapshot import ObservedChild, Snapshot, entry_of, says_stateful
from composer.inventory import Entry, recorded_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from composer.kinds.live_namespaces import LiveNamespaces
from composer.render.child_metadata import external_names
from runtime.cache import Informer
from runtime.errors import ApiError, Conflict, Forbidden, NotFound, WriteConflict
from runtime.kube import Selection
from runtime.objects import (
    CRDS,
    NAMESPACES,
    Key,
    Object,
    Resource,
    annotations_of,
    deleting,
    key_of,
    labels_of,
    loads,
    metadata,
    uid_of,
    version_of,
)
from runtime.shared_reads import SharedReads

# Of reads of namespaces or of the CRD by which deletions are decided; a lone deletion does not wait.
_SPACING: Final = timedelta(milliseconds=200)
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Gatherer:
    """Reads claims of one kind and what belongs to them."""

    def __init__(self, cluster: Cluster, claims: Informer) -> None:
        self._cluster = cluster
        self._shared_reads = SharedReads(cluster.kube, spacing=_SPACING, size=self._size)
        self._live_namespaces = LiveNamespaces(claims, cluster.namespaces, SharedReads(cluster.kube))
        self.claims = claims

    async def gather(self, key: Key, *, more_kinds: Callable[[Object], frozenset[str]]) -> Snapshot | None:
        """Return the snapshot of a claim from the caches, None when it is gone. Raises ApiError.

        `more_kinds` returns the kinds of the claim's Composition, in which children are looked for too. Whether a child
        that is not in the cache is gone is not proven for a claim that is being deleted: `gather_live` does that.
        """
        claim = self.claims.store.get(key)
        if claim is None:
            return None
        namespace = self._cluster.namespaces.store.get(Key("", key.namespace))
        # A CRD is large: it is not decoded for each pass.
        kind_deleting = self._cluster.crds.store.is_deleting(self._crd_key)
        return await self._snapshot(
            claim, namespace, more_kinds(claim), kind_deleting=kind_deleting, prove_absence=not deleting(claim)
        )

    async def with_live_namespace(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the claim's namespace no older than the claim. Raises ApiError."""
        return replace(snapshot, namespace=await self._live_namespaces.of(snapshot.claim))

    async def gather_live(self, snapshot: Snapshot) -> Snapshot | None:
        """Return the snapshot with claim, namespace and CRD read live, as a teardown needs; None when it is gone."""
        claim = await self._read(self.claims.resource, snapshot.key)
        if claim is None or uid_of(claim) != snapshot.uid:
            return None
        metadata(claim).pop("managedFields", None)
        return await self.gather_around(replace(snapshot, claim=claim), recorded=recorded_kinds(snapshot.claim))

    async def gather_around(self, snapshot: Snapshot, *, recorded: frozenset[str] | None = None) -> Snapshot:
        """Return the snapshot with namespace and CRD read live, and children that are proven absent; Raises ApiError.

        Of the claim it proves nothing: that takes a write that is bound to its version, or `check_version`. `recorded`:
        the kinds in which children are looked for, the claim's own where it is None.
        """
        namespace, crd = await asyncio.gather(
            self._shared_reads.get(NAMESPACES, Key("", snapshot.key.namespace)),
            self._shared_reads.get(CRDS, self._crd_key),
        )
        kinds = recorded_kinds(snapshot.claim) if recorded is None else recorded
        return await self._snapshot(snapshot.claim, namespace, kinds, kind_deleting=deleting(crd), prove_absence=True)

    async def check_version(self, snapshot: Snapshot) -> None:
        """Read the claim live. Raises WriteConflict where it is gone, another one, or not in the snapshot's version."""
        claim = await self._read(self.claims.resource, snapshot.key)
        is_same = claim is not None and uid_of(claim) == snapshot.uid
        if claim is None or not is_same or version_of(claim) != version_of(snapshot.claim):
            raise WriteConflict(f"claim {snapshot.key} was changed since it was seen")

    async def unseen(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the kinds of which the claim may have children that cannot be listed.

        A claim with an inventory has no child of a kind that is not in it, unless a create had no answer: for a claim
        that is being deleted one is looked for, and where that is forbidden none was ever created.
        """
        if not snapshot.status.get("identity"):
            recorded = recorded_kinds(snapshot.claim) if snapshot.deleting else frozenset()
            unserved = (kind for kind in sorted(recorded - snapshot.catalog.keys()) if self._cluster.is_defined(kind))
            return (*snapshot.unlisted, *unserved)
        recorded = inventory.kinds(inventory.load(snapshot.status))
        return tuple(
            [
                kind
                for kind in snapshot.unlisted
                if kind in recorded
                or (snapshot.deleting and await self._may_have(snapshot, snapshot.catalog[kind].resource))
            ]
        )

    async def _may_have(self, snapshot: Snapshot, resource: Resource) -> bool:
        """Return whether a live list has a child of this kind, or fails."""
        labelled = Selection(namespace=snapshot.key.namespace, labels=f"{names.CLAIM_LABEL}={snapshot.identity.uid}")
        try:
            return bool((await self._cluster.kube.list_page(resource, labelled, limit=1)).items)
        except Forbidden:
            return False
        except ApiError:
            return True

    async def abandoned(self, key: Key) -> tuple[ObservedChild, ...]:
        """Return the children that are deleted without an instruction and whose claim is proven gone.

        The claim's name may belong to another claim by now.
        """
        dying = [child for child in self._dying(key) if await self._owns(child, key)]
        if not dying:
            return ()
        claim = await self._read(self.claims.resource, key)
        return tuple(child for child in dying if claim is None or _is_of_another(child.live, claim))

    def _dying(self, key: Key) -> Iterator[ObservedChild]:
        """Yield the managed children of a claim's name that are being deleted without an instruction."""
        for watched in self._cluster.watches:
            store = watched.store
            for child in store.by_index("dying", f"{key.namespace}/{key.name}"):
                live, facts = store.get(child), self._cluster.catalog.get(watched.resource.group_kind)
                entry = entry_of(live, stateful=facts.stateful) if live and facts else None
                if entry and live and facts and facts.managed and names.TEARDOWN not in annotations_of(live):
                    yield ObservedChild(entry, live, facts)

    async def _owns(self, child: ObservedChild, claim: Key) -> bool:
        """Return whether a child is of a claim of this kind: by its owner, without one by who wrote it."""
        if child.live is None or child.facts is None:
            return False
        mine = self.claims.resource
        owners = metadata(child.live).get("ownerReferences") or ()
        if owners:
            kinds = {(str(owner.get("apiVersion")).rpartition("/")[0], owner.get("kind")) for owner in owners}
            return (mine.group, mine.kind) in kinds
        try:
            whole = await self._cluster.kube.get(child.facts.resource, key_of(child.live))
        except NotFound:
            return False
        manager = names.claim_manager(mine.group, mine.kind, claim)
        return any(entry.get("manager") == manager for entry in metadata(whole).get("managedFields") or ())

    def _size(self, resource: Resource) -> int:
        """Return how many objects of a resource there are, about: namespaces, or CRDs."""
        return len((self._cluster.namespaces if resource == NAMESPACES else self._cluster.crds).store)

    @property
    def _crd_key(self) -> Key:
        resource = self.claims.resource
        return Key("", f"{resource.plural}.{resource.group}")

    async def _snapshot(
        self,
        claim: Object,
        namespace: Object | None,
        more: frozenset[str],
        *,
        kind_deleting: bool,
        prove_absence: bool,
    ) -> Snapshot:
        """Return the snapshot of a claim: its children of all kinds that are recorded, or in `more`."""
        kinds = recorded_kinds(claim) | more
        served = (self._cluster.catalog[kind].resource for kind in sorted(kinds & frozenset(self._cluster.catalog)))
        unlisted = await self._cluster.watches.unlisted(served)
        children = await self._children(claim, kinds - frozenset(unlisted), prove_absence=prove_absence)
        return Snapshot(
            claim=claim,
            resource=self.claims.resource,
            namespace=namespace,
            kind_deleting=kind_deleting,
            catalog=self._cluster.catalog,
            children=children,
            unlisted=unlisted,
            predecessors=await self._predecessors(claim, kinds - frozenset(unlisted)),
        )

    async def with_predecessors(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot of a claim that was recorded in this pass, with what an earlier claim of its name left.

        Only now the kinds of its Composition are recorded. Raises Conflict while one of them is not listed.
        """
        kinds = recorded_kinds(snapshot.claim) & self._cluster.catalog.keys()
        unlisted = await self._cluster.watches.unlisted(self._cluster.catalog[kind].resource for kind in sorted(kinds))
        if unlisted:
            raise Conflict(f"{', '.join(unlisted)} cannot be listed yet")
        return replace(snapshot, predecessors=await self._predecessors(snapshot.claim, kinds))

    async def _predecessors(self, claim: Object, kinds: frozenset[str]) -> tuple[ObservedChild, ...]:
        """Return what an earlier claim of this kind and name left: objects with data of other operators' kinds."""
        identity, key = identity_of(claim).uid, key_of(claim)
        left: list[ObservedChild] = []
        for facts in (self._cluster.catalog[kind] for kind in sorted(kinds & self._cluster.catalog.keys())):
            if facts.managed:
                continue
            store = self._cluster.watches.listed(facts.resource).store
            for name in store.by_index("name", f"{key.namespace}/{key.name}"):
                live = store.get(name)
                entry = entry_of(live, stateful=facts.stateful) if live else None
                if live is None or entry is None or labels_of(live).get(names.CLAIM_LABEL) == identity:
                    continue
                child = ObservedChild(entry, live, facts)
                # A claim that starts beside it on purpose needs no request for its owner in each pass.
                is_in_the_way = entry.stateful and annotations_of(claim).get(names.ADOPT) != "none"
                if is_in_the_way and await self._owns(child, key):
                    left.append(child)
            left += await self._orphans(claim, facts)
            left += await self._named(claim, facts)
        return tuple(left)

    async def _named(self, claim: Object, facts: KindFacts) -> tuple[ObservedChild, ...]:
        """Return the objects of others that the platform team says a claim's first objects are to be.

        What has a claim or a controller already is none.
        """
        if not facts.stateful or deleting(claim):
            return ()
        made = {entry.slot for entry in inventory.load(claim.get("status") or {}) if entry.uid}
        identity, namespace, others = identity_of(claim).uid, key_of(claim).namespace, list[ObservedChild]()
        for (resource, key), name in external_names(claim).items():
            if (resource, key) in made or not _OBJECT_NAME.fullmatch(name):
                continue
            live = await self._read(facts.resource, Key(namespace, name))
            if live is None or labels_of(live).get(names.CLAIM_LABEL, identity) != identity or _has_controller(live):
                continue
            entry = Entry(
                resource=resource,
                key=key,
                api_version=facts.resource.api_version,
                kind=facts.resource.kind,
                name=name,
                uid=uid_of(live),
                stateful=True,
            )
            others.append(ObservedChild(entry, live, facts))
        return tuple(others)

    async def _orphans(self, claim: Object, facts: KindFacts) -> tuple[ObservedChild, ...]:
        """Return what an earlier claim of this kind and name orphaned; it has no label by which it would be watched.

        Looked for while the claim has no object of the kind.
        """
        recorded = inventory.load(claim.get("status") or {})
        has_one = any(entry.uid and entry.group_kind == facts.resource.group_kind for entry in recorded)
        if not facts.stateful or has_one or deleting(claim) or annotations_of(claim).get(names.ADOPT) == "none":
            return ()
        key, orphans = key_of(claim), list[ObservedChild]()
        for live in await self._unlabelled(facts.resource, key.namespace):
            entry = entry_of(live, stateful=True)
            child = ObservedChild(entry, live, facts) if entry else None
            if child and annotations_of(live).get(names.CLAIM_NAME) == key.name and await self._owns(child, key):
                orphans.append(child)
        return tuple(orphans)

    async def _unlabelled(self, resource: Resource, namespace: str) -> tuple[Object, ...]:
        """Return the metadata of all objects of a kind in a namespace without a claim's label. Raises ApiError."""
        without_label = Selection(namespace=namespace, labels=f"!{names.CLAIM_LABEL}", metadata_only=True)
        items, next_page = list[Object](), ""
        while True:
            page = await self._cluster.kube.list_page(resource, without_label, next_page=next_page)
            items += [{**loads(raw), "apiVersion": resource.api_version, "kind": resource.kind} for raw in page.items]
            if not page.next_page:
                return tuple(items)
            next_page = page.next_page

    async def _children(
        self, claim: Object, kinds: frozenset[str], *, prove_absence: bool
    ) -> tuple[ObservedChild, ...]:
        """Return the children of a claim: those of its inventory, and those found by label alone."""
        recorded = inventory.load(claim.get("status") or {})
        identity, namespace = identity_of(claim), key_of(claim).namespace
        facts = {kind: self._cluster.catalog[kind] for kind in sorted(kinds) if kind in self._cluster.catalog}
        children = [
            await self._of_entry(entry, facts.get(entry.group_kind), claim, prove_absence=prove_absence)
            for entry in recorded
        ]
        in_inventory = {(child.entry.group_kind, child.entry.name) for child in children}
        for kind, kind_facts in facts.items():
            store = self._cluster.watches.listed(kind_facts.resource).store
            for key in store.by_index("claim", f"{namespace}/{identity.uid}"):
                live = store.get(key)
                entry = entry_of(live, stateful=kind_facts.stateful) if live else None
                if entry and (kind, key.name) not in in_inventory and _is_of(live, key_of(claim)):
                    children.append(ObservedChild(entry, live, kind_facts))
        return tuple(children)

    async def _of_entry(
        self, entry: Entry, facts: KindFacts | None, claim: Object, *, prove_absence: bool
    ) -> ObservedChild:
        """Return the child of an inventory's entry, with the object that has its name if that is the claim's."""
        namespace, identity = key_of(claim).namespace, identity_of(claim).uid
        if facts is None:
            return ObservedChild(entry, None, None, unseen=self._cluster.is_defined(entry.group_kind))
        key = Key(namespace, entry.name)
        live = self._cluster.watches.listed(facts.resource).store.get(key)
        if live is None and prove_absence:
            # An object without its label is not in the cache, and a create may have taken effect without an answer:
            # only a live read proves that it is gone.
            live = await self._read(facts.resource, key)
        if live is not None and uid_of(live) != entry.uid and labels_of(live).get(names.CLAIM_LABEL) != identity:
            # An object of another owner has the name by now: ours is gone.
            live = None
        if live is not None and uid_of(live) != entry.uid:
            entry = msgspec.structs.replace(entry, uid=uid_of(live), applied=False, desired="", live="", yielded=())
        if live is not None and not entry.stateful and says_stateful(live):
            entry = msgspec.structs.replace(entry, stateful=True)
        return ObservedChild(entry, live, facts)

    async def _read(self, resource: Resource, key: Key) -> Object | None:
        try:
            return await self._cluster.kube.get(resource, key)
        except NotFound:
            return None


def _has_controller(obj: Object) -> bool:
    return any(owner.get("controller") for owner in metadata(obj).get("ownerReferences") or ())


def _is_of_another(live: Object | None, claim: Object) -> bool:
    """Return whether a child is of an earlier claim of the name, and not of this one or what it was restored from."""
    if live is None:
        return False
    owned = {owner.get("uid") for owner in metadata(live).get("ownerReferences") or ()}
    return labels_of(live).get(names.CLAIM_LABEL) != identity_of(claim).uid and uid_of(claim) not in owned


def _is_of(live: Object | None, claim: Key) -> bool:
    return live is not None and annotations_of(live).get(names.CLAIM_NAME) == claim.name
