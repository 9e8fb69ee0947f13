"""Resources that a Composition has renamed: they keep their object and their object in the cloud. Pure.

The names of both are made of the resource's name, so a renamed resource keeps its *origin*: the name it was created
under. It is renamed back where an earlier revision, with the earlier name, is used again.

A resource with forEach may take over resources that had none: `movedFrom: ["parameters{{ each.key }}"]` makes of the
object of `parameters16` the element `16`. Its names have no key, by which such an object is recognized.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import msgspec

from apis.identity import name_hash
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import Entry
from composer.models import CompositionSpec, ResourceTemplate
from composer.validation.renames import BY_KEY, key_in

Slot: TypeAlias = tuple[str, str]
"""The place in the composition: resource name and forEach key."""


def renamed(snapshot: Snapshot, spec: CompositionSpec) -> Snapshot:
    """Return the snapshot with its entries named as the composition names them."""
    is_moving = any(resource.moved_from for resource in spec.resources)
    slots = _new_slots(snapshot, spec) if is_moving or any(child.entry.origin for child in snapshot.children) else {}
    if not slots:
        return snapshot
    resources = {slot[0]: fresh[0] for slot, fresh in slots.items()}
    return replace(snapshot, children=tuple(_renamed_child(child, slots, resources) for child in snapshot.children))


def origins(snapshot: Snapshot) -> dict[str, str]:
    """Return the origin of each renamed resource."""
    renamed_entries = (child.entry for child in snapshot.children if child.entry.origin)
    return {entry.resource: entry.origin for entry in renamed_entries if not _was_made_without_key(snapshot, entry)}


def element_origins(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Return the origins of elements that a resource without forEach created, by resource and key."""
    origins: dict[str, dict[str, str]] = {}
    for child in snapshot.children:
        if child.entry.origin and _was_made_without_key(snapshot, child.entry):
            origins.setdefault(child.entry.resource, {})[child.entry.key] = child.entry.origin
    return origins


def _was_made_without_key(snapshot: Snapshot, entry: Entry) -> bool:
    """Return whether an element's object has the name of a resource without forEach, from which it was renamed."""
    return bool(entry.key) and entry.name.endswith(f"-{name_hash(snapshot.identity.uid, entry.origin)}")


def _new_slots(snapshot: Snapshot, spec: CompositionSpec) -> dict[Slot, Slot]:
    """Return the slots of the composition by those of the inventory, where they differ."""
    recorded = {child.entry.slot: child.entry for child in snapshot.children}
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
    return slots | _returns(snapshot, recorded.values(), present, slots)


def _new_elements(resource: ResourceTemplate, recorded: Collection[Slot], present: Collection[str]) -> dict[Slot, Slot]:
    """Return the elements that take over slots of resources without forEach, by slot."""
    slots: dict[Slot, Slot] = {}
    for by_key in filter(None, map(BY_KEY.fullmatch, resource.moved_from)):
        for name, no_key in sorted(recorded):
            key = key_in(name, *by_key.groups())
            element = (resource.name, key)
            if key and not no_key and name not in present and element not in {*recorded, *slots.values()}:
                slots[name, no_key] = element
    return slots


def _returns(
    snapshot: Snapshot, recorded: Iterable[Entry], present: Collection[str], ahead: Collection[Slot]
) -> dict[Slot, Slot]:
    """Return the origins of renamed slots where the composition has the origin again and not the new name."""
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


def _renamed_child(child: ObservedChild, slots: Mapping[Slot, Slot], resources: Mapping[str, str]) -> ObservedChild:
    entry = child.entry
    needs = tuple(dict.fromkeys(resources.get(name, name) for name in entry.depends_on))
    slot = slots.get(entry.slot)
    if slot is None:
        return replace(child, entry=msgspec.structs.replace(entry, depends_on=needs))
    name, key = slot
    made_as = entry.origin or entry.resource
    origin = "" if made_as == name else made_as
    entry = msgspec.structs.replace(entry, resource=name, key=key, origin=origin, depends_on=needs)
    return replace(child, entry=entry)
