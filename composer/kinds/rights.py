"""What the composer may do with a composed kind, asked of the API server before a Composition is accepted.

Source: Kubernetes reference, SelfSubjectAccessReview (authorization.k8s.io/v1); every account may ask about itself
(ClusterRole system:basic-user).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from apis import names
from composer.kinds.catalog import Catalog
from composer.render.errors import Problem
from composer.render.render import group_kind_of
from runtime.errors import Forbidden
from runtime.kube import Kube
from runtime.objects import Object, Resource

VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
"""What the life of a child takes."""
REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_GRANTED_FOR: Final = timedelta(minutes=5)
DENIED_PACE: Final = timedelta(seconds=5)
"""How soon a Composition is looked at again for a right that was missing."""
# A cloud that is not installed may lack for ever: the API server is asked less and less often.
_DENIED_FOR_MOST: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was missing of one kind, on the monotonic clock until when that is believed, and for how many seconds."""

    missing: tuple[str, ...]
    until: float
    seconds: float


class Rights:
    """Remembers what the API server answered, by kind: for minutes what it granted, for seconds what it did not."""

    def __init__(self, kube: Kube, *, monotonic: Callable[[], float]) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._answers: dict[Resource, _Answer] = {}

    async def problems(
        self, resources: Iterable[Object], catalog: Catalog, *, is_requested: bool
    ) -> tuple[Problem, ...]:
        """Say which composed kinds the composer lacks a right on, and how to grant it. Raises ApiError.

        `resources` are those of a Composition's spec; `is_requested`: a person wants to know anew.
        """
        found: list[Problem] = []
        known: dict[str, tuple[str, ...]] = {}
        for index, each in enumerate(resources):
            template = each.get("template") or {}
            kind = group_kind_of(template)
            facts = catalog.get(kind)
            if facts is None:
                continue
            if kind not in known:
                known[kind] = await self._missing(facts.resource, is_requested=is_requested)
            if known[kind]:
                what = (
                    f"the composer may not {', '.join(known[kind])} {facts.resource.plural} ({kind}) in all namespaces"
                )
                how = f'grant it by a ClusterRole with label {names.AGGREGATE_LABEL}: "true"'
                path = f"spec.resources[{index}].template.kind"
                found.append(Problem("KindNotAllowed", f"{what}; {how}", path, resource=str(each.get("name"))))
        return tuple(found)

    async def _missing(self, resource: Resource, *, is_requested: bool) -> tuple[str, ...]:
        now, before = self._monotonic(), self._answers.get(resource)
        if before is not None and not is_requested and now < before.until:
            return before.missing
        answers = await asyncio.gather(*(self._may(resource, verb) for verb in VERBS))
        missing = tuple(verb for verb, may in zip(VERBS, answers, strict=True) if not may)
        seconds = _GRANTED_FOR.total_seconds()
        if missing:
            seconds = DENIED_PACE.total_seconds()
            if before is not None and before.missing and not is_requested:
                seconds = min(2 * before.seconds, _DENIED_FOR_MOST.total_seconds())
        self._answers[resource] = _Answer(missing, now + seconds, seconds)
        return missing

    async def _may(self, resource: Resource, verb: str) -> bool:
        wanted = {"group": resource.group, "resource": resource.plural, "verb": verb}
        try:
            answer = await self._kube.review(REVIEWS, {"resourceAttributes": wanted})
        except Forbidden:
            # Who may not even ask finds out by trying.
            return True
        return bool((answer.get("status") or {}).get("allowed", True))
