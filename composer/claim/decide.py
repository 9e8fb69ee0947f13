"""What to do with each child of a living claim. Pure; every row is a test case.

Ours or not ours, wanted or not, alive or being deleted, as sent or not: each combination has one step. Nothing that
holds data goes without consent, and nothing goes at all while any part of the render is unresolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from apis import names
from apis.teardown import ENDING, Policy, instruction
from composer.causes import Cause, cause
from composer.claim.field_conflicts import still_yielded, without
from composer.claim.prune_guard import predecessor, still_needed, taken_away, unwanted, waits
from composer.claim.snapshot import ObservedChild, Snapshot, is_stored
from composer.hashes import is_sent
from composer.inventory import NEVER_READY, Entry, marks_of
from composer.kinds.catalog import KindFacts
from composer.quantities import Amount
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
    """Make the object; `marks` and finalizer come along when it existed before; `floors` hold once it is made."""

    entry: Entry
    facts: KindFacts
    object: Object
    floors: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Apply:
    """Send our fields again; `floors` hold once they are applied."""

    entry: Entry
    facts: KindFacts
    object: Object
    live: Object
    floors: Mapping[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do."""

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


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let go of a dying foreign object: our finalizer goes."""

    entry: Entry
    facts: KindFacts
    live: Object


@dataclass(frozen=True, slots=True)
class Orphan:
    """Leave a foreign object to itself: it lives on without our finalizer and label."""

    entry: Entry
    facts: KindFacts
    live: Object


Effect: TypeAlias = Create | Apply | Annotate | Delete | RemoveFinalizer | Orphan
Step: TypeAlias = Keep | Effect


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps, in dependency order, and what stands in the way of others."""

    steps: tuple[Step, ...]
    causes: tuple[Cause, ...]


def decide(snapshot: Snapshot, rendered: Rendered, *, now: str) -> Plan:
    """Decide every step of a pass. `now` is RFC 3339 in UTC, for fields that are yielded until an instant."""
    known = {(each.entry.place, each.entry.name): each for each in snapshot.known}
    steps: list[Step] = []
    causes: list[Cause] = []
    held = unwanted(snapshot, rendered)
    blocked = {each.entry.slot for each, why in held if why is not None}
    for child in rendered.children:
        if child.slot in blocked:
            continue
        mine = known.get((child.place, child.name))
        outcome = _wanted(snapshot, child, mine, now)
        if isinstance(outcome, Cause):
            causes.append(outcome)
            if mine:
                steps.append(Keep(mine.entry))
        else:
            steps.append(outcome)
    waiting = {each.resource for each in rendered.waiting}
    steps += [Keep(each.entry) for each in snapshot.known if each.entry.resource in waiting]
    has_failed = bool(causes)
    for each, why in held:
        if why is None and not (has_failed and each.live is not None):
            steps += _prune(snapshot, each, needed=still_needed(each, held))
        else:
            steps.append(Keep(each.entry))
            causes.append(why or waits(each, "when nothing fails any more"))
    causes += [cause("ResourcePending", str(each), resource=each.resource) for each in rendered.waiting]
    return Plan(tuple(steps), tuple(causes))


def _wanted(  # noqa: PLR0911 - one return for each row of the table
    snapshot: Snapshot, child: Child, mine: ObservedChild | None, now: str
) -> Step | Cause:
    facts = snapshot.catalog.get(child.group_kind)
    if facts is None:
        what = f"kind {child.object['kind']} of {child.object['apiVersion']} is not installed; ask the platform team"
        return cause("KindNotInstalled", what, resource=child.resource)
    if not facts.allowed:
        what = f"compositions may not compose {facts.resource.group_kind}"
        return cause("KindNotAllowed", what, resource=child.resource)
    if fault := facts.version_fault(child.object["apiVersion"]):
        return cause("KindNotInstalled", fault, resource=child.resource)
    entry = _entry(child, facts, mine)
    if mine is None or mine.live is None:
        lost = taken_away(snapshot, replace(mine, entry=entry)) if mine else predecessor(snapshot, entry)
        obj = recreated(child.object, entry) if entry.marks else child.object
        return lost or Create(entry, facts, obj, child.floors)
    live, mine = mine.live, replace(mine, entry=entry)
    stranger = _not_ours(snapshot, child, entry, live)
    if stranger:
        return stranger
    if deleting(live):
        return _recreate(snapshot, mine, facts, live)
    entry = msgspec.structs.replace(entry, marks=marks_of(live) or entry.marks)
    corrections = _corrections(snapshot, live)
    if corrections:
        return Annotate(entry, facts, live, corrections)
    sent = without(child.object, still_yielded(entry.yielded, now))
    if is_sent(sent, entry.desired) and is_stored(live, sent, facts.schema, entry.live):
        return Keep(msgspec.structs.replace(entry, floors=child.floors))
    return Apply(entry, facts, sent, live, child.floors)


def _entry(child: Child, facts: KindFacts, mine: ObservedChild | None) -> Entry:
    before = mine.entry if mine else None
    # What held data once does so until a consent: a label may be lost, and a template may forget its word.
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
        return fresh
    return msgspec.structs.replace(
        before, depends_on=fresh.depends_on, stateful=stateful, api_version=fresh.api_version
    )


def recreated(obj: Object, entry: Entry) -> Object:
    """Give an object that existed before its old marks and finalizer: its provider finds the same database by them."""
    meta = obj["metadata"]
    marks = {names.PREFIX + mark: value for mark, value in entry.marks.items()}
    finalizers = sorted({*meta.get("finalizers", ()), names.TEARDOWN_FINALIZER})
    return {
        **obj,
        "metadata": {**meta, "annotations": {**meta["annotations"], **marks}, "finalizers": finalizers},
    }


def _not_ours(snapshot: Snapshot, child: Child, entry: Entry, live: Object) -> Cause | None:
    if labels_of(live).get(names.CLAIM_LABEL) == snapshot.identity.uid or (entry.uid and entry.uid == uid_of(live)):
        return None
    return not_owned(child.resource, live)


def not_owned(resource: str, live: Object) -> Cause:
    """Say that somebody else's object has the name of a child, and whose it is as far as it says."""
    owners = metadata(live).get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), next(iter(owners), None))
    whose = f"it belongs to {owner.get('kind')} {owner.get('name')}" if owner else "it names no owner"
    claim = annotations_of(live).get(names.CLAIM_NAME)
    whose = f"it belongs to claim {claim}" if claim else whose
    what = f"{live['kind']} {key_of(live).name} exists and is not this claim's ({whose}); rename or remove it"
    return cause("NotOwned", what, resource=resource)


def _recreate(snapshot: Snapshot, mine: ObservedChild, facts: KindFacts, live: Object) -> Step | Cause:
    """Let go of a wanted child that somebody deleted; it is made anew when it is gone. Foreign data waits for consent.

    Its marks must be in the stored inventory before the instruction is given: nothing else leads to the database.
    Where the namespace or the kind goes, the claim goes too, and its own deletion decides.
    """
    entry, marks = mine.entry, marks_of(live)
    if snapshot.namespace_deleting or snapshot.kind_deleting:
        return Keep(msgspec.structs.replace(entry, marks=marks or entry.marks))
    if facts.managed:
        if marks != entry.marks:
            return Keep(msgspec.structs.replace(entry, marks=marks or entry.marks))
        # A provider that still obeys the pause of before would wait for ever.
        said, detach = copied_pause(snapshot, live), instruction(uid_of(live), Policy.DETACH)
        if annotations_of(live).get(names.TEARDOWN) != detach:
            said[names.TEARDOWN] = detach
        return Annotate(entry, facts, live, said) if said else Keep(entry)
    held = taken_away(snapshot, mine)
    if held is not None:
        return held
    if names.TEARDOWN_FINALIZER in finalizers_of(live):
        return RemoveFinalizer(entry, facts, live)
    return Keep(entry)


def _corrections(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    """Copy the claim's pause down, and take back an instruction that a crash left on a living child."""
    theirs = annotations_of(live)
    found = copied_pause(snapshot, live)
    if theirs.get(names.TEARDOWN, "").startswith(f"{uid_of(live)}/"):
        found[names.TEARDOWN] = None
    return found


def copied_pause(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    """Return the annotations by which a child's pause becomes its claim's; a provider obeys its own copy alone."""
    mine, theirs = snapshot.annotations, annotations_of(live)
    return {name: mine.get(name) for name in (names.PAUSED, names.PAUSED_REASON) if mine.get(name) != theirs.get(name)}


def has_instruction(plan: Plan) -> bool:
    """Return whether a plan holds a teardown instruction, which may rest on live reads alone."""
    return any(
        (isinstance(step, Annotate) and step.annotations.get(names.TEARDOWN))
        or (isinstance(step, Delete) and step.instruction)
        for step in plan.steps
    )


def mirrored_pause(snapshot: Snapshot) -> tuple[Step, ...]:
    """Return the only steps of a paused claim: its pause, copied to the children, those that are going included."""
    return tuple(
        Annotate(each.entry, each.facts, each.live, found) if each.live and each.facts and found else Keep(each.entry)
        for each in snapshot.known
        for found in [_mirrored(snapshot, each.live) if each.live else {}]
    )


def _mirrored(snapshot: Snapshot, live: Object) -> dict[str, str | None]:
    return copied_pause(snapshot, live) if deleting(live) else _corrections(snapshot, live)


def token_steps(snapshot: Snapshot) -> tuple[Annotate, ...]:
    """Return the steps that pass a person's request for a pass on to all children that a provider serves.

    Only a request that the claim has not answered yet: a token that somebody gives a child itself stays.
    """
    token = snapshot.annotations.get(names.RECONCILE_REQUESTED_AT)
    if not token or not snapshot.is_requested:
        return ()
    return tuple(
        Annotate(each.entry, each.facts, each.live, {names.RECONCILE_REQUESTED_AT: token})
        for each in snapshot.known
        if each.live is not None and each.facts is not None and each.facts.managed
        if annotations_of(each.live).get(names.RECONCILE_REQUESTED_AT) != token
    )


def _prune(snapshot: Snapshot, each: ObservedChild, *, needed: bool) -> Iterator[Step]:
    entry, live = each.entry, each.live
    if live is None:
        return
    if needed or each.facts is None or snapshot.namespace_deleting or snapshot.kind_deleting:
        yield Keep(entry)
        return
    if not each.facts.managed and deleting(live) and names.TEARDOWN_FINALIZER in finalizers_of(live):
        yield RemoveFinalizer(entry, each.facts, live)
        return
    teardown = snapshot.spec.deletion_policy if entry.stateful else "Delete"
    if not each.facts.managed and teardown != "Delete" and not deleting(live):
        yield Orphan(entry, each.facts, live)
        return
    annotation = instruction(uid_of(live), teardown) if each.facts.managed else ""
    entry = with_instruction(entry, live, teardown) if annotation else entry
    policy = policy_with(live, teardown) if each.facts.managed and entry.stateful else ""
    if deleting(live) and annotations_of(live).get(names.TEARDOWN, "") == annotation and not policy:
        lifted = copied_pause(snapshot, live) if each.facts.managed else {}
        yield Annotate(entry, each.facts, live, lifted) if lifted else Keep(entry)
        return
    yield Delete(entry, each.facts, live, annotation, "not in the composition any more", policy)


def with_instruction(entry: Entry, live: Object, teardown: str) -> Entry:
    """Note in an entry the instruction by which its provider ends what the object stands for; others are not noted."""
    if teardown not in ENDING:
        return entry
    return msgspec.structs.replace(entry, uid=uid_of(live), outcome=instruction(uid_of(live), teardown))


def policy_with(live: Object, teardown: str) -> str:
    """Return the `spec.deletionPolicy` that must go with an instruction, empty where none must."""
    held = (live.get("spec") or {}).get("deletionPolicy", "")
    return teardown if teardown in ("Delete", "Snapshot", "Orphan") and teardown != held else ""
