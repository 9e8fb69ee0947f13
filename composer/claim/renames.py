"""Resources that a Composition calls by another name now: they keep their object and their object in the cloud. Pure.

The names of both are made of the resource's name, so a moved resource remembers its *origin*: the name it was made
under. It goes back by itself where an earlier revision, with the earlier name, is used again.

A resource with forEach may take over resources that had none: `movedFrom: ["parameters{{ each.key }}"]` makes of the
object of `parameters16` the element `16`. Its names have no key, which is how such an object is known again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import msgspec

from apis.identity import child_name
from composer.claim.selection import Revision, readable
from composer.claim.snapshot import Known, View
from composer.inventory import Entry
from composer.models import CompositionSpec, ResourceTemplate
from composer.render.errors import Problem, near

Slot: TypeAlias = tuple[str, str]
"""The place in the composition: resource name and forEach key."""

_BY_KEY: Final = re.compile(r"([a-z0-9]*)\{\{\s*each\.key\s*\}\}([a-z0-9]*)")


def moved(view: View, spec: CompositionSpec) -> View:
    """Return the view with its entries called as the composition calls them."""
    is_moving = any(resource.moved_from for resource in spec.resources)
    slots = _new_slots(view, spec) if is_moving or any(each.entry.origin for each in view.known) else {}
    if not slots:
        return view
    resources = {slot[0]: fresh[0] for slot, fresh in slots.items()}
    return replace(view, known=tuple(_renamed(each, slots, resources) for each in view.known))


def origins(view: View) -> dict[str, str]:
    """Return the origin of each resource that has another name by now."""
    moved_entries = (each.entry for each in view.known if each.entry.origin)
    return {entry.resource: entry.origin for entry in moved_entries if not _was_made_without_key(view, entry)}


def element_origins(view: View) -> dict[str, dict[str, str]]:
    """Return the origins of elements that were made by a resource without forEach, by resource and key."""
    origins: dict[str, dict[str, str]] = {}
    for each in view.known:
        if each.entry.origin and _was_made_without_key(view, each.entry):
            origins.setdefault(each.entry.resource, {})[each.entry.key] = each.entry.origin
    return origins


def _was_made_without_key(view: View, entry: Entry) -> bool:
    """Return whether an element's object has the name of a resource without forEach: it was moved from one."""
    return bool(entry.key) and entry.name == child_name(view.identity, entry.origin)


def faults(spec: CompositionSpec) -> Iterator[Problem]:
    """Find moves that lead nowhere: from a resource that is still there, or to two at once."""
    present = {resource.name for resource in spec.resources}
    taken: dict[str, str] = {}
    for index, resource in enumerate(spec.resources):
        path = f"spec.resources[{index}].movedFrom"
        for name in resource.moved_from:
            still_there = sorted(_meant(name, present))
            if not _is_readable(name, resource):
                what = f"{name!r} is no name, nor one with {{{{ each.key }}}} in it of a resource with forEach"
                yield Problem("TemplateInvalid", what, path, resource=resource.name)
            elif still_there:
                what = f"resource {still_there[0]!r} is still in the composition, so that nothing can be moved from it"
                yield Problem("TemplateInvalid", what, path, resource=resource.name)
            elif name in taken:
                what = f"{name!r} is moved to {taken[name]!r} already{near(name, present)}"
                yield Problem("TemplateInvalid", what, path, resource=resource.name)
            taken[name] = resource.name


def reused_names(composition: dict[str, Any], known: Iterable[Revision]) -> tuple[Problem, ...]:
    """Find resources that would share an object with another one in claims of an earlier revision."""
    current, earlier = readable(composition), (readable(each.composition) for each in known)
    return tuple(reused(current, (each for each in earlier if each is not None))) if current else ()


def reused(spec: CompositionSpec, earlier: Iterable[CompositionSpec]) -> Iterator[Problem]:
    """Find names that are given again although another resource's objects have them: it was moved from them before.

    New claims show nothing of it: only those of before the move would have two resources with one object.
    """
    origins: dict[str, set[str]] = {}
    every = (*earlier, spec)
    ever = {resource.name for each in every for resource in each.resources}
    for each in every:
        for resource in each.resources:
            before = (meant for name in resource.moved_from for meant in (name, *_meant(name, ever)))
            origins.setdefault(resource.name, set()).update(before)
    present = {resource.name: index for index, resource in enumerate(spec.resources)}
    for name in present:
        for origin in sorted(_behind(name, origins) & (present.keys() - {name})):
            what = (
                f"objects of resource {name!r} that were made before it was moved have the name of {origin!r};"
                " give this resource another name"
            )
            yield Problem("DuplicateResource", what, f"spec.resources[{present[origin]}].name", resource=origin)


def _behind(name: str, origins: Mapping[str, set[str]]) -> set[str]:
    """Return all names that objects of a resource may have been made under."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        more = origins.get(ahead.pop(), set()) - found
        found |= more
        ahead += more
    return found


def _is_readable(name: str, resource: ResourceTemplate) -> bool:
    by_key = _BY_KEY.fullmatch(name)
    return bool(resource.for_each and any(by_key.groups())) if by_key else "{" not in name


def _meant(name: str, known: Collection[str]) -> set[str]:
    """Return which of these resource names an element of `movedFrom` speaks of."""
    by_key = _BY_KEY.fullmatch(name)
    if by_key is None:
        return {name} & set(known)
    return {each for each in known if _key_in(each, *by_key.groups())}


def _key_in(name: str, before: str, after: str) -> str:
    """Return the key in a resource's name, between these two; empty where the name is another."""
    has_both = name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if has_both and len(name) > len(before) + len(after) else ""


def _new_slots(view: View, spec: CompositionSpec) -> dict[Slot, Slot]:
    """Map the slots in the inventory to those of the composition, where they differ."""
    recorded = {each.entry.slot: each.entry for each in view.known}
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
    return slots | _ways_back(view, recorded.values(), present, slots)


def _new_elements(resource: ResourceTemplate, recorded: Collection[Slot], present: Collection[str]) -> dict[Slot, Slot]:
    """Map the slots of resources without forEach to the elements that take them over."""
    slots: dict[Slot, Slot] = {}
    for by_key in filter(None, map(_BY_KEY.fullmatch, resource.moved_from)):
        for name, no_key in sorted(recorded):
            key = _key_in(name, *by_key.groups())
            element = (resource.name, key)
            if key and not no_key and name not in present and element not in {*recorded, *slots.values()}:
                slots[name, no_key] = element
    return slots


def _ways_back(
    view: View, recorded: Iterable[Entry], present: Collection[str], ahead: Collection[Slot]
) -> dict[Slot, Slot]:
    """Map what was moved to its origin, where the composition has that and no more the name that it was moved to."""
    entries = list(recorded)
    resources = {entry.resource for entry in entries}
    return {
        entry.slot: (entry.origin, "" if _was_made_without_key(view, entry) else entry.key)
        for entry in entries
        if entry.slot not in ahead
        and entry.resource not in present
        and entry.origin in present
        and entry.origin not in resources
    }


def _renamed(known: Known, slots: Mapping[Slot, Slot], resources: Mapping[str, str]) -> Known:
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
