"""Whether the resources of a Composition may be called as they are, after what they were called before. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from composer.models import CompositionSpec
from composer.render.errors import Problem, near


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
