"""A pass that fails, by a defect or again and again, is reported on its claim, and emitted once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis import names
from composer.claim import reconciler as claims
from composer.claim.act import Actor
from composer.claim.compose import Choice, Chosen, Prepared, untouched
from composer.claim.reconciler import ClaimReconciler, Tools
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.composition.revision import Revision
from composer.models import CompositionSpec
from runtime.cache import Cache, Informer
from runtime.errors import ApiError, Failure, NotLeading, Transient, Unavailable
from runtime.events import EventRecorder
from runtime.objects import Key, Object, Resource
from tests.composer.factories import CLAIMS, DATABASE, IDENTITY, child, claim, desired, entry, live, rendered, snapshot
from tests.support.fake_kube import FakeKube

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
WANTED = desired()


def _condition(type_: str, status: str, reason: str) -> Object:
    condition = {"type": type_, "status": status, "reason": reason, "message": "x", "observedGeneration": 1}
    return {**condition, "lastTransitionTime": "2026-11-01T00:00:00Z"}


def _child(*conditions: Object) -> ObservedChild:
    status = {"observedGeneration": 1, "conditions": list(conditions)}
    return ObservedChild(entry(applied=True), {**live(WANTED, managedFields=[]), "status": status}, DATABASE)


WORKS = _child(_condition("Ready", "True", "Available"))
LOST = _child(_condition("Ready", "False", "DatabaseLost"), _condition("Stalled", "True", "DatabaseLost"))


@dataclass
class _Kube(FakeKube):
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


@dataclass
class _World:
    """One claim; `broken` is what preparing it raises, `unread` what reading it raises."""

    known: ObservedChild
    of: Object
    broken: Exception | None = None
    unread: Exception | None = None
    hangs: str | None = None

    def __post_init__(self) -> None:
        self.kube = _Kube()
        self.claims: Informer = Cache(self.kube).informer(CLAIMS)
        self.claims.store.remember(self.of)

    async def gather(self, key: Key, *, more_kinds: Any) -> Snapshot:
        del key, more_kinds
        if self.hangs == "gather":
            await asyncio.Event().wait()
        if self.unread:
            raise self.unread
        return snapshot(self.known, of=self.now)

    @property
    def now(self) -> Object:
        """The claim with the status that was written last."""
        return {**self.of, "status": self.kube.statuses[-1]} if self.kube.statuses else self.of

    async def abandoned(self, _key: Key) -> tuple[ObservedChild, ...]:
        return ()

    async def with_predecessors(self, seen: Snapshot) -> Snapshot:
        return seen

    async def gather_live(self, seen: Snapshot) -> Snapshot:
        return seen

    async def gather_around(self, seen: Snapshot) -> Snapshot:
        return seen

    async def check_version(self, seen: Snapshot) -> None:
        pass

    async def unseen(self, _view: Snapshot) -> tuple[str, ...]:
        return ()

    def kinds(self, _claim: Object) -> frozenset[str]:
        return frozenset()

    def is_chosen_by_namespace(self, _seen: Snapshot) -> bool:
        return False

    def supported_policies(self, _view: Snapshot) -> tuple[str, ...]:
        if self.broken:
            raise self.broken
        return ("Orphan",)

    async def prepare(self, seen: Snapshot) -> Prepared:
        return await self.render(self.choose(seen))

    def choose(self, seen: Snapshot) -> Choice:
        of = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind}
        spec: dict[str, Any] = {"compositeTypeRef": of, "deletionPolicies": ["Orphan"], "resources": []}
        revision, read = Revision("c-1", 1, "c", spec, None), msgspec.convert(spec, CompositionSpec)
        return Choice(Chosen("c", revision, read, is_rollback=False, outside=None), seen, untouched(seen))

    async def render(self, choice: Choice) -> Prepared:
        if self.hangs == "prepare":
            await asyncio.Event().wait()
        if self.broken:
            raise self.broken
        chosen, composed = choice.chosen, rendered(child(WANTED, ready=True))
        return Prepared(chosen.composition, chosen.revision, chosen.spec, composed, choice.snapshot)

    def reconciler(self) -> ClaimReconciler:
        tools: dict[str, Any] = {
            "kube": self.kube,
            "gatherer": self,
            "preparer": self,
            "actor": Actor(self.kube, now=lambda: AT, remember=lambda _facts, _obj, _over: None),
            "publisher": None,
            "passwords": None,
            "events": EventRecorder(self.kube, controller="c", instance="i"),
            "now": lambda: AT,
            "monotonic": lambda: 0.0,
            "pass_limit": timedelta(seconds=100) if self.hangs is None else timedelta(milliseconds=20),
        }
        return ClaimReconciler(Tools(**tools))

    def conditions(self) -> dict[str, str]:
        return {
            condition["type"]: f"{condition['status']} {condition['reason']}"
            for condition in self.now["status"]["conditions"]
        }


def _claim(**more: Any) -> Object:
    recorded = {
        names.IDENTITY: str(IDENTITY),
        names.COMPOSITION: "c",
        names.KINDS: DATABASE.resource.group_kind,
    }
    inventory = [{"resource": "database", "apiVersion": "v1", "kind": "PostgresDatabase", "name": "x"}]
    conditions = [_condition("Ready", "True", "Available"), _condition("Synced", "True", "InSync")]
    return claim(annotations=recorded, status={"conditions": conditions, "inventory": inventory}, **more)


async def _fail(reconciler: ClaimReconciler, error: type[Exception]) -> None:
    with pytest.raises(error):
        await reconciler.reconcile(Key("shop", "orders"))


@pytest.mark.parametrize(
    ("known", "ready", "first"),
    [(WORKS, "True Available", "True InternalError"), (LOST, "False DatabaseLost", "True DatabaseLost")],
    ids=["it works", "it is lost"],
)
async def test_a_defect_is_reported_once_and_hides_no_lost_database(
    known: ObservedChild, ready: str, first: str
) -> None:
    world = _World(known, _claim(), broken=TypeError("a secret"))
    reconciler = world.reconciler()

    for _ in range(3):
        await _fail(reconciler, TypeError)

    conditions = world.conditions()
    assert conditions["Ready"] == ready
    assert conditions.get("Reconciling", conditions.get("Stalled")) == first
    texts = " ".join(condition["message"] for condition in world.now["status"]["conditions"])
    assert ("TypeError" in texts) == (known is WORKS)
    assert "secret" not in texts
    assert len(world.kube.statuses) == 1
    assert [record["name"] for record in world.now["status"]["inventory"]] == ["x"]


async def test_a_defect_in_reading_the_claims_children_is_reported() -> None:
    world = _World(WORKS, _claim(), unread=KeyError("x"))

    await _fail(world.reconciler(), KeyError)

    assert world.conditions() == {
        "Ready": "True Available",
        "Synced": "False InternalError",
        "Reconciling": "True InternalError",
    }


async def test_a_defect_in_a_teardown_is_reported() -> None:
    world = _World(WORKS, _claim(deleted=True), broken=TypeError("x"))

    await _fail(world.reconciler(), TypeError)

    assert world.conditions()["Reconciling"] == "True InternalError"


async def test_a_defect_ends_with_the_pass_that_succeeds() -> None:
    world = _World(WORKS, _claim(), broken=TypeError("x"))
    reconciler = world.reconciler()
    await _fail(reconciler, TypeError)
    world.broken = None

    await reconciler.reconcile(Key("shop", "orders"))

    assert world.conditions() == {"Ready": "True Available", "Synced": "True InSync"}


@pytest.mark.parametrize("where", ["a child is written", "the claim is prepared"])
async def test_an_error_is_reported_from_the_third_pass_in_a_row_on(where: str) -> None:
    error = Unavailable("failed calling webhook audit.example.org")
    world = _World(WORKS, _claim())
    world.kube.refusal = error if where == "a child is written" else None
    world.broken = error if where == "the claim is prepared" else None
    reconciler = world.reconciler()

    reported: list[bool] = []
    for _ in range(5):
        await _fail(reconciler, Unavailable)
        reported.append(bool(world.kube.statuses) and world.conditions().get("Reconciling") == "True RequestFailed")

    assert reported == [False, False, True, True, True]
    assert "webhook audit.example.org" in next(
        condition["message"] for condition in world.now["status"]["conditions"] if condition["type"] == "Reconciling"
    )
    writes = len(world.kube.statuses)
    await _fail(reconciler, Unavailable)
    assert len(world.kube.statuses) == writes


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
