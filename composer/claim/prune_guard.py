"""What may not go or be replaced without consent, since it holds data or is most of what there is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from apis import names
from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry
from composer.render.render import Child, Rendered
from runtime import kubectl
from runtime.objects import deleting, uid_of

_MASS_LEAST = 3


def unwanted(snapshot: Snapshot, rendered: Rendered) -> list[tuple[ObservedChild, Cause | None]]:
    """Return what is not wanted any more, each with why it is held, or None when it may go."""
    waiting = {each.resource for each in rendered.waiting}
    wanted = {(child.place, child.name) for child in rendered.children}
    leaving = [each for each in snapshot.known if not _stays(each, wanted, waiting)]
    if not leaving:
        return []
    # An object goes with its last place: one that another place has is wanted, whatever the name it has here.
    taken = {(each.entry.group_kind, each.entry.name) for each in snapshot.known if _stays(each, wanted, waiting)}
    taken |= {(child.group_kind, child.name) for child in rendered.children}
    gone = [each for each in leaving if (each.entry.group_kind, each.entry.name) not in taken]
    if not gone:
        return []
    consents = consents_of(snapshot.annotations)
    existing = sum(1 for each in snapshot.known if each.live is not None)
    going = sum(1 for each in gone if each.live is not None)
    too_many = going == existing or (existing >= _MASS_LEAST and 2 * going > existing)
    return [
        (
            each,
            _unbacked(snapshot, each, consents) or _brake(snapshot, each, too_many=too_many, unresolved=bool(waiting)),
        )
        for each in gone
    ]


def _stays(each: ObservedChild, wanted: Collection[tuple[tuple[str, str, str], str]], waiting: Collection[str]) -> bool:
    return (each.entry.place, each.entry.name) in wanted or each.entry.resource in waiting


def _unbacked(snapshot: Snapshot, each: ObservedChild, consents: frozenset[tuple[str, str]]) -> Cause | None:
    """Hold what may go by consent, and by its claim's policy only with a backup that nobody can take."""
    if snapshot.spec.deletion_policy != "Snapshot" or not each.is_foreign_data or each.live is None:
        return None
    if deleting(each.live) or (each.entry.resource, uid_of(each.live)) not in consents:
        return None
    return no_backup(each)


def no_backup(each: ObservedChild) -> Cause:
    """Say that a foreign child with data cannot go under Snapshot, and which ways out there are."""
    text = (
        f"no backup of {each.entry.kind} {each.entry.name} can be taken by Fairlead: nothing goes under deletionPolicy"
        " Snapshot; set spec.deletionPolicy to Orphan (it lives on by itself) or Delete, after a backup of your own"
    )
    return cause("BackupImpossible", text, resource=each.entry.resource)


def unseen(each: ObservedChild) -> Cause:
    """Say that nobody can tell whether a child is there, since its kind is not served."""
    text = f"{each.entry.kind} {each.entry.name} may be there, and kind {each.entry.group_kind} is not served"
    how = "have its CustomResourceDefinition serve it again"
    return cause("KindNotInstalled", f"{text}; {how}", resource=each.entry.resource)


def taken_away(snapshot: Snapshot, each: ObservedChild) -> Cause | None:
    """Say that a wanted foreign child with data was deleted by somebody else, None where it may be made anew.

    What a provider of ours serves finds its database again; in the place of anything else there would be an empty one.
    """
    entry, live = each.entry, each.live
    uid = entry.uid if live is None else uid_of(live)
    if not each.is_foreign_data or not uid or (entry.resource, uid) in consents_of(snapshot.annotations):
        return None
    what, consent = f"{entry.kind} {entry.name}", consent_command(snapshot, entry.resource, uid)
    if live is None:
        text = f"{what}, which held data, is gone and was not deleted by Fairlead; nothing is made in its place"
        how = f"restore it under its name, with its labels; or, for a new, empty one: {consent}"
        return cause("DatabaseLost", f"{text}: {how}", resource=entry.resource)
    text = f"{what} was deleted by somebody else and holds data; it is not let go, and nothing is made in its place"
    how = f"save what is in it; then, for a new, empty one: {consent}"
    return cause("HeldDeletion", f"{text}: {how}", resource=entry.resource)


def predecessor(snapshot: Snapshot, entry: Entry) -> Cause | None:
    """Say that an earlier claim of this name left an object with data in this place; None where none is in the way.

    Beside it a new, empty one would be made, and the claim would say that it is ready.
    """
    if entry.uid or snapshot.annotations.get(names.ADOPT) == "none":
        return None
    for left in snapshot.predecessors:
        if (left.entry.slot, left.entry.group_kind) == (entry.slot, entry.group_kind):
            text = (
                f"{left.entry.kind} {left.entry.name} holds the data of an earlier claim of this name that was removed"
                " without its teardown; nothing is made beside it: restore that claim from a backup; or, for a new,"
                f" empty one: {kubectl.annotate(_address(snapshot), names.ADOPT, 'none')}"
            )
            return cause("PredecessorFound", text, resource=entry.resource)
    return None


def _brake(snapshot: Snapshot, each: ObservedChild, *, too_many: bool, unresolved: bool) -> Cause | None:
    entry, live = each.entry, each.live
    if each.unseen:
        return unseen(each)
    if live is None or (entry.resource, uid_of(live)) in consents_of(snapshot.annotations):
        return None
    consent = consent_command(snapshot, entry.resource, uid_of(live))
    what = f"{entry.kind} {entry.name} is not in the composition any more"
    if entry.stateful:
        return cause(
            "HeldDeletion",
            f"{what} and holds data; to let it go: {consent}",
            resource=entry.resource,
        )
    if too_many:
        text = f"{what}, as most of the children of this claim; to let it go: {consent}"
        return cause("HeldDeletion", text, resource=entry.resource)
    return waits(each, "when nothing is pending any more") if unresolved else None


def waits(each: ObservedChild, until: str) -> Cause:
    """Say what a child waits for that is not wanted any more."""
    text = f"{each.entry.kind} {each.entry.name} is not in the composition any more; it goes {until}"
    return cause("ResourcePending", text, resource=each.entry.resource, shown_as=ReasonClass.PROGRESS)


def replacing_data(snapshot: Snapshot, rendered: Rendered) -> tuple[Cause, ...]:
    """Return what forbids to put something new in the place of data: a switch, or a resource with another name.

    None of it is made before the consent: an application would be led from its database to an empty one.
    """
    alive = {each.entry.place for each in snapshot.known if each.live is not None}
    if not any(child.place not in alive and is_stateful(snapshot, child) for child in rendered.children):
        return ()
    return tuple(why for each, why in unwanted(snapshot, rendered) if why is not None and each.entry.stateful)


def is_stateful(snapshot: Snapshot, child: Child) -> bool:
    """Return whether losing a child would lose data, by its kind or by the word of the composition."""
    facts = snapshot.catalog.get(child.group_kind)
    return child.stateful is True or (facts is not None and facts.stateful)


def consents_of(annotations: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Read `<resource>=<child uid>` pairs; what is no pair is no consent."""
    pairs = (each.strip().partition("=") for each in annotations.get(names.CONSENT, "").split(","))
    return frozenset((resource, uid) for resource, _, uid in pairs if resource and uid)


def consent_command(snapshot: Snapshot, resource: str, uid: str) -> str:
    """Return the command by which the platform team lets this child go; the consents that are there stay."""
    present = snapshot.annotations.get(names.CONSENT, "")
    value = ",".join(filter(None, (present, f"{resource}={uid}")))
    return kubectl.annotate(_address(snapshot), names.CONSENT, value, overwrites=bool(present))


def _address(snapshot: Snapshot) -> str:
    return kubectl.address_of(snapshot.resource.kind, snapshot.key)


def still_needed(each: ObservedChild, held: list[tuple[ObservedChild, Cause | None]]) -> bool:
    """Return whether something that depends on a resource has still to go before it."""
    going = [other for other, why in held if other is not each and (other.unseen or (why is None and other.live))]
    return any(each.entry.resource in other.entry.depends_on for other in going)


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
    """Return the places of foreign children that held data when they were composed, whatever is said of them now."""
    return tuple(
        sorted(
            each.entry.place
            for each in snapshot.known
            if each.entry.stateful and not names.is_managed(each.entry.group)
        )
    )
