"""The first pass over a claim: it is rendered while its finalizer is written, and nothing is created before both."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from composer.causes import cause
from composer.claim.compose import Choice, Prepared, untouched
from composer.claim.report import Findings
from composer.claim.snapshot import ObservedChild
from runtime.cache import Cache
from runtime.errors import ApiError, Invalid, Unavailable
from runtime.objects import Object, Resource, key_of
from tests.composer.claim.passes import LoggedKube, Prepares, Reads, reconciler
from tests.composer.factories import CLAIMS, DATABASE, child, claim, desired, entry, live, rendered, snapshot

_SECONDS = 10.0


@dataclass
class _Kube(LoggedKube):
    """Answers the write of the finalizer once the claim is being rendered; `broken` is what it raises instead."""

    rendering: asyncio.Event = field(default_factory=asyncio.Event)
    recording: asyncio.Event = field(default_factory=asyncio.Event)
    broken: ApiError | None = None

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        made = await super().apply(resource, obj, manager=manager, force=force, subresource=subresource)
        self.recording.set()
        await self.rendering.wait()
        if self.broken:
            raise self.broken
        stored = {**made, "metadata": {**made["metadata"], "resourceVersion": "2"}}
        self.objects[resource, key_of(obj)] = stored
        return deepcopy(stored)


@dataclass
class _Preparer(Prepares):
    """Renders once the finalizer is being written; `refusal` is what the render ends in."""

    kube: _Kube = field(default_factory=_Kube)
    refusal: str = ""

    async def render(self, choice: Choice) -> Prepared | Findings:
        self.kube.rendering.set()
        await self.kube.recording.wait()
        if self.refusal:
            return untouched(choice.snapshot, cause("RenderRefused", self.refusal))
        return await super().render(choice)


def _new_claim() -> Object:
    whole = claim()
    return {**whole, "metadata": {**whole["metadata"], "finalizers": [], "resourceVersion": "1"}}


async def _make_pass(kube: _Kube, *, refusal: str = "", of: Object | None = None, known: Any = ()) -> None:
    owner, composed = of or _new_claim(), rendered(child(desired(), ready=False))
    reads = Reads(Cache(kube).informer(CLAIMS), snapshot(*known, of=owner), None)
    kube.objects[CLAIMS, key_of(owner)] = owner
    preparer = _Preparer(composed, kube, refusal)
    async with asyncio.timeout(_SECONDS):
        await reconciler(reads, composed, kube, lambda: 0.0, preparer=preparer).reconcile(key_of(owner))


@pytest.mark.parametrize("refusal", ["", "size is unknown"])
async def test_nothing_is_created_where_the_finalizer_is_refused(refusal: str) -> None:
    kube = _Kube(broken=Invalid("too long", status=422))
    await _make_pass(kube, refusal=refusal)
    assert kube.verbs() == ["apply PostgreSQLInstance", "status PostgreSQLInstance"]


async def test_nothing_is_created_where_the_finalizer_has_no_answer() -> None:
    kube = _Kube(broken=Unavailable("later", status=503))
    with pytest.raises(Unavailable):
        await _make_pass(kube)
    assert "create PostgresDatabase" not in kube.verbs()


async def test_a_claim_that_has_composed_something_is_rendered_before_its_finalizer_is_written() -> None:
    kube = _Kube()
    kube.recording.set()  # the render does not wait for the write
    made = live(desired())
    kube.there(made)
    await _make_pass(kube, refusal="size is unknown", known=(ObservedChild(entry(), made, DATABASE),))
    assert kube.verbs() == ["status PostgreSQLInstance"]
