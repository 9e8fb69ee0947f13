"""Resources that a Composition calls by another name now: they keep their object and their object in the cloud. Pure.

The names of both are made of the resource's name, so a moved resource remembers its *origin*: the name it was made
under. It goes back by itself where an earlier revision, with the earlier name, is used again.

A resource with forEach may take over resources that had none: `movedFrom: ["parameters{{ each.key }}"]` makes of the
object of `parameters16` the element `16`. Its names have no key, which is how such an object is known again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import msgspec

from apis.identity import child_name
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry
from composer.models import CompositionSpec, ResourceTemplate
from composer.validation.renames import BY_KEY, key_in

Slot: TypeAlias = tuple[str, str]
"""The place in the composition: resource name and forEach key."""


def moved(snapshot: Snapshot, spec: CompositionSpec) -> Snapshot:
    """Return the snapshot with its entries called as the composition calls them."""
    is_moving = any(resource.moved_from for resource in spec.resources)
    slots = _new_slots(snapshot, spec) if is_moving or any(each.entry.origin for each in snapshot.known) else {}
    if not slots:
        return snapshot
    resources = {slot[0]: fresh[0] for slot, fresh in slots.items()}
    return replace(snapshot, known=tuple(_renamed(each, slots, resources) for each in snapshot.known))


def origins(snapshot: Snapshot) -> dict[str, str]:
    """Return the origin of each resource that has another name by now."""
    moved_entries = (each.entry for each in snapshot.known if each.entry.origin)
    return {entry.resource: entry.origin for entry in moved_entries if not _was_made_without_key(snapshot, entry)}


def element_origins(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Return the origins of elements that were made by a resource without forEach, by resource and key."""
    origins: dict[str, dict[str, str]] = {}
    for each in snapshot.known:
        if each.entry.origin and _was_made_without_key(snapshot, each.entry):
            origins.setdefault(each.entry.resource, {})[each.entry.key] = each.entry.origin
    return origins


def _was_made_without_key(snapshot: Snapshot, entry: Entry) -> bool:
    """Return whether an element's object has the name of a resource without forEach: it was moved from one."""
    return bool(entry.key) and entry.name == child_name(snapshot.identity, entry.origin)


def _new_slots(snapshot: Snapshot, spec: CompositionSpec) -> dict[Slot, Slot]:
    """Map the slots in the inventory to those of the composition, where they differ."""
    recorded = {each.entry.slot: each.entry for each in snapshot.known}
    resources = {resource for resource, _ in recorded}
    present = {resource.name for resource in spec.resources}
    slots: dict[Slot, Slot] = {}
    taken: set[str] = set()
    for resource in spec.resources:
        plain = (name for name in resource.moved_from if name in resources and name not in taken)
        earlier = next(plain, None) if resource.name not in resources else None
        if earlier is not None:
            taken.add(earlier)
            slots |= {slot: (resource.name, slot[1]) for slot in recorded if slot[0] == earlier}
        slots |= _new_elements(resource, recorded.keys() - slots.keys(), present)
    return slots | _ways_back(snapshot, recorded.values(), present, slots)


def _new_elements(resource: ResourceTemplate, recorded: Collection[Slot], present: Collection[str]) -> dict[Slot, Slot]:
    """Map the slots of resources without forEach to the elements that take them over."""
    slots: dict[Slot, Slot] = {}
    for by_key in filter(None, map(BY_KEY.fullmatch, resource.moved_from)):
        for name, no_key in sorted(recorded):
            key = key_in(name, *by_key.groups())
            element = (resource.name, key)
            if key and not no_key and name not in present and element not in {*recorded, *slots.values()}:
                slots[name, no_key] = element
    return slots


def _ways_back(
    snapshot: Snapshot, recorded: Iterable[Entry], present: Collection[str], ahead: Collection[Slot]
) -> dict[Slot, Slot]:
    """Map what was moved to its origin, where the composition has that and no more the name that it was moved to."""
    entries = list(recorded)
    resources = {entry.resource for entry in entries}
    return {
        entry.slot: (entry.origin, "" if _was_made_without_key(snapshot, entry) else entry.key)
        for entry in entries
        if entry.slot not in ahead
        and entry.resource not in present
        and entry.origin in present
        and entry.origin not in resources
    }


def _renamed(known: ObservedChild, slots: Mapping[Slot, Slot], resources: Mapping[str, str]) -> ObservedChild:
    entry = known.entry
    needs = tuple(dict.fromkeys(resources.get(each, each) for each in entry.depends_on))
    slot = slots.get(entry.slot)
    if slot is None:
        return replace(known, entry=msgspec.structs.replace(entry, depends_on=needs))
    name, key = slot
    made_as = entry.origin or entry.resource
    origin = "" if made_as == name else made_as
    entry = msgspec.structs.replace(entry, resource=name, key=key, origin=origin, depends_on=needs)
    return replace(known, entry=entry)
