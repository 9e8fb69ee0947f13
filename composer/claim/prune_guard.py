"""What may not be deleted or replaced without consent: it holds data, or is most of what a claim has. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from apis import names
from apis.reasons import ReasonClass
from apis.teardown import ENDING, instruction
from composer.causes import Cause, cause
from composer.claim.snapshot import ObservedChild, Snapshot, is_free
from composer.inventory import Entry
from composer.render.child_metadata import external_names
from composer.render.operators.table import kind_of
from composer.render.render import Child, Rendered
from runtime import kubectl
from runtime.conditions import find
from runtime.objects import Object, deleting, generation_of, observed_generation_of, uid_of

_MASS_LEAST = 3


def unwanted(snapshot: Snapshot, rendered: Rendered) -> list[tuple[ObservedChild, Cause | None]]:
    """Return the children that are not wanted any more, each with the cause that holds it, None when it may go."""
    waiting = {pending.resource for pending in rendered.waiting}
    wanted = {(child.place, child.name) for child in rendered.children}
    leaving = [observed for observed in snapshot.children if not _stays(observed, wanted, waiting)]
    if not leaving:
        return []
    # An object goes with its last place: one that another place has is wanted, whatever the name it has here.
    staying = [observed.entry for observed in snapshot.children if _stays(observed, wanted, waiting)]
    taken = {(entry.group_kind, entry.name) for entry in staying}
    taken |= {(child.group_kind, child.name) for child in rendered.children}
    gone = [observed for observed in leaving if (observed.entry.group_kind, observed.entry.name) not in taken]
    if not gone:
        return []
    consents = consents_of(snapshot.annotations)
    existing = sum(1 for observed in snapshot.children if _counts(observed))
    going = sum(1 for observed in gone if _counts(observed))
    too_many = going == existing or (existing >= _MASS_LEAST and 2 * going > existing)
    return [
        (
            observed,
            _unbacked(snapshot, observed, consents)
            or _hold(snapshot, observed, too_many=too_many, unresolved=bool(waiting)),
        )
        for observed in gone
    ]


def _counts(child: ObservedChild) -> bool:
    """Return whether a child counts among what a claim must not lose at once: it may hold data, or a login."""
    return child.live is not None and not is_free(child.entry, child.facts, child.live)


def _stays(
    observed: ObservedChild, wanted: Collection[tuple[tuple[str, str, str], str]], waiting: Collection[str]
) -> bool:
    """Return whether a child is rendered, or its resource waits to be."""
    return (observed.entry.place, observed.entry.name) in wanted or observed.entry.resource in waiting


def _unbacked(snapshot: Snapshot, child: ObservedChild, consents: frozenset[tuple[str, str]]) -> Cause | None:
    """Return the cause that holds a child in spite of a consent: under Snapshot it would need a backup first."""
    if snapshot.spec.deletion_policy != "Snapshot" or not child.is_foreign_data or child.live is None:
        return None
    if deleting(child.live) or (child.entry.resource, uid_of(child.live)) not in consents:
        return None
    return no_backup(child)


def no_backup(child: ObservedChild) -> Cause:
    """Return the cause of a foreign child with data that cannot go under Snapshot, with the ways out."""
    text = (
        f"no backup of {child.entry.kind} {child.entry.name} can be taken by Fairlead: nothing goes under"
        " deletionPolicy Snapshot; set spec.deletionPolicy to Orphan (it lives on by itself) or Delete, after a backup"
        " of your own"
    )
    return cause("BackupImpossible", text, resource=child.entry.resource)


def not_served(child: ObservedChild) -> Cause:
    """Return the cause of a child of which it is not known whether it is there, since its kind is not served."""
    text = f"{child.entry.kind} {child.entry.name} may be there, and kind {child.entry.group_kind} is not served"
    how = "have its CustomResourceDefinition serve it again"
    return cause("KindNotInstalled", f"{text}; {how}", resource=child.entry.resource)


def deleted_by_others(snapshot: Snapshot, child: ObservedChild) -> Cause | None:
    """Return the cause of a wanted foreign child with data that somebody else deleted; None where it may be recreated.

    What a provider of ours serves finds its database again; anything else would be recreated empty.
    """
    entry, live = child.entry, child.live
    uid = entry.uid if live is None else uid_of(live)
    if not child.is_foreign_data or not uid or (entry.resource, uid) in consents_of(snapshot.annotations):
        return None
    subject, consent = f"{entry.kind} {entry.name}", consent_command(snapshot, entry.resource, uid)
    if live is None:
        text = f"{subject}, which held data, is gone and was not deleted by Fairlead; nothing is made in its place"
        how = f"restore it under its name, with its labels; or, for a new, empty one: {consent}"
        return cause("DatabaseLost", f"{text}: {how}", resource=entry.resource)
    kind = kind_of(live)
    consequence = f" ({kind.on_deletion})" if kind else ""
    text = (
        f"{subject} was deleted by somebody else and holds data{consequence}; it is not let go, and nothing is made in"
        " its place"
    )
    how = f"save what is in it; then, for a new, empty one: {consent}"
    return cause("HeldDeletion", f"{text}: {how}", resource=entry.resource)


def predecessor(snapshot: Snapshot, entry: Entry) -> Cause | None:
    """Return the cause for which data of an earlier claim of this name is in the way; None where there is none.

    Beside it, or in its place, a new, empty object would be created, and the claim would become Ready with it.
    """
    if entry.uid or snapshot.annotations.get(names.ADOPT) == "none":
        return None
    left, named = _left_for(snapshot, entry), external_names(snapshot.claim).get(entry.slot, "")
    if left is None:
        return _not_restored(snapshot, entry) or _not_there(snapshot, entry, named)
    uids = ",".join(uid_of(other.live) for other in snapshot.predecessors if other.live is not None)
    whose = "is to be this claim's" if left.entry.name == named else "holds the data of an earlier claim of this name"
    text = (
        f"{left.entry.kind} {left.entry.name} {whose}; nothing is made beside"
        f" it: to take it over: {_adopt(snapshot, uids)}; or, for a new, empty one: {_adopt(snapshot, 'none')}"
    )
    return cause("PredecessorFound", text, resource=entry.resource)


def _not_restored(snapshot: Snapshot, entry: Entry) -> Cause | None:
    """Return the cause of a claim out of a backup whose foreign object with data is not there, or not yet.

    Such a claim has another uid than it had at first sight. Once a connection is published, what it lacks is new.
    """
    facts = snapshot.catalog.get(entry.group_kind)
    is_foreign = facts is not None and not facts.managed
    is_bound = bool((snapshot.status.get("binding") or {}).get("name"))
    if snapshot.uid == snapshot.identity.uid or is_bound or not entry.stateful or not is_foreign:
        return None
    text = (
        f"this claim comes out of a backup, and {entry.kind} {entry.name}, which held its data, is not there; nothing"
        " is made in its place: restore it under its name, with its labels; or, for a new, empty one:"
    )
    return cause("DatabaseLost", f"{text} {_adopt(snapshot, 'none')}", resource=entry.resource)


def _not_there(snapshot: Snapshot, entry: Entry, name: str) -> Cause | None:
    """Return the cause of an object of another operator that is to be taken over and cannot be."""
    facts = snapshot.catalog.get(entry.group_kind)
    if not name or facts is None or facts.managed or not entry.stateful:
        return None
    text = (
        f"{entry.kind} {name}, which annotation {names.EXTERNAL_NAMES} names, is not there, or belongs to another claim"
        f" or controller; nothing is made in its place: write its name, or for a new one: {_adopt(snapshot, 'none')}"
    )
    return cause("PredecessorFound", text, resource=entry.resource)


def taken_over(snapshot: Snapshot, entry: Entry) -> ObservedChild | None:
    """Return the object that an earlier claim of this name left and that this one takes over by consent, or None."""
    left = None if entry.uid else _left_for(snapshot, entry)
    if left is None or left.live is None or deleting(left.live):
        return None
    uids = {uid.strip() for uid in snapshot.annotations.get(names.ADOPT, "").split(",")}
    return left if uid_of(left.live) in uids else None


def _left_for(snapshot: Snapshot, entry: Entry) -> ObservedChild | None:
    """Return what an earlier claim left at the place of an entry."""
    place = (entry.slot, entry.group_kind)
    return next((left for left in snapshot.predecessors if (left.entry.slot, left.entry.group_kind) == place), None)


def _adopt(snapshot: Snapshot, value: str) -> str:
    overwrites = snapshot.annotations.get(names.ADOPT, value) != value
    return kubectl.annotate(_address(snapshot), names.ADOPT, value, overwrites=overwrites)


def _hold(snapshot: Snapshot, child: ObservedChild, *, too_many: bool, unresolved: bool) -> Cause | None:
    """Return the cause that holds a child that is not wanted any more; None where it may go now."""
    entry, live = child.entry, child.live
    if child.unseen:
        return not_served(child)
    if live is None:
        return _left_in_the_cloud(snapshot, entry)
    if (entry.resource, uid_of(live)) in consents_of(snapshot.annotations):
        return None
    consent = consent_command(snapshot, entry.resource, uid_of(live))
    subject = f"{entry.kind} {entry.name} is not in the composition any more"
    if entry.stateful:
        return cause(
            "HeldDeletion",
            f"{subject} and holds data; to let it go: {consent}",
            resource=entry.resource,
        )
    if too_many and _counts(child):
        text = f"{subject}, as most of the children of this claim; to let it go: {consent}"
        return cause("HeldDeletion", text, resource=entry.resource)
    return pruned_later(child, "when nothing is pending any more") if unresolved and _counts(child) else None


def _left_in_the_cloud(snapshot: Snapshot, entry: Entry) -> Cause | None:
    """Return the cause of a child with data that is gone though nobody consented; None where it went as it should.

    Somebody else deleted it, or its kind, while it was held: its provider ended nothing.
    """
    is_ended = entry.outcome in {instruction(entry.uid, policy) for policy in ENDING}
    is_known = entry.stateful and names.is_managed(entry.group) and bool(entry.external_reference) and bool(entry.uid)
    if not is_known or is_ended or (entry.resource, entry.uid) in consents_of(snapshot.annotations):
        return None
    left = entry.external_reference.get("external-name", "what it stands for")
    consent = consent_command(snapshot, entry.resource, entry.uid)
    text = (
        f"{entry.kind} {entry.name} is not in the composition any more and was deleted by somebody else; {left} stays"
        f" in the cloud; to go on without it: {consent}"
    )
    return cause("HeldDeletion", text, resource=entry.resource)


def pruned_later(child: ObservedChild, until: str) -> Cause:
    """Return the cause of a child that is not wanted any more and goes later."""
    text = f"{child.entry.kind} {child.entry.name} is not in the composition any more; it goes {until}"
    return cause("ResourcePending", text, resource=child.entry.resource, shown_as=ReasonClass.PROGRESS)


def replacing_data(snapshot: Snapshot, rendered: Rendered) -> tuple[Cause, ...]:
    """Return the causes that forbid to replace data by something new: a switch, or a resource with another name.

    Nothing new is created before the consent: an application would be led from its database to an empty one.
    """
    alive = {observed.entry.place for observed in snapshot.children if observed.live is not None}
    if not any(child.place not in alive and is_stateful(snapshot, child) for child in rendered.children):
        return ()
    return tuple(why for observed, why in unwanted(snapshot, rendered) if why is not None and observed.entry.stateful)


def is_stateful(snapshot: Snapshot, child: Child) -> bool:
    """Return whether losing a child would lose data, by its kind or by what the composition says of it."""
    facts = snapshot.catalog.get(child.group_kind)
    return child.stateful is True or (facts is not None and facts.stateful)


def consents_of(annotations: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the consents of an annotation, as `<resource>=<child uid>` pairs; what is no pair is no consent."""
    pairs = (pair.strip().partition("=") for pair in annotations.get(names.CONSENT, "").split(","))
    return frozenset((resource, uid) for resource, _, uid in pairs if resource and uid)


def consent_command(snapshot: Snapshot, resource: str, uid: str) -> str:
    """Return the command by which the platform team consents to lose a child; earlier consents stay."""
    present = snapshot.annotations.get(names.CONSENT, "")
    value = ",".join(filter(None, (present, f"{resource}={uid}")))
    return kubectl.annotate(_address(snapshot), names.CONSENT, value, overwrites=bool(present))


def _address(snapshot: Snapshot) -> str:
    return kubectl.address_of(snapshot.resource.kind, snapshot.key)


def held_on_rollback(snapshot: Snapshot, rendered: Rendered, revision: str) -> tuple[Cause, ...]:
    """Return the causes that forbid the rollback to `revision`: a child with data would go, or be recreated empty.

    The claim then stays, whole, on the revision that failed.
    """
    wanted = {child.place for child in rendered.children}
    waiting = {pending.resource for pending in rendered.waiting}
    alive = {observed.entry.place for observed in snapshot.children if observed.live is not None}
    consents = consents_of(snapshot.annotations)
    causes: list[Cause] = []
    for observed in snapshot.children:
        entry, live = observed.entry, observed.live
        goes = entry.place not in wanted and entry.resource not in waiting
        if live is None or not entry.stateful or not goes or (entry.resource, uid_of(live)) in consents:
            continue
        text = f"the way back to revision {revision} would take {entry.kind} {entry.name} away, which holds data"
        how = f"to go back all the same: {consent_command(snapshot, entry.resource, uid_of(live))}"
        causes.append(cause("HeldDeletion", f"{text}; {how}", resource=entry.resource))
    for child in rendered.children:
        if child.place not in alive and is_stateful(snapshot, child):
            subject = f"{child.object['kind']} {child.object['metadata']['name']}"
            text = f"the way back to revision {revision} would make a new, empty {subject}"
            how = f"pin the claim to {revision} by spec.compositionRevisionRef to go back all the same"
            causes.append(cause("RolloutHalted", f"{text}; {how}", resource=child.resource))
    return tuple(causes)


def still_needed(child: ObservedChild, leaving: list[tuple[ObservedChild, Cause | None]]) -> bool:
    """Return whether a child that depends on this one must go before it; one that is held keeps it."""
    others = (other for other, _ in leaving if other is not child and (other.unseen or other.live))
    return any(child.entry.resource in other.entry.depends_on for other in others)


def still_used(snapshot: Snapshot, child: ObservedChild, changing: Collection[tuple[str, str, str]]) -> bool:
    """Return whether a wanted child depended on this one, and has not carried out yet what it was asked for since.

    `changing` are the places of the children whose spec this pass changes, or would where nothing were in the way. A
    parameter group, say, goes only once its instance has the next one: an edit that is withdrawn before finds the
    former group as it was. What holds data goes by consent alone, which nothing delays.
    """
    return not child.entry.stateful and any(
        child.entry.resource in other.entry.depends_on
        and other.live is not None
        and (other.entry.place in changing or not _is_carried_out(other, other.live))
        for other in snapshot.children
        if other is not child
    )


def _is_carried_out(child: ObservedChild, live: Object) -> bool:
    """Return whether a child's provider says that its spec is carried out; True where nobody says such a thing."""
    synced = find(live, "Synced")
    if child.facts is None or not child.facts.managed or synced is None:
        return True
    return synced["status"] == "True" and observed_generation_of(live) == generation_of(live) and not deleting(live)


def foreign_stateful(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the foreign kinds that hold data, for the render: their objects carry our finalizer and no owner."""
    return tuple(
        sorted(
            name
            for name, facts in snapshot.catalog.items()
            if facts.stateful and not names.is_managed(facts.resource.group)
        )
    )


def stateful_places(snapshot: Snapshot) -> tuple[tuple[str, str, str], ...]:
    """Return the places of foreign children that held data when they were composed, even if nothing says so now."""
    return tuple(
        sorted(
            child.entry.place
            for child in snapshot.children
            if child.entry.stateful and not names.is_managed(child.entry.group)
        )
    )
