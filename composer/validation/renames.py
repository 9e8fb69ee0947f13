"""Whether the resources of a Composition may be called as they are, after what they were called before. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from composer.models import CompositionSpec, ResourceTemplate
from composer.render.errors import Problem, near

BY_KEY: Final = re.compile(r"([a-z0-9]*)\{\{\s*each\.key\s*\}\}([a-z0-9]*)")
"""An element of `movedFrom` that stands for one name for each key: what is before the key, and what is after it."""


def faults(spec: CompositionSpec) -> Iterator[Problem]:
    """Yield renames that lead nowhere: from a resource that is still there, or to two at once."""
    present = {resource.name for resource in spec.resources}
    taken: dict[str, str] = {}
    for index, resource in enumerate(spec.resources):
        path = f"spec.resources[{index}].movedFrom"
        for name in resource.moved_from:
            still_there = sorted(_meant(name, present))
            if not _is_readable(name, resource):
                text = f"{name!r} is no name, nor one with {{{{ each.key }}}} in it of a resource with forEach"
                yield Problem("TemplateInvalid", text, path, resource=resource.name)
            elif still_there:
                text = f"resource {still_there[0]!r} is still in the composition, so that nothing can be moved from it"
                yield Problem("TemplateInvalid", text, path, resource=resource.name)
            elif name in taken:
                text = f"{name!r} is moved to {taken[name]!r} already{near(name, present)}"
                yield Problem("TemplateInvalid", text, path, resource=resource.name)
            taken[name] = resource.name


def reused(spec: CompositionSpec, earlier: Iterable[CompositionSpec]) -> Iterator[Problem]:
    """Yield names that are used again although another resource's objects have them: it was moved from them before.

    New claims show nothing of it: only those of before the move would have two resources with one object.
    """
    origins: dict[str, set[str]] = {}
    every = (*earlier, spec)
    ever = {resource.name for composition in every for resource in composition.resources}
    for composition in every:
        for resource in composition.resources:
            before = (meant for name in resource.moved_from for meant in (name, *_meant(name, ever)))
            origins.setdefault(resource.name, set()).update(before)
    present = {resource.name: index for index, resource in enumerate(spec.resources)}
    for name in present:
        for origin in sorted(_behind(name, origins) & (present.keys() - {name})):
            text = (
                f"objects of resource {name!r} that were made before it was moved have the name of {origin!r};"
                " give this resource another name"
            )
            yield Problem("DuplicateResource", text, f"spec.resources[{present[origin]}].name", resource=origin)


def _behind(name: str, origins: Mapping[str, set[str]]) -> set[str]:
    """Return all names that objects of a resource may have been made under."""
    names: set[str] = set()
    ahead = [name]
    while ahead:
        more = origins.get(ahead.pop(), set()) - names
        names |= more
        ahead += more
    return names


def _is_readable(name: str, resource: ResourceTemplate) -> bool:
    by_key = BY_KEY.fullmatch(name)
    return bool(resource.for_each and any(by_key.groups())) if by_key else "{" not in name


def _meant(name: str, known: Collection[str]) -> set[str]:
    """Return which of these resource names an element of `movedFrom` means."""
    by_key = BY_KEY.fullmatch(name)
    if by_key is None:
        return {name} & set(known)
    return {other for other in known if key_in(other, *by_key.groups())}


def key_in(name: str, before: str, after: str) -> str:
    """Return the key in a resource's name, between these two; empty where the name is another."""
    has_both = name.startswith(before) and name.endswith(after)
    return name[len(before) : len(name) - len(after)] if has_both and len(name) > len(before) + len(after) else ""
