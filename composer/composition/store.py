"""What the cluster knows of Compositions: candidates, revisions and environments, read once per change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from apis import names
from composer.composition.revision import Candidate, Revision, candidates, kinds_of, revisions
from composer.kinds.cluster import Cluster
from runtime.changes import Change
from runtime.kube import Selection
from runtime.objects import CONFIG_MAPS, Key, Object


def claim_kind(spec: Mapping[str, Any]) -> str:
    """Return the kind (`Kind.group`) of the claims that the spec of a Composition serves."""
    named = spec.get("compositeTypeRef") or {}
    group = str(named.get("apiVersion", "")).rpartition("/")[0]
    return f"{named.get('kind')}.{group}"


def claims_index(composition: Object) -> Iterable[str]:
    """Index Compositions by the kind of their claims."""
    return (claim_kind(composition.get("spec") or {}),)


def environments_index(composition: Object) -> Iterable[str]:
    """Index Compositions by the environments that they read."""
    return tuple((composition.get("spec") or {}).get("environments") or ())


def kinds_index(composition: Object) -> Iterable[str]:
    """Index Compositions by the kinds that they compose."""
    return kinds_of(composition.get("spec") or {})


class Library:
    """Compositions and their revisions from the caches, decoded once and again when one changes."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._namespace = namespace
        self.compositions = cluster.informer(names.COMPOSITIONS)
        self.compositions.store.add_index("claims", claims_index)
        self.compositions.store.add_index("kind", kinds_index)
        self.compositions.store.add_index("environment", environments_index)
        self.revision_informer = cluster.informer(names.REVISIONS)
        self.environments = cluster.informer(CONFIG_MAPS, Selection(namespace=namespace))
        self._candidates: dict[tuple[str, str], tuple[Candidate, ...]] = {}
        self._revisions: dict[str, tuple[Revision, ...]] | None = None
        self.compositions.subscribe(self._on_composition)
        self.revision_informer.subscribe(self._on_revision)

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        """Return the Compositions that serve a kind, by name."""
        wanted = (api_version, kind)
        if wanted not in self._candidates:
            store = self.compositions.store
            objects = (composition for key in tuple(store.keys()) if (composition := store.get(key)) is not None)
            self._candidates[wanted] = candidates(objects, api_version, kind)
        return self._candidates[wanted]

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        """Return the accepted revisions of a Composition."""
        return self._by_composition().get(composition, ())

    def serving(self, kind: str) -> tuple[Key, ...]:
        """Return the Compositions for claims of a kind (`Kind.group`)."""
        return self.compositions.store.by_index("claims", kind)

    def concerned(self, kind: str) -> tuple[Key, ...]:
        """Return the Compositions that name a kind, for their claims or for what they compose."""
        return tuple({*self.serving(kind), *self.compositions.store.by_index("kind", kind)})

    def composing(self, kind: str) -> frozenset[str]:
        """Return the names of the Compositions of which some revision composes a kind."""
        return frozenset(
            revision.composition_name for revision in self._all_revisions() if kind in kinds_of(revision.composition)
        )

    def reading(self, environment: str) -> frozenset[str]:
        """Return the names of the Compositions of which some revision has no copy of an environment that it reads."""
        return frozenset(revision.composition_name for revision in self._all_revisions() if revision.lacks(environment))

    def settled_by(self, environment: str) -> tuple[Key, ...]:
        """Return the Compositions that read an environment as they are written now."""
        return self.compositions.store.by_index("environment", environment)

    def environment(self, name: str) -> dict[str, str] | None:
        """Return the data of a ConfigMap of our own namespace, or None."""
        config_map = self.environments.store.get(Key(self._namespace, name))
        return None if config_map is None else dict(config_map.get("data") or {})

    def _all_revisions(self) -> Iterator[Revision]:
        return chain.from_iterable(self._by_composition().values())

    def _by_composition(self) -> dict[str, tuple[Revision, ...]]:
        if self._revisions is None:
            store = self.revision_informer.store
            objects = (obj for key in tuple(store.keys()) if (obj := store.get(key)) is not None)
            grouped: dict[str, list[Revision]] = {}
            for revision in revisions(objects):
                grouped.setdefault(revision.composition_name, []).append(revision)
            self._revisions = {name: tuple(group) for name, group in grouped.items()}
        return self._revisions

    def _on_composition(self, _: Change) -> None:
        self._candidates.clear()

    def _on_revision(self, _: Change) -> None:
        self._revisions = None
