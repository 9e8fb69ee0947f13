"""Reads all that a pass over one claim looks at, from caches; live where absence must be proven."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from composer import inventory, names
from composer.inventory import Entry
from composer.kinds import Catalog, KindFacts, catalog_of, facts_of
from composer.view import Known, View, identity_of, recorded_kinds
from composer.watches import Watches
from runtime.cache import Cache, Informer
from runtime.changes import Change
from runtime.errors import NotFound
from runtime.kube import Kube, Selection
from runtime.objects import (
    CRDS,
    NAMESPACES,
    SECRETS,
    Key,
    Object,
    Resource,
    annotations_of,
    deleting,
    key_of,
    labels_of,
    metadata,
    uid_of,
)


class Cluster:
    """What all controllers share: the kinds that exist, namespaces, and the informers of composed kinds."""

    def __init__(self, kube: Kube, cache: Cache) -> None:
        self.kube = kube
        self._cache = cache
        self.crds = cache.informer(CRDS)
        # Their labels and whether they go: nothing else of a namespace is ever read.
        self.namespaces = cache.informer(NAMESPACES, selection=Selection(metadata_only=True))
        self.watches = Watches(cache)
        self._facts: dict[Key, KindFacts] | None = None
        self._catalog: Catalog | None = None
        self.crds.subscribe(self._on_crd)

    @property
    def catalog(self) -> Catalog:
        """Facts of all kinds; another object when, and only when, one of them has changed."""
        if self._facts is None:
            store = self.crds.store
            read = ((key, facts_of(crd)) for key in tuple(store.keys()) if (crd := store.get(key)) is not None)
            self._facts = {key: facts for key, facts in read if facts is not None}
        if self._catalog is None:
            self._catalog = catalog_of(self._facts.values())
        return self._catalog

    def informer(self, resource: Resource, selection: Selection | None = None, *, required: bool = True) -> Informer:
        """Return the informer of a whole kind, or of a selection of it."""
        return self._cache.informer(resource, selection=selection or Selection(), required=required)

    def secrets(self, namespace: str) -> Informer:
        """Return the informer of a namespace's Secrets: that one changed is seen, and never what it holds."""
        return self.informer(SECRETS, Selection(namespace=namespace, metadata_only=True), required=False)

    def drop(self, resource: Resource) -> None:
        """Watch a whole kind no longer."""
        self._cache.drop(resource)

    def _on_crd(self, change: Change) -> None:
        if self._facts is None:
            return
        crd = change.new()
        facts = facts_of(crd) if crd else None
        if facts == self._facts.get(change.key):
            return
        self._catalog = None
        if facts is None:
            del self._facts[change.key]
        else:
            self._facts[change.key] = facts


class Gatherer:
    """Reads claims of one kind and what belongs to them."""

    def __init__(self, cluster: Cluster, claims: Informer) -> None:
        self._cluster = cluster
        self.claims = claims

    async def gather(self, key: Key, *, more_kinds: Callable[[Object], frozenset[str]]) -> View | None:
        """Read a living claim; None when there is none. `more_kinds` adds those of its composition. Raises ApiError."""
        claim = self.claims.store.get(key)
        if claim is None:
            return None
        namespace = self._cluster.namespaces.store.get(Key("", key.namespace))
        crd = self._cluster.crds.store.get(self._crd_key)
        return await self._view(claim, namespace, crd, more_kinds(claim))

    async def gather_live(self, view: View) -> View | None:
        """Read claim, namespace and CRD again, live: what a teardown may rest on. None when the claim is gone."""
        kube = self._cluster.kube
        try:
            claim = await kube.get(self.claims.resource, view.key)
        except NotFound:
            return None
        if uid_of(claim) != view.uid:
            return None
        namespace = await kube.get(NAMESPACES, Key("", view.key.namespace))
        crd = await kube.get(CRDS, self._crd_key)
        metadata(claim).pop("managedFields", None)
        return await self._view(claim, namespace, crd, recorded_kinds(view.claim))

    async def abandoned(self, key: Key) -> tuple[Known, ...]:
        """Return the children that die without a word although their claim is proven gone."""
        found: list[Known] = []
        for watched in self._cluster.watches:
            facts, store = self._cluster.catalog.get(watched.resource.group_kind), watched.store
            for child in store.by_index("owner", f"{key.namespace}/{key.name}"):
                live = store.get(child)
                if live is None or facts is None or not deleting(live) or not self._owns(live):
                    continue
                entry = inventory.entry_of(live, stateful=facts.stateful)
                if entry and facts.managed and names.TEARDOWN not in annotations_of(live):
                    found.append(Known(entry, live, facts))
        if found and await self._read(self.claims.resource, key) is not None:
            return ()
        return tuple(found)

    def _owns(self, live: Object) -> bool:
        """Tell whether a child is owned by a claim of this kind; one that says nothing may be."""
        owners = metadata(live).get("ownerReferences") or ()
        return not owners or any(each.get("kind") == self.claims.resource.kind for each in owners)

    @property
    def _crd_key(self) -> Key:
        resource = self.claims.resource
        return Key("", f"{resource.plural}.{resource.group}")

    async def _view(self, claim: Object, namespace: Object | None, crd: Object | None, more: frozenset[str]) -> View:
        kinds = recorded_kinds(claim) | more
        served = (self._cluster.catalog[kind].resource for kind in sorted(kinds & frozenset(self._cluster.catalog)))
        unlisted = await self._cluster.watches.unlisted(served)
        known = await self._known(claim, kinds - frozenset(unlisted))
        return View(
            claim=claim,
            resource=self.claims.resource,
            namespace=namespace,
            kind_deleting=crd is None or deleting(crd),
            catalog=self._cluster.catalog,
            known=known,
            unlisted=unlisted,
        )

    async def _known(self, claim: Object, kinds: frozenset[str]) -> tuple[Known, ...]:
        recorded = inventory.load(claim.get("status") or {})
        identity, namespace = identity_of(claim), key_of(claim).namespace
        facts = {kind: self._cluster.catalog[kind] for kind in sorted(kinds) if kind in self._cluster.catalog}
        owner = identity.uid
        found = [await self._of_entry(entry, facts.get(entry.group_kind), namespace, owner) for entry in recorded]
        names_known = {(each.entry.group_kind, each.entry.name) for each in found}
        for kind, about in facts.items():
            store = self._cluster.watches.listed(about.resource).store
            for key in store.by_index("claim", f"{namespace}/{identity.uid}"):
                live = store.get(key)
                entry = inventory.entry_of(live, stateful=about.stateful) if live else None
                if entry and (kind, key.name) not in names_known and _is_of(live, key_of(claim)):
                    found.append(Known(entry, live, about))
        return tuple(found)

    async def _of_entry(self, entry: Entry, facts: KindFacts | None, namespace: str, identity: str) -> Known:
        if facts is None:
            return Known(entry, None, None)
        key = Key(namespace, entry.name)
        live = self._cluster.watches.listed(facts.resource).store.get(key)
        if live is None and entry.uid:
            # Without its label an object is not in the cache; only the API server can say that it is gone.
            live = await self._read(facts.resource, key)
        if live is not None and uid_of(live) != entry.uid and labels_of(live).get(names.CLAIM_LABEL) != identity:
            # A stranger has the name by now: ours is gone.
            live = None
        if live is not None and uid_of(live) != entry.uid:
            entry = msgspec.structs.replace(entry, uid=uid_of(live), applied=False, desired="", live="", resting=())
        return Known(entry, live, facts)

    async def _read(self, resource: Resource, key: Key) -> Object | None:
        try:
            live = await self._cluster.kube.get(resource, key)
        except NotFound:
            return None
        metadata(live).pop("managedFields", None)
        return live


def _is_of(live: Object | None, claim: Key) -> bool:
    return live is not None and annotations_of(live).get(names.CLAIM_NAME) == claim.name
