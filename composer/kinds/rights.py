"""Reviews what the composer may do with a composed kind, before a Composition is accepted.

Source: Kubernetes reference, SelfSubjectAccessReview (authorization.k8s.io/v1); every account may ask about itself
(ClusterRole system:basic-user).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from apis import names
from composer.kinds.catalog import Catalog
from composer.render.child_metadata import group_kind_of
from composer.render.errors import Problem
from runtime.errors import Forbidden
from runtime.kube import Kube
from runtime.objects import Object, Resource

VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
"""The verbs that the life of a child needs."""
REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_GRANTED_FOR: Final = timedelta(minutes=5)
_DENIED_FOR: Final = timedelta(seconds=5)
# A cloud may never be installed: the reviews of its kinds become rarer.
_DENIED_FOR_MOST: Final = timedelta(minutes=10)


class Denied(NamedTuple):
    """A problem for each composed kind on which a right is missing; after how long the first is reviewed again."""

    problems: tuple[Problem, ...]
    again: timedelta


@dataclass(frozen=True, slots=True)
class _Answer:
    """The verbs that were missing of one kind, until when that holds (monotonic clock), and for how many seconds."""

    missing: tuple[str, ...]
    until: float
    seconds: float


class Rights:
    """Remembers the API server's reviews, by kind: what is allowed for minutes, what is not for longer each time.

    `granted` is called with each kind that a review allows.
    """

    def __init__(self, kube: Kube, *, monotonic: Callable[[], float], granted: Callable[[Resource], None]) -> None:
        self._kube = kube
        self._monotonic = monotonic
        self._granted = granted
        self._answers: dict[Resource, _Answer] = {}

    async def denied(self, resources: Iterable[Object], catalog: Catalog, *, is_requested: bool) -> Denied | None:
        """Return on which composed kinds the composer lacks a right, None for none. Raises ApiError.

        `resources` are those of a Composition's spec; `is_requested`: a reconcile is requested, so review again.
        """
        problems: list[Problem] = []
        again: list[float] = []
        known: dict[str, tuple[str, ...]] = {}
        for index, resource in enumerate(resources):
            template = resource.get("template") or {}
            kind = group_kind_of(template)
            facts = catalog.get(kind)
            if facts is None:
                continue
            if kind not in known:
                known[kind] = await self._missing(facts.resource, is_requested=is_requested)
            if known[kind]:
                text = (
                    f"the composer may not {', '.join(known[kind])} {facts.resource.plural} ({kind}) in all namespaces"
                )
                how = f'grant it by a ClusterRole with label {names.AGGREGATE_LABEL}: "true"'
                path = f"spec.resources[{index}].template.kind"
                problems.append(Problem("KindNotAllowed", f"{text}; {how}", path, resource=str(resource.get("name"))))
                again.append(self._answers[facts.resource].until - self._monotonic())
        return Denied(tuple(problems), timedelta(seconds=max(0.0, min(again)))) if problems else None

    async def _missing(self, resource: Resource, *, is_requested: bool) -> tuple[str, ...]:
        now, before = self._monotonic(), self._answers.get(resource)
        if before is not None and not is_requested and now < before.until:
            return before.missing
        answers = await asyncio.gather(*(self._may(resource, verb) for verb in VERBS))
        missing = tuple(verb for verb, may in zip(VERBS, answers, strict=True) if not may)
        seconds = _GRANTED_FOR.total_seconds()
        if missing:
            seconds = _DENIED_FOR.total_seconds()
            if before is not None and before.missing and not is_requested:
                seconds = min(2 * before.seconds, _DENIED_FOR_MOST.total_seconds())
        else:
            self._granted(resource)
        self._answers[resource] = _Answer(missing, now + seconds, seconds)
        return missing

    async def _may(self, resource: Resource, verb: str) -> bool:
        wanted = {"group": resource.group, "resource": resource.plural, "verb": verb}
        try:
            answer = await self._kube.review(REVIEWS, {"resourceAttributes": wanted})
        except Forbidden:
            # Where no review is allowed, the verb itself is tried.
            return True
        return bool((answer.get("status") or {}).get("allowed", True))
