"""Kinds whose objects nobody can list: what of a claim waits for them, and what does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from apis import names
from composer.claim.gather import Gatherer
from composer.inventory import dump
from composer.kinds.cluster import Cluster
from runtime.cache import Cache
from runtime.errors import ApiError, Forbidden, Unavailable
from runtime.kube import Page, Selection
from runtime.objects import CRDS, Object, Resource
from tests.composer.claim import passes
from tests.composer.factories import (
    CLAIMS,
    DATABASES,
    SETTINGS,
    child,
    claim,
    desired,
    entry,
    rendered,
    snapshot,
)
from tests.support.memory_kube import MemoryKube

DATABASE = DATABASES.group_kind
REMEMBERS = {"identity": "claim-uid@shop/orders"}
RECORDED = {**REMEMBERS, "inventory": dump([entry()])}


@dataclass
class LoggedKube(MemoryKube):
    """Refuses lists of one kind, or has objects of it."""

    answer: ApiError | int = 0
    selections: list[Selection] = field(default_factory=list)

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        if resource != DATABASES:
            return await super().list_page(resource, selection, limit=limit, next_page=next_page)
        self.selections.append(selection)
        if isinstance(self.answer, ApiError):
            raise self.answer
        return Page((b"{}",) * self.answer, "1", "")


class Case(msgspec.Struct, frozen=True):
    status: Object
    deleted: bool
    answer: ApiError | int
    waits: bool


FORBIDDEN, BROKEN = Forbidden("no"), Unavailable("conversion webhook")
CASES = {
    "a living claim with a child of it": Case(RECORDED, deleted=False, answer=FORBIDDEN, waits=True),
    "a living claim without one": Case(REMEMBERS, deleted=False, answer=FORBIDDEN, waits=False),
    "a living claim that remembers nothing": Case({}, deleted=False, answer=FORBIDDEN, waits=True),
    "a claim that goes with a child of it": Case(RECORDED, deleted=True, answer=FORBIDDEN, waits=True),
    "a claim that goes without one": Case(REMEMBERS, deleted=True, answer=FORBIDDEN, waits=False),
    "a claim that goes and remembers nothing": Case({}, deleted=True, answer=FORBIDDEN, waits=True),
    "a claim that goes, whose create had no answer": Case(REMEMBERS, deleted=True, answer=1, waits=True),
    "a claim that goes, of which nothing is found": Case(REMEMBERS, deleted=True, answer=0, waits=False),
    "a claim that goes while nobody can answer": Case(REMEMBERS, deleted=True, answer=BROKEN, waits=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_unlistable_kind_holds_a_claim_that_may_have_children_of_it(case: Case) -> None:
    kube = LoggedKube(answer=case.answer)
    cluster = Cluster(kube, Cache(kube))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    owner = claim(status=case.status, deleted=case.deleted, annotations={names.KINDS: DATABASE})

    unseen = await gatherer.unseen(replace(snapshot(of=owner), unlisted=(DATABASE,)))

    assert unseen == ((DATABASE,) if case.waits else ())
    assert {selection.labels for selection in kube.selections} <= {f"{names.CLAIM_LABEL}=claim-uid"}


@pytest.mark.parametrize(("defined", "waits"), [(True, True), (False, False)], ids=["is not served", "is not there"])
async def test_a_deleted_claim_without_memory_waits_for_a_kind_that_is_not_served(
    *, defined: bool, waits: bool
) -> None:
    kube = MemoryKube()
    cluster = Cluster(kube, Cache(kube))
    spec = {
        "group": "example.org",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": False, "storage": True}],
    }
    if defined:
        cluster.crds.store.remember(kube.put(CRDS, "gadgets.example.org", namespace="", spec=spec))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    owner = claim(deleted=True, annotations={names.KINDS: "Gadget.example.org"})

    assert await gatherer.unseen(snapshot(of=owner)) == (("Gadget.example.org",) if waits else ())


class _Blind(passes.LoggedKube):
    """Refuses every list, and takes each write down."""

    async def list_page(self, *_args: object, **_options: object) -> Page:
        raise FORBIDDEN


@pytest.mark.parametrize(
    ("status", "deleted", "writes"),
    [
        (REMEMBERS, False, ["apply PostgreSQLInstance", "create ConfigMap", "status PostgreSQLInstance"]),
        (RECORDED, False, ["status PostgreSQLInstance"]),
        (REMEMBERS, True, ["patch PostgreSQLInstance"]),
        (RECORDED, True, ["status PostgreSQLInstance"]),
    ],
    ids=["lives", "lives and has a child of it", "goes", "goes and has a child of it"],
)
async def test_a_claim_waits_for_an_unlistable_kind_when_it_has_a_child_of_it(
    monkeypatch: pytest.MonkeyPatch, status: Object, writes: list[str], *, deleted: bool
) -> None:
    kube = _Blind()
    cluster = Cluster(kube, Cache(kube))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    monkeypatch.setattr(passes.Reads, "unseen", lambda _reads, seen: gatherer.unseen(seen), raising=False)
    owner = claim(status=status, deleted=deleted, annotations={names.KINDS: DATABASE})
    seen = replace(snapshot(of=owner), unlisted=(DATABASE,))

    await passes.make_pass(seen, seen, rendered(child(desired("settings", SETTINGS), "settings")), kube)

    assert kube.verbs() == writes
