"""How a claim goes: which instruction its children are given, and in which waves. Pure; every row is a test case.

Children go in reverse order of their dependencies, each wave after the last is proven gone. A deletion that the claim's
owner did not ask for (its namespace's, its CRD's) destroys nothing. A child that is not there although its provider was
never told to end what it stands for is made again first: its provider finds the database by the recorded marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from apis import names
from apis.reasons import ReasonClass, class_of_claim
from apis.teardown import ENDING, DeletionPolicy, Policy, instruction
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
    policy_with,
    recreated,
    with_instruction,
)
from composer.claim.prune_guard import consent_command, consents_of, no_backup, unseen
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry, marks_of
from composer.kinds.catalog import KindFacts
from composer.render.render import Child
from runtime.conditions import find
from runtime.objects import Key, Object, annotations_of, deleting, finalizers_of, key_of, labels_of, uid_of

# Providers look at what is refused every five minutes, at what is out of reach every minute.
_TRIED_AGAIN = "tried again within 5 minutes"
# What a child that goes says of itself while all is well, and before it has seen the instruction.
_ON_ITS_WAY = frozenset({"AwaitingTeardown", "Creating", "Deleting", "InSync", "Updating"})
_COLLECTORS = frozenset({"foregroundDeletion", "orphan"})


@dataclass(frozen=True, slots=True)
class Teardown:
    """One pass of a teardown. `done`: nothing is left, the claim may go. `keeps_secret`: its Secret stays."""

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
    """Return what a deletion of the claim means for its children."""
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
        kept = tuple(Keep(each.entry) for each in snapshot.known)
        return Teardown(kept, (cause("DeletionProtected", text),), done=False, keeps_secret=True)
    teardown = teardown_policy(snapshot, policy)
    remaining = [each for each in snapshot.known if not _is_gone(snapshot, each, teardown)]
    held = tuple(why for each in remaining if (why := _held(snapshot, each, teardown)) is not None)
    if held:
        return Teardown(tuple(Keep(each.entry) for each in remaining), held, done=False, keeps_secret=True)
    steps: list[Step] = []
    causes: list[Cause] = []
    for each in remaining:
        if _is_needed(each, remaining):
            steps.append(Keep(each.entry))
            continue
        step = _again(each, teardown, rendered) if each.live is None else _step(snapshot, each, teardown)
        if isinstance(step, Cause):
            causes.append(step)
            step = Keep(each.entry)
        steps.append(step)
        blocked = blocker(each)
        if blocked:
            causes.append(blocked)
    if remaining:
        left = ", ".join(f"{each.entry.kind} {each.entry.name}" for each in remaining)
        causes.append(cause("Deleting", f"waits for {left} to go ({teardown})"))
    return Teardown(
        tuple(steps), tuple(causes), done=not remaining, keeps_secret=teardown in (Policy.ORPHAN, Policy.DETACH)
    )


def _held(snapshot: Snapshot, each: ObservedChild, teardown: Policy) -> Cause | None:
    """Say why nothing goes yet: a child that nobody can see, or data that would be lost against the claim's policy."""
    if each.unseen:
        return unseen(each)
    if not each.is_foreign_data or each.live is None or teardown not in (Policy.ORPHAN, Policy.SNAPSHOT):
        return None
    if teardown is Policy.SNAPSHOT:
        return no_backup(each)
    ours = names.TEARDOWN_FINALIZER in finalizers_of(each.live)
    uid = uid_of(each.live)
    if not (ours and deleting(each.live)) or (each.entry.resource, uid) in consents_of(snapshot.annotations):
        return None
    text = (
        f"{each.entry.kind} {each.entry.name} was deleted by somebody else, and by deletionPolicy Orphan it lives on;"
        f" save what is in it, then let it go: {consent_command(snapshot, each.entry.resource, uid)}, or set"
        " spec.deletionPolicy to Delete"
    )
    return cause("HeldDeletion", text, resource=each.entry.resource)


def _is_needed(each: ObservedChild, remaining: list[ObservedChild]) -> bool:
    """Return whether something that depends on a child is still there: its wave comes first."""
    name = each.entry.resource
    return any(name in other.entry.depends_on for other in remaining if other.entry.resource != name)


def has_vanished(snapshot: Snapshot, policy: DeletionPolicy) -> bool:
    """Return whether a child of a claim that is being deleted must be made again, so that its provider can end it."""
    teardown = teardown_policy(snapshot, policy)
    return any(_vanished(snapshot, child, teardown) for child in snapshot.known)


def _vanished(snapshot: Snapshot, child: ObservedChild, teardown: Policy) -> bool:
    """Return whether a child is not there, and what it stands for in the cloud is: nobody told its provider to end it.

    Its CRD was deleted, or its finalizer taken off by force. Nothing can be made in a namespace that goes.
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
    return names.is_managed(entry.group) and bool(entry.marks) and not was_instructed


def _again(child: ObservedChild, teardown: Policy, rendered: Sequence[Child]) -> Step | Cause:
    """Make a vanished child again with its marks; say why where that is impossible."""
    entry, facts = child.entry, child.facts
    if child.unseen:
        return Keep(entry)
    what = f"{entry.kind} {entry.name} vanished, and what it stands for in the cloud was not ended ({teardown})"
    way_out = "or set spec.deletionPolicy to Orphan, which leaves it as it is"
    if facts is None:
        text = f"{what}: install {entry.group_kind} again, {way_out}"
        return cause("KindNotInstalled", text, resource=entry.resource)
    wanted = next((other for other in rendered if (other.place, other.name) == (entry.place, entry.name)), None)
    if wanted is None:
        text = f"{what}: the claim's Composition cannot make it again; mend the Composition, {way_out}"
        return cause("RevisionNotFound", text, resource=entry.resource)
    forgotten = msgspec.structs.replace(entry, outcome="")
    return Create(forgotten, facts, recreated(wanted.object, entry), wanted.floors)


def recorded(snapshot: Snapshot, entries: Iterable[Entry]) -> Snapshot:
    """Return the snapshot with these entries in the place of its own: they are written down before anything is done."""
    by_place = {(entry.place, entry.name): entry for entry in entries}
    known = tuple(
        replace(child, entry=by_place.get((child.entry.place, child.entry.name), child.entry))
        for child in snapshot.known
    )
    return replace(snapshot, known=known)


def _is_gone(snapshot: Snapshot, each: ObservedChild, teardown: Policy) -> bool:
    if each.live is None:
        return not each.unseen and not _vanished(snapshot, each, teardown)
    if each.facts is None or each.facts.managed:
        return False
    label, identity = labels_of(each.live).get(names.CLAIM_LABEL), snapshot.identity.uid
    # Letting go takes label and finalizer at once: with our finalizer and no label it was merely taken off.
    return label != identity and (bool(label) or names.TEARDOWN_FINALIZER not in finalizers_of(each.live))


def _step(snapshot: Snapshot, each: ObservedChild, teardown: Policy) -> Step:
    entry, live, facts = each.entry, each.live, each.facts
    if live is None or facts is None:
        return Keep(entry)
    if not facts.managed:
        return _foreign_step(each, live, facts, teardown)
    annotation = instruction(uid_of(live), teardown)
    # A child that goes by another instruction already may be gone before it hears this one.
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
    """Say what a deletion under Orphan leaves in the cloud, by the name that it has there."""
    name = marks_of(live).get("external-name", "")
    if teardown not in (Policy.ORPHAN, Policy.DETACH) or not entry.stateful or not name:
        return ""
    return f"; {name} and its Secrets stay"


def _foreign_step(each: ObservedChild, live: Object, facts: KindFacts, teardown: Policy) -> Step:
    entry = each.entry
    ours = names.TEARDOWN_FINALIZER in finalizers_of(live)
    if deleting(live):
        return RemoveFinalizer(entry, facts, live) if ours else Keep(entry)
    if entry.stateful and teardown is not Policy.DELETE:
        return Orphan(entry, facts, live)
    return Delete(entry, facts, live, "", f"the claim is being deleted ({teardown})")


def blocker(each: ObservedChild) -> Cause | None:
    """Say what keeps a deleted child from going, in its own words; None when it is merely on its way."""
    live = each.live
    if live is None or not deleting(live):
        return None
    condition = _trouble(live)
    what = f"{live['kind']} {key_of(live).name}"
    if condition is not None:
        text = f"{what}: {condition['message']}; since {condition['lastTransitionTime']}, {_TRIED_AGAIN}"
        weight = (
            ReasonClass.STALLED
            if condition["type"] == "Stalled"
            else min(class_of_claim(str(condition["reason"])), ReasonClass.WAITING)
        )
        return cause(str(condition["reason"]), text, resource=each.entry.resource, shown_as=weight)
    managed = each.facts is not None and each.facts.managed
    holders = sorted(set(finalizers_of(live)) - _COLLECTORS - {names.TEARDOWN_FINALIZER})
    if holders and not managed:
        since = live["metadata"]["deletionTimestamp"]
        text = f"{what} is held by finalizer {', '.join(holders)} since {since}; whoever set it must remove it"
        return cause("DeleteBlocked", text, resource=each.entry.resource, shown_as=ReasonClass.WAITING)
    return None


def _trouble(live: Object) -> Object | None:
    """Return the child's condition that tells of trouble, the gravest first."""
    for type_ in ("Stalled", "Reconciling", "Synced"):
        found = find(live, type_)
        unwell = "False" if type_ == "Synced" else "True"
        if found is not None and found["status"] == unwell and found["reason"] not in _ON_ITS_WAY:
            return {"lastTransitionTime": "its deletion", **found}
    return None


class UnwrittenInstructions:
    """The instructions that the providers of a claim's children were told, by claim."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[Entry, ...]] = {}

    def note(self, key: Key, entries: Iterable[Entry]) -> None:
        """Note the entries of a claim that is being deleted, with the instructions that they carry."""
        self._entries[key] = tuple(entry for entry in entries if entry.outcome)

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the noted instructions of the same objects, told by uid."""
        noted = {entry.uid: entry for entry in self._entries.get(snapshot.key, ()) if entry.uid}
        known = (replace(child, entry=noted.get(child.entry.uid, child.entry)) for child in snapshot.known)
        return replace(snapshot, known=tuple(known)) if noted else snapshot

    def forget(self, key: Key) -> None:
        """Drop what is noted of a claim that is gone."""
        self._entries.pop(key, None)
