"""What the composer may do with composed kinds is reviewed once in some minutes, and reported with the way out."""

from __future__ import annotations

from datetime import timedelta

from composer.kinds.rights import VERBS, Rights
from composer.render.errors import Problem
from fairlead.simulation.virtual_time import VirtualLoop
from runtime.objects import Object, Resource
from tests.composer.factories import CATALOG
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import MemoryKube

LOOP = VirtualLoop


def _resource(name: str, kind: str = "ConfigMap") -> Object:
    return {"name": name, "template": {"apiVersion": "v1", "kind": kind}}


def _nobody(_: Resource) -> None:
    """Nobody waits for a right to be granted."""


def test_a_right_that_is_missing_is_named_with_the_way_to_grant_it() -> None:
    kube = MemoryKube(denied={("configmaps", "watch"), ("configmaps", "delete")})
    rights = Rights(kube, monotonic=lambda: 0.0, granted=_nobody)

    denied = run(rights.denied([_resource("a"), _resource("b", "Unknown")], CATALOG, is_requested=False))

    text = (
        "the composer may not watch, delete configmaps (ConfigMap) in all namespaces; grant it by a ClusterRole with "
        'label fairlead.dev/aggregate-to-composer: "true"'
    )
    problem = Problem("KindNotAllowed", text, "spec.resources[0].template.kind", resource="a")
    assert denied == ((problem,), timedelta(seconds=5))
    assert [review["resourceAttributes"]["verb"] for review in kube.reviews] == list(VERBS)


def test_a_granted_right_is_reviewed_again_after_minutes_and_a_missing_one_less_and_less_often() -> None:
    now, kube = [0.0], MemoryKube()
    rights = Rights(kube, monotonic=lambda: now[0], granted=_nobody)

    async def counts() -> list[int]:
        reviews: list[int] = []
        for at, is_requested, denied in (
            (0, False, ()),
            (299, False, ()),
            (299, True, ()),
            (600, False, ("list",)),
            (604, False, ("list",)),
            (605, False, ("list",)),
            (614, False, ("list",)),
            (615, False, ("list",)),
            (635, True, ("list",)),
            (640, False, ()),
        ):
            now[0] = float(at)
            kube.denied = {("configmaps", verb) for verb in denied}
            before = len(kube.reviews)
            await rights.denied([_resource("a"), _resource("b")], CATALOG, is_requested=is_requested)
            reviews.append(len(kube.reviews) - before)
        return reviews

    assert run(counts()) == [6, 0, 6, 6, 0, 6, 0, 6, 6, 6]
