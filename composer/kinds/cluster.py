"""The informers that all controllers share: of CRDs, namespaces, Secrets' metadata and composed kinds."""

from __future__ import annotations

from apis import names
from composer.kinds.catalog import Catalog, KindFacts, catalog_of, facts_of
from composer.kinds.informers import Watches
from runtime.cache import Cache, Informer
from runtime.changes import Change
from runtime.kube import Kube, Selection
from runtime.objects import CRDS, NAMESPACES, SECRETS, Key, Resource


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
        """Facts of all kinds; a new object when, and only when, one of them has changed."""
        if self._facts is None:
            store = self.crds.store
            read = ((key, facts_of(crd)) for key in tuple(store.keys()) if (crd := store.get(key)) is not None)
            self._facts = {key: facts for key, facts in read if facts is not None}
        if self._catalog is None:
            self._catalog = catalog_of(self._facts.values())
        return self._catalog

    def is_defined(self, kind: str) -> bool:
        """Return whether a CRD defines a kind (`Kind.group`), served or not: objects of it may be there."""
        crds = (self.crds.store.get(key) for key in tuple(self.crds.store.keys()))
        return any(f"{crd['spec']['names']['kind']}.{crd['spec']['group']}" == kind for crd in crds if crd)

    def informer(self, resource: Resource, selection: Selection | None = None, *, required: bool = True) -> Informer:
        """Return the informer of a whole kind, or of a selection of it."""
        return self._cache.informer(resource, selection=selection or Selection(), required=required)

    def secrets(self, namespace: str) -> Informer:
        """Return the informer of a namespace's Secrets, which has their metadata and never their data."""
        return self.informer(SECRETS, _secrets_of(namespace), required=False)

    def credentials(self, namespace: str) -> Informer:
        """Return the informer of the Secrets in which providers keep what a namespace's connection Secrets are made of.

        It has their data, of no other Secret.
        """
        return self.informer(SECRETS, _credentials_of(namespace), required=False)

    def drop_secrets(self, namespace: str) -> None:
        """Stop watching a namespace's Secrets."""
        self._cache.drop(SECRETS, _secrets_of(namespace))
        self._cache.drop(SECRETS, _credentials_of(namespace))

    def drop(self, resource: Resource) -> None:
        """Stop watching a whole kind."""
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


def _secrets_of(namespace: str) -> Selection:
    return Selection(namespace=namespace, metadata_only=True)


def _credentials_of(namespace: str) -> Selection:
    return Selection(namespace=namespace, fields=f"type={names.CREDENTIALS_TYPE}")
