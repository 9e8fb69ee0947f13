"""All that a pass over one claim has read, frozen, and what live objects say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from apis import names
from apis.identity import Identity, identity_of
from composer.hashes import digest
from composer.inventory import Entry, external_reference_of, recorded_kinds
from composer.kinds.catalog import Catalog, KindFacts
from composer.models import ClaimSpec
from composer.render.operators.table import kind_of
from composer.render.schema import Schema, project
from runtime.objects import (
    Key,
    Object,
    Resource,
    annotations_of,
    deleting,
    finalizers_of,
    generation_of,
    key_of,
    labels_of,
    metadata,
    status_of,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class ObservedChild:
    """One object that this claim composed, or that its inventory names; `live` is None when it is proven absent.

    `unseen`: its kind is defined and not served, so that it is not known whether it is there.
    """

    entry: Entry
    live: Object | None
    facts: KindFacts | None
    unseen: bool = False

    @property
    def is_foreign_data(self) -> bool:
        """Whether it holds data and no provider of ours serves it, which would find its database again."""
        return self.entry.stateful and self.facts is not None and not self.facts.managed


# No slots: what is read out of the claim several times in a pass is read once.
@dataclass(frozen=True)
class Snapshot:
    """One claim, its children, and what a decision about them depends on.

    `namespace` is None when it is not in the cache; `kind_deleting`: the claim's own CRD is being deleted; `unlisted`:
    kinds whose objects cannot be listed, so that nothing is known of them; `predecessors`: objects with data of other
    operators' kinds that an earlier claim of this kind and name left behind.
    """

    claim: Object
    resource: Resource
    namespace: Object | None
    kind_deleting: bool
    catalog: Catalog
    children: tuple[ObservedChild, ...]
    unlisted: tuple[str, ...] = ()
    predecessors: tuple[ObservedChild, ...] = ()

    @cached_property
    def key(self) -> Key:
        """The claim's key."""
        return key_of(self.claim)

    @cached_property
    def uid(self) -> str:
        """The claim's uid."""
        return uid_of(self.claim)

    @cached_property
    def status(self) -> Object:
        """The claim's status as last written, possibly empty."""
        status: Object = self.claim.get("status") or {}
        return status

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        """The claim's annotations."""
        return annotations_of(self.claim)

    @cached_property
    def spec(self) -> ClaimSpec:
        """What the engine itself reads of the spec."""
        return msgspec.convert(self.claim.get("spec") or {}, ClaimSpec)

    @cached_property
    def identity(self) -> Identity:
        """The claim's identity, which stays when the claim is restored from a backup."""
        return identity_of(self.claim)

    @cached_property
    def manager(self) -> str:
        """The field manager of the claim and its children."""
        return names.claim_manager(self.resource.group, self.resource.kind, self.key)

    @property
    def deleting(self) -> bool:
        """Whether the claim is being deleted."""
        return deleting(self.claim)

    @property
    def has_finalizer(self) -> bool:
        """Whether the claim carries our finalizer."""
        return names.TEARDOWN_FINALIZER in finalizers_of(self.claim)

    @property
    def is_requested(self) -> bool:
        """Whether a reconcile is requested by a token that the status does not repeat yet."""
        token = self.annotations.get(names.RECONCILE_REQUESTED_AT, "")
        return token[:256] != str(self.status.get("lastHandledReconcileAt") or "")

    def is_new_intent(self, revision: str) -> bool:
        """Return whether the claim's generation, or its revision, is another than the status has."""
        before = (self.status.get("composition") or {}).get("revision")
        return before != revision or self.status.get("observedGeneration") != generation_of(self.claim)

    @property
    def chosen(self) -> str:
        """The Composition that was chosen, from annotation or status."""
        in_status = (self.status.get("composition") or {}).get("name", "")
        return self.annotations.get(names.COMPOSITION) or str(in_status)

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """Labels of the claim's namespace."""
        return labels_of(self.namespace) if self.namespace else {}

    @property
    def namespace_deleting(self) -> bool:
        """Whether the claim's namespace is being deleted."""
        return self.namespace is not None and deleting(self.namespace)


def is_free(entry: Entry, facts: KindFacts | None, live: Object) -> bool:
    """Return whether an object holds neither data nor a login, by what its provider or its operator says.

    It goes as soon as it is taken out, whatever else waits or fails: a rule that stayed would leave a network open. Of
    another operator's kind that is not known by name it is not known what it holds.
    """
    if entry.stateful or facts is None:
        return False
    if facts.managed:
        return not status_of(live).get("connection")
    kind = kind_of(live)
    return kind is not None and not kind.holds_data


def kept_kinds(snapshot: Snapshot) -> frozenset[str]:
    """Return the recorded kinds in which a claim has or may have children; a kind listed without any is left out."""
    with_children = frozenset(child.entry.group_kind for child in snapshot.children)
    unseen = frozenset(
        kind for kind in recorded_kinds(snapshot.claim) if kind in snapshot.unlisted or kind not in snapshot.catalog
    )
    return with_children | unseen


def without_yielded(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with no field yielded: a new intent tries each again."""
    children = tuple(
        replace(child, entry=msgspec.structs.replace(child.entry, yielded=())) for child in snapshot.children
    )
    return replace(snapshot, children=children)


def with_entries(snapshot: Snapshot, entries: Iterable[Entry]) -> Snapshot:
    """Return the snapshot with these entries in place of its own: they are recorded before anything is done."""
    by_place = {(entry.place, entry.name): entry for entry in entries}
    children = tuple(
        replace(child, entry=by_place.get((child.entry.place, child.entry.name), child.entry))
        for child in snapshot.children
    )
    return replace(snapshot, children=children)


def says_stateful(child: Object) -> bool:
    """Return whether a live child says that it holds data: by its annotation, or by our finalizer without an owner."""
    meta, annotations = metadata(child), annotations_of(child)
    group = str(child["apiVersion"]).rpartition("/")[0]
    held = names.TEARDOWN_FINALIZER in finalizers_of(child) and not meta.get("ownerReferences")
    return annotations.get(names.STATEFUL) == "true" or (held and not names.is_managed(group))


def entry_of(child: Object, *, stateful: bool) -> Entry | None:
    """Return the entry of a child that was found by its label alone; None when its annotations are gone.

    `stateful`: its kind holds data. What else the status said of it, the child says itself.
    """
    annotations = annotations_of(child)
    resource = annotations.get(names.RESOURCE)
    if not resource:
        return None
    return Entry(
        resource=resource,
        key=annotations.get(names.FOR_EACH_KEY, ""),
        api_version=child["apiVersion"],
        kind=child["kind"],
        name=key_of(child).name,
        uid=uid_of(child),
        depends_on=tuple(filter(None, annotations.get(names.DEPENDS_ON, "").split(","))),
        stateful=stateful or says_stateful(child),
        external_reference=external_reference_of(child),
    )


_META_SCHEMA: Schema = {
    "properties": {
        "finalizers": {"x-kubernetes-list-type": "set"},
        "ownerReferences": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "labels": {"additionalProperties": {"type": "string"}},
        "annotations": {"additionalProperties": {"type": "string"}},
    }
}


def live_hash(live: Object, desired: Object, schema: Schema | None) -> str:
    """Return the hash of what the API server holds of the fields that we send, whatever version was read."""
    properties = dict((schema or {}).get("properties") or {})
    whole = {**(schema or {}), "properties": properties | {"metadata": _META_SCHEMA}}
    return digest(project({**live, "apiVersion": desired["apiVersion"]}, desired, whole))


def stored_hash(live: Object, desired: Object, schema: Schema | None) -> str:
    """Return the hash of what the API server holds of the fields that we send, a dash, and a name of all content."""
    return f"{live_hash(live, desired, schema)}-{_content(live)}"


def is_stored(live: Object, desired: Object, schema: Schema | None, stored: str) -> bool:
    """Return whether the API server holds what it held when `stored` was recorded, beyond the fields of `desired` too.

    An apply whose record was lost may have left a field of ours that nobody wants any more: to send again takes it
    away. A record without a name of the content says nothing about it.
    """
    fields, dash, content = stored.partition("-")
    return fields == live_hash(live, desired, schema) and (not dash or content == _content(live))


def holds_fields(live: Object, desired: Object, schema: Schema | None, stored: str) -> bool:
    """Return whether the API server holds the fields that we send as it did when `stored` was recorded."""
    return stored.partition("-")[0] == live_hash(live, desired, schema)


def _content(live: Object) -> str:
    """Return a name of an object's content: its generation, or where its kind has none a hash of 8 digits."""
    generation = generation_of(live)
    apart = ("metadata", "status", "apiVersion")
    return str(generation or digest({name: part for name, part in live.items() if name not in apart})[:8])
