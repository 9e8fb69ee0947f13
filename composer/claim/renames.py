"""Resources that a Composition calls by another name now: they keep their object and their object in the cloud. Pure.

The names of both are made of the resource's name, so a moved resource remembers its *origin*: the name it was made
under. It goes back by itself where an earlier revision, with the earlier name, is used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from composer.claim.selection import Revision, readable
from composer.claim.snapshot import Known, View
from composer.models import CompositionSpec
from composer.render.errors import Problem, near


def moved(view: View, spec: CompositionSpec) -> View:
    """Return the view with its entries called as the composition calls them."""
    names = _new_names(view, spec)
    return replace(view, known=tuple(_renamed(each, names) for each in view.known)) if names else view


def origins(view: View) -> dict[str, str]:
    """Return the origin of each resource that has another name by now."""
    return {each.entry.resource: each.entry.origin for each in view.known if each.entry.origin}


def faults(spec: CompositionSpec) -> Iterator[Problem]:
    """Find moves that lead nowhere: from a resource that is still there, or to two at once."""
    present = {resource.name for resource in spec.resources}
    taken: dict[str, str] = {}
    for index, resource in enumerate(spec.resources):
        path = f"spec.resources[{index}].movedFrom"
        for name in resource.moved_from:
            if name in present:
                what = f"resource {name!r} is still in the composition, so that nothing can be moved from it"
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
    for each in (*earlier, spec):
        for resource in each.resources:
            origins.setdefault(resource.name, set()).update(resource.moved_from)
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


def _new_names(view: View, spec: CompositionSpec) -> dict[str, str]:
    """Map the names in the inventory to those of the composition, where they differ."""
    present = {resource.name for resource in spec.resources}
    recorded = {each.entry.resource: each.entry.origin for each in view.known}
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


def _renamed(known: Known, names: dict[str, str]) -> Known:
    needs = tuple(names.get(each, each) for each in known.entry.depends_on)
    known = replace(known, entry=msgspec.structs.replace(known.entry, depends_on=needs))
    name = names.get(known.entry.resource)
    if name is None:
        return known
    made_as = known.entry.origin or known.entry.resource
    entry = msgspec.structs.replace(known.entry, resource=name, origin="" if made_as == name else made_as)
    return replace(known, entry=entry)
