"""A pass that fails, by a defect or again and again, is reported on its claim, and emitted once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from apis import names
from composer.claim import reconciler as claims
from composer.claim.compose import Choice, Prepared
from composer.claim.reconciler import ClaimReconciler
from composer.claim.report import Findings
from composer.claim.snapshot import ObservedChild, Snapshot
from runtime.cache import Cache
from runtime.errors import ApiError, Failure, NotLeading, Transient, Unavailable
from runtime.objects import Key, Object, Resource
from tests.composer.claim.passes import Prepares, Reads, tools_of
from tests.composer.factories import (
    CLAIMS,
    DATABASE,
    IDENTITY,
    child,
    claim,
    condition,
    conditions_of,
    desired,
    live,
    observed,
    rendered,
    snapshot,
)
from tests.support.memory_kube import MemoryKube

WANTED = desired()


def _child(*conditions: Object) -> ObservedChild:
    status = {"observedGeneration": 1, "conditions": list(conditions)}
    return observed(stored={**live(WANTED, managedFields=[]), "status": status}, applied=True)


WORKS = _child(condition("Ready", "True", "Available"))


@dataclass
class _Kube(MemoryKube):
    """Refuses what is written to children, and takes down every status."""

    refusal: Exception | None = None
    statuses: list[Object] = field(default_factory=list)

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        del resource, manager, force, subresource
        if self.refusal:
            raise self.refusal
        return {**live(WANTED), "metadata": {**live(WANTED)["metadata"], **obj["metadata"]}}

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        del resource, key, manager
        assert subresource == "status"
        self.statuses.append(operations[-1]["value"])
        return {**claim(), "status": operations[-1]["value"]}


class _World(Prepares, Reads):
    """One claim, what is read of it and how it is prepared.

    `broken`: what preparing it raises, `unread`: what reading it raises, `hangs`: which of them never ends.
    """

    def __init__(
        self,
        known: ObservedChild,
        of: Object,
        *,
        broken: Exception | None = None,
        unread: Exception | None = None,
        hangs: str = "",
    ) -> None:
        self.known, self.of, self.broken, self.unread, self.hangs = known, of, broken, unread, hangs
        self.kube = _Kube()
        self.composed = rendered(child(WANTED, ready=True))
        self.claims = Cache(self.kube).informer(CLAIMS)
        self.claims.store.remember(of)

    async def gather(self, _key: Key, *, more_kinds: Any) -> Snapshot:  # noqa: ARG002 - the port has it
        if self.hangs == "gather":
            await asyncio.Event().wait()
        if self.unread:
            raise self.unread
        return snapshot(self.known, of=self.now)

    async def gather_live(self, view: Snapshot) -> Snapshot:
        return view

    async def gather_around(self, view: Snapshot) -> Snapshot:
        return view

    async def check_version(self, view: Snapshot) -> None:
        pass

    @property
    def now(self) -> Object:
        """The claim with the status that was written last."""
        return {**self.of, "status": self.kube.statuses[-1]} if self.kube.statuses else self.of

    def supported_policies(self, _view: Snapshot) -> tuple[str, ...]:
        if self.broken:
            raise self.broken
        return ("Orphan",)

    async def render(self, choice: Choice) -> Prepared | Findings:
        if self.hangs == "prepare":
            await asyncio.Event().wait()
        if self.broken:
            raise self.broken
        return await super().render(choice)

    def reconciler(self) -> ClaimReconciler:
        limit = timedelta(milliseconds=20) if self.hangs else timedelta(seconds=100)
        return ClaimReconciler(replace(tools_of(self, self, self.kube, lambda: 0.0), pass_limit=limit))

    def conditions(self) -> dict[str, str]:
        return conditions_of(self.now["status"])


def _claim(**more: Any) -> Object:
    recorded = {
        names.IDENTITY: str(IDENTITY),
        names.COMPOSITION: "c",
        names.KINDS: DATABASE.resource.group_kind,
    }
    inventory = [{"resource": "database", "apiVersion": "v1", "kind": "PostgresDatabase", "name": "x"}]
    conditions = [condition("Ready", "True", "Available"), condition("Synced", "True", "InSync")]
    return claim(annotations=recorded, status={"conditions": conditions, "inventory": inventory}, **more)


async def _fail(reconciler: ClaimReconciler, error: type[Exception]) -> None:
    with pytest.raises(error):
        await reconciler.reconcile(Key("shop", "orders"))


@pytest.mark.parametrize(
    ("of", "defect", "conditions"),
    [
        pytest.param(
            {}, {"unread": KeyError("x")}, {"Ready": "True Available", "Synced": "False InternalError"}, id="reading"
        ),
        pytest.param({"deleted": True}, {"broken": KeyError("x")}, {}, id="a teardown"),
    ],
)
async def test_a_defect_in_reading_children_or_in_a_teardown_is_reported(
    of: dict[str, Any], defect: dict[str, Any], conditions: dict[str, str]
) -> None:
    world = _World(WORKS, _claim(**of), **defect)

    await _fail(world.reconciler(), KeyError)

    assert world.conditions().items() >= {"Reconciling": "True InternalError", **conditions}.items()


async def test_a_defect_ends_with_the_pass_that_succeeds() -> None:
    world = _World(WORKS, _claim(), broken=TypeError("x"))
    reconciler = world.reconciler()
    await _fail(reconciler, TypeError)
    world.broken = None

    await reconciler.reconcile(Key("shop", "orders"))

    assert world.conditions() == {"Ready": "True Available", "Synced": "True InSync"}


async def test_an_error_that_does_not_repeat_in_a_row_is_not_reported() -> None:
    world = _World(WORKS, _claim())
    reconciler = world.reconciler()

    for refusal in (Unavailable("x"), None) * 3:
        world.kube.refusal = refusal
        try:
            await reconciler.reconcile(Key("shop", "orders"))
        except (ApiError, Failure):
            continue

    assert all(
        condition["reason"] != "RequestFailed" for status in world.kube.statuses for condition in status["conditions"]
    )


async def test_a_process_that_leads_no_more_reports_nothing() -> None:
    world = _World(WORKS, _claim(), broken=NotLeading("over"))
    reconciler = world.reconciler()

    for _ in range(4):
        await _fail(reconciler, NotLeading)

    assert world.kube.statuses == []


@pytest.mark.parametrize("where", ["prepare", "gather"])
async def test_a_pass_that_never_ends_is_reported_from_the_third_one_on(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(claims, "_READ_AGAIN", timedelta(milliseconds=20))
    world = _World(WORKS, _claim(), hangs=where)
    reconciler = world.reconciler()

    for _ in range(4):
        await _fail(reconciler, Transient)

    assert world.conditions()["Reconciling"] == "True RequestFailed"
    assert world.conditions()["Ready"] == "True Available"
    assert "the pass took longer than 0.02 seconds" in str(world.now["status"]["conditions"])
    assert len(world.kube.statuses) <= 2
