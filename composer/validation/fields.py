"""What children of other operators' kinds have that no Composition, or no claim, may set. Pure.

Asked where a Composition is tried, and by the composer's own process for each render: a worker's answer is input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from composer.kinds.catalog import KindFacts
from composer.render.errors import Problem
from composer.render.operators.fields import Own
from composer.render.render import Rendered
from composer.render.request import Request
from runtime.objects import metadata


def refusals(request: Request, rendered: Rendered, kinds: Mapping[str, KindFacts]) -> Iterator[Problem]:
    """Yield what of the children of a claim may not be set, at its place in the Composition."""
    paths = {
        resource["name"]: f"spec.resources[{index}].template"
        for index, resource in enumerate(request.composition["resources"])
    }
    made = {child.name for child in rendered.children}
    own = Own(metadata(request.claim).get("namespace", ""), frozenset({*made, *request.passwords.values()}))
    for child in rendered.children:
        facts = kinds.get(child.group_kind)
        if facts is not None:
            for problem in facts.fence.refusals(child.object, paths[child.resource], own):
                yield msgspec.structs.replace(problem, resource=child.resource)
