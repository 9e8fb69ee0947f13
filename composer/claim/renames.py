"""Resources that a Composition calls by another name now: they keep their object and their object in the cloud. Pure.

The names of both are made of the resource's name, so a moved resource remembers its *origin*: the name it was made
under. It goes back by itself where an earlier revision, with the earlier name, is used again.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from composer.claim.snapshot import ObservedChild, Snapshot
from composer.models import CompositionSpec


def moved(snapshot: Snapshot, spec: CompositionSpec) -> Snapshot:
    """Return the snapshot with its entries called as the composition calls them."""
    names = _new_names(snapshot, spec)
    return replace(snapshot, known=tuple(_renamed(each, names) for each in snapshot.known)) if names else snapshot


def origins(snapshot: Snapshot) -> dict[str, str]:
    """Return the origin of each resource that has another name by now."""
    return {each.entry.resource: each.entry.origin for each in snapshot.known if each.entry.origin}


def _new_names(snapshot: Snapshot, spec: CompositionSpec) -> dict[str, str]:
    """Map the names in the inventory to those of the composition, where they differ."""
    present = {resource.name for resource in spec.resources}
    recorded = {each.entry.resource: each.entry.origin for each in snapshot.known}
    found: dict[str, str] = {}
    for resource in spec.resources:
        if resource.name not in recorded:
            earlier = next((name for name in resource.moved_from if name in recorded and name not in found), None)
            if earlier is not None:
                found[earlier] = resource.name
    for name, origin in recorded.items():
        if name not in present and name not in found and origin in present and origin not in recorded:
            found[name] = origin
    return found


def _renamed(known: ObservedChild, names: dict[str, str]) -> ObservedChild:
    needs = tuple(names.get(each, each) for each in known.entry.depends_on)
    known = replace(known, entry=msgspec.structs.replace(known.entry, depends_on=needs))
    name = names.get(known.entry.resource)
    if name is None:
        return known
    made_as = known.entry.origin or known.entry.resource
    entry = msgspec.structs.replace(known.entry, resource=name, origin="" if made_as == name else made_as)
    return replace(known, entry=entry)
