"""Decides the deletion of a claim: which teardown instruction its children get, and when. Pure; rows are test cases.

Children are deleted in reverse order of their dependencies, each wave after the last is proven gone; what lives inside
another child is not waited for, since a server may refuse to give up a part of it. A deletion that the claim's owner
did not request (its namespace's, its CRD's) destroys nothing. A child that is gone and whose provider
never got an instruction to delete what it stands for is created again first: its provider finds the database by the
recorded external reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from apis import names
from apis.reasons import ReasonClass, class_of_claim
from apis.teardown import ENDING, DeletionPolicy, Policy, instruction, policy_with
from composer.causes import Cause, cause
from composer.claim.decide import (
    Annotate,
    Create,
    Delete,
    Keep,
    Orphan,
    RemoveFinalizer,
    Step,
    copied_pause,
    recreated,
    with_instruction,
)
from composer.claim.prune_guard import consent_command, consents_of, no_backup, not_served
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry, external_reference_of
from composer.kinds.catalog import KindFacts
from composer.render.operators.table import kind_of
from composer.render.render import Child
from runtime import finalizers, kubectl
from runtime.conditions import find
from runtime.objects import Object, annotations_of, deleting, finalizers_of, key_of, labels_of, metadata, uid_of
from runtime.preconditions import annotation_patch, patch_tests

# Providers look at what is refused every five minutes, at what is out of reach every minute.
_TRIED_AGAIN = "tried again within 5 minutes"
# Reasons of a child that is deleted while all is well, and before it has seen its instruction.
_ON_ITS_WAY = frozenset({"AwaitingTeardown", "Creating", "Deleting", "InSync", "Updating"})
_COLLECTORS = frozenset({"foregroundDeletion", "orphan"})


@dataclass(frozen=True, slots=True)
class Teardown:
    """What one pass over a deletion does. `done`: no child is left. `keeps_secret`: the connection Secret stays."""

    steps: tuple[Step, ...]
    causes: tuple[Cause, ...]
    done: bool
    keeps_secret: bool


def effective_policy(snapshot: Snapshot, supported: tuple[DeletionPolicy, ...] | None) -> DeletionPolicy:
    """Return the deletion policy in force: the spec's where the composition supports it, else Orphan.

    `supported` is None when the composition cannot be read any more; then the last policy that was in force counts.
    """
    wanted = snapshot.spec.deletion_policy
    if supported is not None:
        return wanted if wanted in supported else "Orphan"
    return wanted if wanted == snapshot.status.get("deletionPolicy") else "Orphan"


def teardown_policy(snapshot: Snapshot, policy: DeletionPolicy) -> Policy:
    """Return the policy by which a deletion of the claim deletes its children."""
    if snapshot.kind_deleting:
        return Policy.DETACH
    ephemeral = snapshot.namespace_labels.get(names.EPHEMERAL_LABEL) == "true"
    if snapshot.namespace_deleting and not ephemeral:
        return Policy.DETACH
    return Policy(policy)


def tear_down(snapshot: Snapshot, policy: DeletionPolicy, rendered: Sequence[Child] = ()) -> Teardown:
    """Decide one pass over a claim that is being deleted, from live reads of claim, namespace and CRD.

    `rendered` is needed where `has_vanished` says so: the children as the claim's Composition renders them.
    """
    if snapshot.spec.deletion_protection:
        text = "the deletion is held by spec.deletionProtection; set it to false to let the claim go"
        kept = tuple(Keep(child.entry) for child in snapshot.children)
        return Teardown(kept, (cause("DeletionProtected", text),), done=False, keeps_secret=True)
    teardown = teardown_policy(snapshot, policy)
    remaining = [child for child in snapshot.children if not _is_gone(snapshot, child, teardown)]
    held = tuple(why for child in remaining if (why := _held(snapshot, child, teardown)) is not None)
    if held:
        return Teardown(tuple(Keep(child.entry) for child in remaining), held, done=False, keeps_secret=True)
    steps: list[Step] = []
    causes: list[Cause] = []
    for child in remaining:
        if _is_needed(child, remaining):
            steps.append(Keep(child.entry))
            continue
        step = _recreation(child, teardown, rendered) if child.live is None else _step(snapshot, child, teardown)
        if isinstance(step, Cause):
            causes.append(step)
            step = Keep(child.entry)
        steps.append(step)
        blocked = blocker(child)
        if blocked:
            causes.append(blocked)
    if remaining:
        left = ", ".join(f"{child.entry.kind} {child.entry.name}" for child in remaining)
        causes.append(cause("Deleting", f"waits for {left} to go ({teardown})"))
    return Teardown(
        tuple(steps), tuple(causes), done=not remaining, keeps_secret=teardown in (Policy.ORPHAN, Policy.DETACH)
    )


def _held(snapshot: Snapshot, child: ObservedChild, teardown: Policy) -> Cause | None:
    """Return why nothing is deleted yet: an unseen child, or data that would be lost against the claim's policy."""
    if child.unseen:
        return not_served(child)
    if not child.is_foreign_data or child.live is None or teardown is Policy.DELETE:
        return None
    if teardown is Policy.SNAPSHOT:
        return no_backup(child)
    if (child.entry.resource, uid_of(child.live)) in consents_of(snapshot.annotations):
        return None
    if teardown is Policy.DETACH:
        # A volume's claim has the reclaim policy of its volume; another operator has none that we know.
        is_operators = snapshot.namespace_deleting and "." in child.entry.group
        return _held_by_namespace(snapshot, child, child.live) if is_operators else None
    # In a namespace that goes by the policies of its claims, the namespace controller deletes what waits for its wave.
    by_hand = deleting(child.live) and not snapshot.namespace_deleting
    is_going = by_hand and names.TEARDOWN_FINALIZER in finalizers_of(child.live)
    return _held_by_orphan(snapshot, child, uid_of(child.live)) if is_going else None


def _held_by_orphan(snapshot: Snapshot, child: ObservedChild, uid: str) -> Cause:
    """Return the cause of foreign data that somebody else deleted, and that the claim's policy keeps."""
    text = (
        f"{child.entry.kind} {child.entry.name} was deleted by somebody else, and by deletionPolicy Orphan it lives on;"
        f" save what is in it, then let it go: {consent_command(snapshot, child.entry.resource, uid)}, or set"
        " spec.deletionPolicy to Delete"
    )
    return cause("HeldDeletion", text, resource=child.entry.resource)


def _held_by_namespace(snapshot: Snapshot, child: ObservedChild, live: Object) -> Cause:
    """Return the cause of foreign data in a namespace that is being deleted: released, the object would go with it."""
    kind, uid = kind_of(live), uid_of(live)
    consequence = f" ({kind.on_deletion})" if kind else ""
    label = kubectl.label(f"namespace/{snapshot.key.namespace}", names.EPHEMERAL_LABEL, "true")
    text = (
        f"namespace {snapshot.key.namespace} is being deleted, and {child.entry.kind} {child.entry.name}, which holds"
        f" data, would go with it{consequence}; save what is in it; then let it go:"
        f" {consent_command(snapshot, child.entry.resource, uid)}; or, for all of the namespace by their policies:"
        f" {label}"
    )
    return cause("HeldDeletion", text, resource=child.entry.resource)


def _is_needed(child: ObservedChild, remaining: list[ObservedChild]) -> bool:
    """Return whether a child that depends on this one is still there: its wave comes first.

    One that lives inside this one goes with it: a role that owns tables, a database with sessions.
    """
    name = child.entry.resource
    return any(
        name in other.entry.depends_on
        for other in remaining
        if other.entry.resource != name and not (other.facts is not None and other.facts.inside)
    )


def has_vanished(snapshot: Snapshot, policy: DeletionPolicy) -> bool:
    """Return whether a child must be created again before the claim can go, so that its provider deletes its object."""
    teardown = teardown_policy(snapshot, policy)
    return any(_vanished(snapshot, child, teardown) for child in snapshot.children)


def _vanished(snapshot: Snapshot, child: ObservedChild, teardown: Policy) -> bool:
    """Return whether a child is gone and its object in the cloud is not: its provider got no instruction to delete it.

    Its CRD was deleted, or its finalizer removed by force. Nothing can be created in a namespace that is deleted.
    """
    entry = child.entry
    if (
        child.live is not None
        or child.unseen
        or teardown in (Policy.ORPHAN, Policy.DETACH)
        or snapshot.namespace_deleting
    ):
        return False
    was_instructed = entry.outcome in {instruction(entry.uid, policy) for policy in ENDING}
    return names.is_managed(entry.group) and bool(entry.external_reference) and not was_instructed


def _recreation(child: ObservedChild, teardown: Policy, rendered: Sequence[Child]) -> Step | Cause:
    """Create a vanished child again with its external reference; return the cause where that is impossible."""
    entry, facts = child.entry, child.facts
    if child.unseen:
        return Keep(entry)
    subject = f"{entry.kind} {entry.name} vanished, and what it stands for in the cloud was not ended ({teardown})"
    way_out = "or set spec.deletionPolicy to Orphan, which leaves it as it is"
    if facts is None:
        text = f"{subject}: install {entry.group_kind} again, {way_out}"
        return cause("KindNotInstalled", text, resource=entry.resource)
    wanted = next((other for other in rendered if (other.place, other.name) == (entry.place, entry.name)), None)
    if wanted is None:
        text = f"{subject}: the claim's Composition cannot make it again; mend the Composition, {way_out}"
        return cause("RevisionNotFound", text, resource=entry.resource)
    forgotten = msgspec.structs.replace(entry, outcome="")
    return Create(forgotten, facts, recreated(wanted.object, entry), wanted.floors)


def _is_gone(snapshot: Snapshot, child: ObservedChild, teardown: Policy) -> bool:
    """Return whether nothing is left to do for a child: it is deleted, or orphaned."""
    if child.live is None:
        return not child.unseen and not _vanished(snapshot, child, teardown)
    if child.facts is None or child.facts.managed:
        return False
    label, identity = labels_of(child.live).get(names.CLAIM_LABEL), snapshot.identity.uid
    # Orphan removes label and finalizer at once: with our finalizer and no label it is not orphaned yet.
    return label != identity and (bool(label) or names.TEARDOWN_FINALIZER not in finalizers_of(child.live))


def _step(snapshot: Snapshot, child: ObservedChild, teardown: Policy) -> Step:
    """Return the step of a child whose wave has come."""
    entry, live, facts = child.entry, child.live, child.facts
    if live is None or facts is None:
        return Keep(entry)
    if not facts.managed:
        return _foreign_step(child, live, facts, teardown)
    annotation = instruction(uid_of(live), teardown)
    # A child that goes by another instruction already may be gone before its provider sees this one.
    if not deleting(live) or annotations_of(live).get(names.TEARDOWN, "") in ("", annotation):
        entry = with_instruction(entry, live, teardown)
    # A pause that has ended for the claim has ended for its child, too.
    lifted = copied_pause(snapshot, live)
    policy = policy_with(live, teardown)
    if not deleting(live) and not lifted:
        why = f"the claim is being deleted ({teardown}){_what_stays(entry, live, teardown)}"
        return Delete(entry, facts, live, annotation, why, policy)
    if not deleting(live):
        return Annotate(entry, facts, live, lifted)
    if annotations_of(live).get(names.TEARDOWN) != annotation:
        lifted[names.TEARDOWN] = annotation
    return Annotate(entry, facts, live, lifted, policy) if lifted or policy else Keep(entry)


def _what_stays(entry: Entry, live: Object, teardown: Policy) -> str:
    """Return what a deletion under Orphan leaves in the cloud, by the name that it has there, as text."""
    name = external_reference_of(live).get("external-name", "")
    if teardown not in (Policy.ORPHAN, Policy.DETACH) or not entry.stateful or not name:
        return ""
    return f"; {name} and its Secrets stay"


def _foreign_step(child: ObservedChild, live: Object, facts: KindFacts, teardown: Policy) -> Step:
    """Return the step of a child of another operator, which knows no teardown instruction."""
    entry = child.entry
    ours = names.TEARDOWN_FINALIZER in finalizers_of(live)
    if deleting(live):
        return RemoveFinalizer(entry, facts, live) if ours else Keep(entry)
    if entry.stateful and teardown is not Policy.DELETE:
        return Orphan(entry, facts, live)
    return Delete(entry, facts, live, "", f"the claim is being deleted ({teardown})")


def blocker(child: ObservedChild) -> Cause | None:
    """Return the cause that keeps a deleted child from going, by its conditions; None when it is only on its way."""
    live = child.live
    if live is None or not deleting(live):
        return None
    condition = _blocking_condition(live)
    subject = f"{live['kind']} {key_of(live).name}"
    if condition is not None:
        text = f"{subject}: {condition['message']}; since {condition['lastTransitionTime']}, {_TRIED_AGAIN}"
        reason_class = (
            ReasonClass.STALLED
            if condition["type"] == "Stalled"
            else min(class_of_claim(str(condition["reason"])), ReasonClass.WAITING)
        )
        return cause(str(condition["reason"]), text, resource=child.entry.resource, shown_as=reason_class)
    managed = child.facts is not None and child.facts.managed
    holders = sorted(set(finalizers_of(live)) - _COLLECTORS - {names.TEARDOWN_FINALIZER})
    if holders and not managed:
        since = live["metadata"]["deletionTimestamp"]
        text = f"{subject} is held by finalizer {', '.join(holders)} since {since}; whoever set it must remove it"
        return cause("DeleteBlocked", text, resource=child.entry.resource, shown_as=ReasonClass.WAITING)
    return None


def _blocking_condition(live: Object) -> Object | None:
    """Return the child's condition that keeps it from going, the most severe first."""
    for type_ in ("Stalled", "Reconciling", "Synced"):
        condition = find(live, type_)
        unwell = "False" if type_ == "Synced" else "True"
        if condition is not None and condition["status"] == unwell and condition["reason"] not in _ON_ITS_WAY:
            return {"lastTransitionTime": "its deletion", **condition}
    return None


def adoption_patch(live: Object, identity: str, about: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the JSON patch that makes a foreign object the child of the claim with this identity.

    `about` are the annotations that say which claim and resource it is of.
    """
    meta, operations = metadata(live), annotation_patch(live, about)
    label = names.CLAIM_LABEL.replace("/", "~1")
    if not meta.get("labels"):
        operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
    operations.append({"op": "add", "path": f"/metadata/labels/{label}", "value": identity})
    if names.TEARDOWN_FINALIZER not in (meta.get("finalizers") or ()):
        held = [*(meta.get("finalizers") or ()), names.TEARDOWN_FINALIZER]
        operations.append({"op": "add", "path": "/metadata/finalizers", "value": held})
    return operations


def finalizer_patch(live: Object) -> list[dict[str, Any]]:
    """Return the JSON patch that orphans a foreign object: it removes our finalizer and our label."""
    operations = finalizers.removal(live, names.TEARDOWN_FINALIZER) or patch_tests(live)
    if names.CLAIM_LABEL not in labels_of(live):
        return operations
    label = names.CLAIM_LABEL.replace("/", "~1")
    return [*operations, {"op": "remove", "path": f"/metadata/labels/{label}"}]
