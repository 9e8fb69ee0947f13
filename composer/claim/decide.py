"""Decides the step of each child of a claim that lives. Pure; every row is a test case.

Ours or not ours, wanted or not, alive or being deleted, as sent or not: each combination has one step. Nothing that
holds data is deleted without consent, and what may hold data or a login not while any part of the render is unresolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from apis import names
from apis.teardown import ENDING, Policy, instruction, policy_with
from composer.causes import Cause, cause
from composer.claim.field_conflicts import still_yielded, without
from composer.claim.prune_guard import (
    deleted_by_others,
    predecessor,
    pruned_later,
    still_needed,
    still_used,
    taken_over,
    unwanted,
)
from composer.claim.snapshot import ObservedChild, Snapshot, is_free, is_stored
from composer.hashes import is_sent
from composer.inventory import NEVER_READY, Entry, external_reference_of
from composer.kinds.catalog import KindFacts
from composer.quantities import Amount
from composer.render.child_metadata import external_names
from composer.render.render import Child, Rendered
from runtime.objects import (
    Object,
    annotations_of,
    deleting,
    finalizers_of,
    key_of,
    labels_of,
    metadata,
    uid_of,
)


@dataclass(frozen=True, slots=True)
class Create:
    """Create the object, with its external reference and finalizer if it existed before; then its `floors` hold."""

    entry: Entry
    facts: KindFacts
    object: Object
    floors: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply our fields again; then its `floors` hold."""

    entry: Entry
    facts: KindFacts
    object: Object
    live: Object
    floors: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave the object as it is."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set (or with None remove) annotations of a live object, whatever else it holds.

    `policy` is the `spec.deletionPolicy` that goes with an instruction in the same write, if any.
    """

    entry: Entry
    facts: KindFacts
    live: Object
    annotations: Mapping[str, str | None]
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object that is not wanted any more; `instruction` is for its provider, empty for foreign kinds.

    `policy` is the `spec.deletionPolicy` that goes with the instruction in the same write, if any.
    """

    entry: Entry
    facts: KindFacts
    live: Object
    instruction: str
    why: str
    policy: str = ""

    @property
    def is_free(self) -> bool:
        """Whether the object holds neither data nor a login."""
        return is_free(self.entry, self.facts, self.live)


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove our finalizer of a foreign object that is being deleted."""

    entry: Entry
    facts: KindFacts
    live: Object


@dataclass(frozen=True, slots=True)
class Orphan:
    """Remove our finalizer and label of a foreign object, which lives on."""

    entry: Entry
    facts: KindFacts
    live: Object


@dataclass(frozen=True, slots=True)
class Adopt:
    """Take over a foreign object that an earlier claim left: our label and finalizer; it keeps its name."""

    entry: Entry
    facts: KindFacts
    live: Object


Effect: TypeAlias = Adopt | Create | Apply | Annotate | Delete | RemoveFinalizer | Orphan
Step: TypeAlias = Keep | Effect


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps, in dependency order, and the causes for which others are left out."""

    steps: tuple[Step, ...]
    causes: tuple[Cause, ...]


def decide(snapshot: Snapshot, rendered: Rendered, *, now: str) -> Plan:
    """Decide every step of a pass. `now` is RFC 3339 in UTC, for fields that are yielded until an instant."""
    recorded = {(observed.entry.place, observed.entry.name): observed for observed in snapshot.children}
    steps: list[Step] = []
    causes: list[Cause] = []
    leaving = unwanted(snapshot, rendered)
    blocked = {observed.entry.slot for observed, why in leaving if why is not None}
    for child in rendered.children:
        if child.slot in blocked:
            continue
        mine = recorded.get((child.place, child.name))
        step = _step_of(snapshot, child, mine, now)
        if isinstance(step, Cause):
            causes.append(step)
            if mine:
                steps.append(Keep(mine.entry))
        else:
            steps.append(step)
    if any(why.reason == "PredecessorFound" for why in causes):
        steps = _without_new(steps, recorded)
    waiting = {pending.resource for pending in rendered.waiting}
    steps += [Keep(observed.entry) for observed in snapshot.children if observed.entry.resource in waiting]
    failed = {why.resource for why in causes}
    changing = {step.entry.place for step in steps if not isinstance(step, Keep | Annotate)}
    changing |= {child.entry.place for child in snapshot.children if child.entry.resource in failed | waiting}
    for observed, why in leaving:
        entry, live = observed.entry, observed.live
        if why is None and (not failed or live is None or is_free(entry, observed.facts, live)):
            needed = still_needed(observed, leaving) or still_used(snapshot, observed, changing)
            steps += prune(snapshot, observed, needed=needed)
        else:
            steps.append(held_step(snapshot, observed))
            causes.append(why or pruned_later(observed, "when nothing fails any more"))
    causes += [cause("ResourcePending", str(pending), resource=pending.resource) for pending in rendered.waiting]
    return Plan(tuple(steps), tuple(causes))


def _without_new(steps: list[Step], recorded: Mapping[tuple[tuple[str, str, str], str], ObservedChild]) -> list[Step]:
    """Return the steps without children that were never there, with or without data.

    They would refer to an object that may never be made: where a former one is taken over, that one's name counts.
    """
    return [step for step in steps if not isinstance(step, Create) or (step.entry.place, step.entry.name) in recorded]


def _step_of(  # noqa: PLR0911 - one return for each row of the table
    snapshot: Snapshot, child: Child, mine: ObservedChild | None, now: str
) -> Step | Cause:
    """Return the step of a child that is rendered, or the cause for which there is none."""
    facts = snapshot.catalog.get(child.group_kind)
    if facts is None:
        text = f"kind {child.object['kind']} of {child.object['apiVersion']} is not installed; ask the platform team"
        return cause("KindNotInstalled", text, resource=child.resource)
    if not facts.allowed:
        text = f"compositions may not compose {facts.resource.group_kind}"
        return cause("KindNotAllowed", text, resource=child.resource)
    if fault := facts.version_fault(child.object["apiVersion"]):
        return cause("KindNotInstalled", fault, resource=child.resource)
    entry = _entry(snapshot, child, facts, mine)
    if mine is None or mine.live is None:
        left = taken_over(snapshot, entry) if mine is None else None
        if left is not None and left.live is not None:
            name, uid = left.entry.name, uid_of(left.live)
            return Adopt(msgspec.structs.replace(entry, name=name, uid=uid, adopted=True), facts, left.live)
        lost = deleted_by_others(snapshot, replace(mine, entry=entry)) if mine else predecessor(snapshot, entry)
        obj = recreated(child.object, entry) if entry.external_reference else child.object
        return lost or Create(entry, facts, obj, child.floors)
    live, mine = mine.live, replace(mine, entry=entry)
    not_ours = _not_ours(snapshot, child, entry, live)
    if not_ours:
        return not_ours
    if deleting(live):
        return _recreate(snapshot, mine, facts, live)
    entry = msgspec.structs.replace(entry, external_reference=external_reference_of(live) or entry.external_reference)
    wrong = corrections(snapshot, live)
    if wrong:
        return Annotate(entry, facts, live, wrong)
    sent = without(child.object, still_yielded(entry.yielded, now))
    if is_sent(sent, entry.desired) and is_stored(live, facts.comparable(sent), facts.schema, entry.live):
        return Keep(msgspec.structs.replace(entry, floors=child.floors))
    return Apply(entry, facts, sent, live, child.floors)


def _entry(snapshot: Snapshot, child: Child, facts: KindFacts, mine: ObservedChild | None) -> Entry:
    """Return the inventory's entry of a rendered child: the one that is recorded, brought up to date, or a new one."""
    before = mine.entry if mine else None
    # What held data once does so until a consent: a label may be lost, and a template may change.
    stateful = facts.stateful or child.stateful is True or (before is not None and before.stateful)
    fresh = Entry(
        resource=child.resource,
        key=child.key,
        api_version=child.object["apiVersion"],
        kind=child.object["kind"],
        name=child.object["metadata"]["name"],
        depends_on=child.depends_on,
        stateful=stateful,
        outcome=NEVER_READY,
    )
    if before is None:
        # What it is to stand for: its provider makes nothing under such a name, and takes over by a consent alone.
        name = external_names(snapshot.claim).get(child.slot, "") if facts.managed else ""
        return msgspec.structs.replace(fresh, external_reference={"external-name": name}) if name else fresh
    return msgspec.structs.replace(
        before, depends_on=fresh.depends_on, stateful=stateful, api_version=fresh.api_version
    )


def recreated(obj: Object, entry: Entry) -> Object:
    """Return an object with the external reference and finalizer of its predecessor, by which its database is found."""
    meta = obj["metadata"]
    annotations = {names.PREFIX + mark: value for mark, value in entry.external_reference.items()}
    finalizers = sorted({*meta.get("finalizers", ()), names.TEARDOWN_FINALIZER})
    return {
        **obj,
        "metadata": {**meta, "annotations": {**meta["annotations"], **annotations}, "finalizers": finalizers},
    }


def _not_ours(snapshot: Snapshot, child: Child, entry: Entry, live: Object) -> Cause | None:
    if labels_of(live).get(names.CLAIM_LABEL) == snapshot.identity.uid or (entry.uid and entry.uid == uid_of(live)):
        return None
    return not_owned(child.resource, live)


def not_owned(resource: str, live: Object) -> Cause:
    """Return the cause of an object of another owner that has the name of a child."""
    owners = metadata(live).get("ownerReferences") or ()
    owner = next((reference for reference in owners if reference.get("controller")), next(iter(owners), None))
    whose = f"it belongs to {owner.get('kind')} {owner.get('name')}" if owner else "it names no owner"
    claim = annotations_of(live).get(names.CLAIM_NAME)
    whose = f"it belongs to claim {claim}" if claim else whose
    text = f"{live['kind']} {key_of(live).name} exists and is not this claim's ({whose}); rename or remove it"
    return cause("NotOwned", text, resource=resource)


def _recreate(snapshot: Snapshot, mine: ObservedChild, facts: KindFacts, live: Object) -> Step | Cause:
    """Return the step of a wanted child that somebody deleted: it is created again once it is gone.

    Foreign data waits for consent. The external reference must be in the stored inventory before the instruction is
    given: nothing else leads to the database. Where the namespace or the kind is deleted, the claim is too, and its own
    deletion decides.
    """
    entry, reference = mine.entry, external_reference_of(live)
    if snapshot.namespace_deleting or snapshot.kind_deleting:
        return Keep(msgspec.structs.replace(entry, external_reference=reference or entry.external_reference))
    if facts.managed:
        return _detach(snapshot, entry, facts, live)
    held = deleted_by_others(snapshot, mine)
    if held is not None:
        return held
    if names.TEARDOWN_FINALIZER in finalizers_of(live):
        return RemoveFinalizer(entry, facts, live)
    return Keep(entry)


def _detach(snapshot: Snapshot, entry: Entry, facts: KindFacts, live: Object) -> Step:
    """Return the step of a managed child that somebody else deleted: its provider releases it and ends nothing.

    The external reference is in the stored inventory before: nothing else leads to what is in the cloud. One whose
    annotations were removed, all or some, has no other than the recorded one.
    """
    reference = {**entry.external_reference, **external_reference_of(live)}
    if reference != entry.external_reference:
        return Keep(msgspec.structs.replace(entry, external_reference=reference))
    # A provider that still obeys the pause of before would wait for ever.
    annotations, detach = copied_pause(snapshot, live), instruction(uid_of(live), Policy.DETACH)
    if annotations_of(live).get(names.TEARDOWN) != detach:
        annotations[names.TEARDOWN] = detach
    return Annotate(entry, facts, live, annotations) if annotations else Keep(entry)


def held_step(snapshot: Snapshot, child: ObservedChild) -> Step:
    """Return the step of a child that is not wanted any more and is held.

    One that somebody else deleted does not stay in the way: an object that waits keeps its kind from being made anew,
    for everybody. What it stands for stays in the cloud, and its entry in the inventory.
    """
    entry, facts, live = child.entry, child.facts, child.live
    if live is None or facts is None or not facts.managed or not deleting(live):
        return Keep(entry)
    if snapshot.namespace_deleting or snapshot.kind_deleting or _is_going(entry, live):
        return Keep(entry)
    return _detach(snapshot, entry, facts, live)


def _is_going(entry: Entry, live: Object) -> bool:
    """Return whether a child goes by an instruction that ends what it stands for."""
    return any(entry.outcome == instruction(uid_of(live), policy) for policy in ENDING)


def corrections(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    """Return the annotations that copy the claim's pause, and remove an instruction that a crash left on a child."""
    theirs = annotations_of(live)
    annotations = copied_pause(snapshot, live)
    if theirs.get(names.TEARDOWN, "").startswith(f"{uid_of(live)}/"):
        annotations[names.TEARDOWN] = None
    return annotations


def copied_pause(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    """Return the annotations that make a child's pause its claim's; a provider obeys the child's copy alone."""
    mine, theirs = snapshot.annotations, annotations_of(live)
    return {name: mine.get(name) for name in (names.PAUSED, names.PAUSED_REASON) if mine.get(name) != theirs.get(name)}


def has_instruction(plan: Plan) -> bool:
    """Return whether a plan holds a teardown instruction, which may rest on live reads alone."""
    return any(
        (isinstance(step, Annotate) and step.annotations.get(names.TEARDOWN))
        or (isinstance(step, Delete) and step.instruction)
        for step in plan.steps
    )


def prune(snapshot: Snapshot, child: ObservedChild, *, needed: bool) -> Iterator[Step]:
    """Yield the step of a child that is not wanted any more; none where it is gone.

    One without data that somebody deletes while it is `needed` gets its instruction: its cloud refuses the deletion
    of what is used, and its provider says by what.
    """
    entry, live = child.entry, child.live
    if live is None:
        return
    facts, gone = child.facts, snapshot.namespace_deleting or snapshot.kind_deleting
    takes_instruction = facts is not None and facts.managed and deleting(live) and not entry.stateful
    if child.facts is None or gone or (needed and not takes_instruction):
        yield Keep(entry)
        return
    if not child.facts.managed and deleting(live) and names.TEARDOWN_FINALIZER in finalizers_of(live):
        yield RemoveFinalizer(entry, child.facts, live)
        return
    teardown = snapshot.spec.deletion_policy if entry.stateful else "Delete"
    if not child.facts.managed and teardown != "Delete" and not deleting(live):
        yield Orphan(entry, child.facts, live)
        return
    annotation = instruction(uid_of(live), teardown) if child.facts.managed else ""
    entry = with_instruction(entry, live, teardown) if annotation else entry
    policy = policy_with(live, teardown) if child.facts.managed and entry.stateful else ""
    if deleting(live) and annotations_of(live).get(names.TEARDOWN, "") == annotation and not policy:
        lifted = copied_pause(snapshot, live) if child.facts.managed else {}
        yield Annotate(entry, child.facts, live, lifted) if lifted else Keep(entry)
        return
    yield Delete(entry, child.facts, live, annotation, "not in the composition any more", policy)


def with_instruction(entry: Entry, live: Object, teardown: str) -> Entry:
    """Return the entry with an instruction that deletes its object in the cloud; other instructions are not noted."""
    if teardown not in ENDING:
        return entry
    return msgspec.structs.replace(entry, uid=uid_of(live), outcome=instruction(uid_of(live), teardown))
