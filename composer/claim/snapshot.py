"""All that a pass over one claim has read, frozen: what the decisions look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from apis import names
from apis.identity import Identity
from composer import inventory
from composer.inventory import Entry
from composer.kinds.catalog import Catalog, KindFacts
from composer.models import ClaimSpec
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
    uid_of,
)


@dataclass(frozen=True, slots=True)
class Known:
    """One object that this claim composed, or that its inventory names; `live` is None when it is proven absent.

    `unseen`: its kind is defined and not served, so that nobody can tell whether it is there.
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
class View:
    """One claim and all around it.

    `namespace` is None when it is not in the cache; `kind_deleting`: the claim's own CRD is being deleted; `unlisted`:
    kinds whose objects cannot be listed, so that nothing is known of them; `predecessors`: objects with data of other
    operators' kinds that an earlier claim of this kind and name left behind.
    """

    claim: Object
    resource: Resource
    namespace: Object | None
    kind_deleting: bool
    catalog: Catalog
    known: tuple[Known, ...]
    unlisted: tuple[str, ...] = ()
    predecessors: tuple[Known, ...] = ()

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
        found: Object = self.claim.get("status") or {}
        return found

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
        """Who the claim is for ever."""
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
    def is_asked(self) -> bool:
        """Whether a person asked for this pass by a token that the status does not repeat yet."""
        token = self.annotations.get(names.RECONCILE_REQUESTED_AT, "")
        return token[:256] != str(self.status.get("lastHandledReconcileAt") or "")

    def is_new_intent(self, revision: str) -> bool:
        """Whether the claim, or its revision, is another than at the last pass that the status tells of."""
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


def identity_of(claim: Object) -> Identity:
    """Read or make the identity of a claim: annotation first, then status."""
    recorded = (annotations_of(claim).get(names.IDENTITY, ""), str((claim.get("status") or {}).get("identity") or ""))
    return Identity.choose(filter(None, recorded), key_of(claim), uid_of(claim))


def recorded_kinds(claim: Object) -> frozenset[str]:
    """Return every kind (`Kind.group`) in which children of a claim may be found."""
    listed = annotations_of(claim).get(names.KINDS, "")
    return frozenset(filter(None, listed.split(","))) | inventory.kinds(inventory.load(claim.get("status") or {}))


def kept_kinds(view: View) -> frozenset[str]:
    """Return the recorded kinds of which a claim has or may have children: one that was listed without any is none."""
    known = frozenset(each.entry.group_kind for each in view.known)
    unseen = frozenset(kind for kind in recorded_kinds(view.claim) if kind in view.unlisted or kind not in view.catalog)
    return known | unseen


def without_rests(view: View) -> View:
    """Return the view with no field at rest: a new intent tries each again."""
    known = tuple(replace(each, entry=msgspec.structs.replace(each.entry, resting=())) for each in view.known)
    return replace(view, known=known)
