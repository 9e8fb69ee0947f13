"""Whole passes over a claim: on which reads its instructions rest, and in which order it writes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from apis import names
from composer.claim.act import Actor
from composer.claim.compose import Prepared
from composer.claim.decide import Create, Delete, Step
from composer.claim.gather import Gatherer
from composer.claim.outcomes import Outcome, after
from composer.claim.reconciler import ClaimReconciler, Tools
from composer.claim.snapshot import ObservedChild, Snapshot, live_hash
from composer.composition.revision import Revision
from composer.hashes import sent_hash
from composer.inventory import dump
from composer.kinds.cluster import Cluster
from composer.kinds.informers import claim_index
from composer.models import CompositionSpec
from composer.render.render import Rendered
from runtime.cache import Cache
from runtime.errors import ApiError, Conflict, Invalid, Unavailable, WriteConflict
from runtime.events import EventRecorder
from runtime.objects import Key, Object, Resource, annotations_of, key_of, uid_of, version_of
from tests.composer.factories import (
    CLAIMS,
    CONFIG_MAPS,
    DATABASE,
    DATABASES,
    NOW,
    SETTINGS,
    child,
    claim,
    desired,
    entry,
    live,
    rendered,
    snapshot,
)
from tests.support.fake_kube import FakeKube

LIVING: Object = {"metadata": {"name": "shop", "labels": {}}}
GOING: Object = {"metadata": {"name": "shop", "labels": {}, "deletionTimestamp": NOW}}
WANTED = desired()
LIVE = live(WANTED)
SENT = entry(desired=sent_hash(WANTED), live=live_hash(LIVE, WANTED, None), applied=True)
SETTLED = live(desired("settings", SETTINGS), uid="settings-uid")
SETTLED_SENT = entry(
    "settings",
    SETTINGS,
    uid="settings-uid",
    desired=sent_hash(desired("settings", SETTINGS)),
    live=live_hash(SETTLED, desired("settings", SETTINGS), None),
    applied=True,
)


@dataclass
class _Kube(FakeKube):
    """Takes every write down; refuses creates where `refusal` is given."""

    written: list[tuple[str, str, Any]] = field(default_factory=list)
    refusal: ApiError | None = None
    reads: list[str] = field(default_factory=list)

    def there(self, *objects: Object) -> None:
        for obj in objects:
            resource = DATABASES if obj["kind"] == DATABASES.kind else CONFIG_MAPS
            self.objects[resource, key_of(obj)] = obj

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads.append(resource.kind)
        return await super().get(resource, key, metadata_only=metadata_only)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        self.written.append(("create", resource.kind, obj))
        if self.refusal:
            raise self.refusal
        return await super().create(resource, obj, manager=manager)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        manager: str,  # noqa: ARG002 - the port has it
        force: bool = False,  # noqa: ARG002 - as above
        subresource: str = "",  # noqa: ARG002 - as above
    ) -> Object:
        self.written.append(("apply", resource.kind, obj))
        stored = self.objects[resource, key_of(obj)]
        annotations = {**annotations_of(stored), **annotations_of(obj)}
        return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}

    async def json_patch(
        self,
        resource: Resource,
        key: Key,
        operations: list[dict[str, Any]],
        *,
        manager: str,  # noqa: ARG002 - the port has it
        subresource: str = "",
    ) -> Object:
        stored = self.objects.get((resource, key)) or claim()
        for operation in operations:
            field_name = operation["path"].removeprefix("/metadata/")
            is_test = operation["op"] == "test" and field_name in ("uid", "resourceVersion")
            if is_test and stored["metadata"].get(field_name, "") != operation["value"]:
                raise WriteConflict(operation["path"], status=422)
        self.written.append((subresource or "patch", resource.kind, operations))
        return stored

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete as the API server does while a finalizer holds the object."""
        del propagation
        stored = self.objects[resource, key]
        if (uid_of(stored), version_of(stored)) != (uid, resource_version):
            raise WriteConflict("precondition", status=409)
        self.written.append(("delete", resource.kind, None))
        return stored

    def instructions(self) -> list[str]:
        """Return the teardown instructions that were written."""
        path = "/metadata/annotations/fairlead.dev~1teardown"
        patches = (operations for verb, _, operations in self.written if verb == "patch")
        return [operation["value"] for operations in patches for operation in operations if operation["path"] == path]

    def verbs(self) -> list[str]:
        return [f"{verb} {kind}" for verb, kind, _ in self.written]


@dataclass
class _Reads:
    """What the caches have, and what the API server says."""

    claims: Any
    cached: Snapshot
    is_requested: Snapshot | None

    async def gather(self, _key: Key, *, more_kinds: Any) -> Snapshot:  # noqa: ARG002 - the port has it
        return self.cached

    async def gather_live(self, _view: Snapshot) -> Snapshot | None:
        return self.is_requested

    async def abandoned(self, _key: Key) -> tuple[ObservedChild, ...]:
        return ()

    async def with_predecessors(self, seen: Snapshot) -> Snapshot:
        return seen

    async def unseen(self, _view: Snapshot) -> tuple[str, ...]:
        return ()


@dataclass
class _Prepares:
    """Returns what it was made with as rendered."""

    composed: Rendered

    def kinds(self, _claim: Object) -> frozenset[str]:
        return frozenset()

    def supported_policies(self, _view: Snapshot) -> tuple[str, ...]:
        return ("Orphan", "Snapshot", "Delete")

    async def prepare(self, seen: Snapshot) -> Prepared:
        spec: dict[str, Any] = {
            "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
            "deletionPolicies": ["Orphan", "Snapshot", "Delete"],
            "resources": [],
        }
        read = msgspec.convert(spec, CompositionSpec)
        return Prepared("c", Revision("c-1", 1, "c", spec, None), read, self.composed, seen)


async def _pass(cached: Snapshot, is_requested: Snapshot | None, composed: Rendered, kube: _Kube) -> None:
    claims = Cache(kube).informer(CLAIMS)
    kube.objects[CLAIMS, cached.key] = cached.claim

    def now() -> datetime:
        return datetime(2026, 11, 21, 12, tzinfo=UTC)

    tools: dict[str, Any] = {
        "kube": kube,
        "gatherer": _Reads(claims, cached, is_requested),
        "preparer": _Prepares(composed),
        "actor": Actor(kube, now=now, remember=lambda _facts, _obj, _over: None),
        "publisher": None,
        "passwords": None,
        "events": EventRecorder(kube, controller="c", instance="i"),
        "now": now,
        "monotonic": lambda: 0.0,
    }
    await ClaimReconciler(Tools(**tools)).reconcile(cached.key)


# Words


async def test_the_instruction_of_a_teardown_rests_on_a_fresh_read_of_the_namespace() -> None:
    known, owner, kube = ObservedChild(SENT, LIVE, DATABASE), claim(deleted=True, deletionPolicy="Delete"), _Kube()
    kube.there(LIVE)

    await _pass(
        snapshot(known, of=owner, namespace=LIVING), snapshot(known, of=owner, namespace=GOING), rendered(), kube
    )

    assert kube.instructions() == ["child-uid/Detach"]


async def test_the_instruction_for_a_child_that_leaves_the_composition_rests_on_a_fresh_read_of_the_namespace() -> None:
    owner = claim(annotations={names.CONSENT: "database=child-uid"}, deletionPolicy="Delete")
    known = (ObservedChild(SENT, LIVE, DATABASE), ObservedChild(SETTLED_SENT, SETTLED, SETTINGS))
    composed, kube = rendered(child(desired("settings", SETTINGS), "settings")), _Kube()
    kube.there(LIVE, SETTLED)

    await _pass(
        snapshot(*known, of=owner, namespace=LIVING), snapshot(*known, of=owner, namespace=GOING), composed, kube
    )
    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()

    await _pass(
        snapshot(*known, of=owner, namespace=LIVING), snapshot(*known, of=owner, namespace=LIVING), composed, kube
    )
    assert kube.instructions() == ["child-uid/Delete"]


async def test_a_claim_that_was_created_again_decides_nothing_about_the_children_of_the_former_one() -> None:
    kube = _Kube()
    cluster = Cluster(kube, Cache(kube))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    successor = claim(deleted=True)
    successor["metadata"]["uid"] = "successor-uid"
    kube.objects[CLAIMS, key_of(successor)] = successor

    assert await gatherer.gather_live(snapshot(of=claim(deleted=True))) is None


async def test_an_instruction_is_not_written_on_another_object_of_the_name() -> None:
    known, owner, kube = ObservedChild(SENT, LIVE, DATABASE), claim(deleted=True, deletionPolicy="Delete"), _Kube()
    kube.there(live(WANTED, uid="strangers-uid"))

    with pytest.raises(Conflict):
        await _pass(snapshot(known, of=owner), snapshot(known, of=owner), rendered(), kube)

    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()


async def test_a_child_is_deleted_in_the_version_that_was_seen_without_a_read() -> None:
    known, owner, kube = ObservedChild(SENT, LIVE, DATABASE), claim(deleted=True, deletionPolicy="Delete"), _Kube()
    kube.there(LIVE)

    await _pass(snapshot(known, of=owner), snapshot(known, of=owner), rendered(), kube)

    assert kube.instructions() == ["child-uid/Delete"]
    assert "delete PostgresDatabase" in kube.verbs()
    assert DATABASES.kind not in kube.reads


async def test_a_child_that_was_written_since_it_was_seen_is_decided_on_again() -> None:
    known, owner, kube = ObservedChild(SENT, LIVE, DATABASE), claim(deleted=True, deletionPolicy="Delete"), _Kube()
    kube.there({**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "newer"}})

    with pytest.raises(Conflict):
        await _pass(snapshot(known, of=owner), snapshot(known, of=owner), rendered(), kube)

    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()


# The order of a pass


def _replaced() -> tuple[Step, ...]:
    """A replacement that is made, and what it replaces."""
    made = desired("fresh", SETTINGS)
    goes = Delete(entry("settings", SETTINGS), SETTINGS, SETTLED, "", "not in the composition any more")
    return Create(entry("fresh", SETTINGS, uid=""), SETTINGS, made), goes


@pytest.mark.parametrize(
    "refusal", [Unavailable("later"), Invalid("never", status=422)], ids=["an outage", "what is refused"]
)
async def test_a_child_is_not_removed_while_its_replacement_could_not_be_created(refusal: ApiError) -> None:
    kube = _Kube(refusal=refusal)
    kube.there(SETTLED)
    actor = Actor(kube, now=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC), remember=lambda _facts, _obj, _over: None)

    outcomes = await actor.act(snapshot(), _replaced())
    assert kube.verbs() == ["create ConfigMap"]
    assert [outcome.entry.resource for outcome in outcomes if outcome.entry] == (
        ["fresh", "settings"] if isinstance(refusal, Unavailable) else ["settings"]
    )

    # What was refused is not sent again, and holds the other back all the same.
    await actor.act(snapshot(), _replaced())
    again = ["create ConfigMap"] if isinstance(refusal, Unavailable) else []
    assert kube.verbs() == ["create ConfigMap", *again]

    kube.refusal = None
    await actor.act(replace(snapshot(), claim=claim(annotations={names.RECONCILE_REQUESTED_AT: "now"})), _replaced())
    assert kube.verbs()[-1] == "delete ConfigMap"


async def test_the_status_is_written_before_an_error_fails_the_pass() -> None:
    kube = _Kube(refusal=Unavailable("later"))
    before = snapshot()

    with pytest.raises(Unavailable):
        await _pass(before, before, rendered(child(WANTED, ready=False)), kube)

    assert kube.verbs() == ["apply PostgreSQLInstance", "create PostgresDatabase", "status PostgreSQLInstance"]
    status = next(operations[-1]["value"] for verb, _, operations in kube.written if verb == "status")
    assert [record["name"] for record in status["inventory"]] == [WANTED["metadata"]["name"]]


def test_a_status_from_before_the_write_proves_nothing() -> None:
    seen = {**LIVE, "status": {"observedGeneration": 1}}
    written = {**seen, "metadata": {**LIVE["metadata"], "generation": 2}}
    composed, known = rendered(child(WANTED, ready=True)), snapshot(ObservedChild(SENT, seen, DATABASE))

    def ready(made: Object) -> bool:
        return after(known, composed, (), (Outcome(SENT, written=made),))[1].children[0].ready

    assert ready(seen)
    assert not ready(written)


# What is there


async def test_a_child_that_the_cache_lacks_is_gone_only_when_the_api_server_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its label an object is not listed, and a create without an answer may have made it."""
    kube = _Kube()
    cache = Cache(kube)
    cluster = Cluster(kube, cache)
    catalog = {DATABASES.group_kind: DATABASE}
    cluster._catalog, cluster._facts = catalog, {}
    informer = cache.informer(DATABASES)
    informer.synced.set()
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    informer.store.add_index("claim", claim_index)
    monkeypatch.setattr(cluster.watches, "listed", lambda _: informer)
    for uid in ("child-uid", ""):
        kube.objects.clear()
        owner = claim(status={"inventory": dump([entry(uid=uid)])})
        (gone,) = await gatherer._children(owner, frozenset(catalog), prove_absence=True)
        kube.there(LIVE)
        (there,) = await gatherer._children(owner, frozenset(catalog), prove_absence=True)

        assert gone.live is None
        assert there.live is not None
        assert annotations_of(there.live) == annotations_of(LIVE)
        assert there.entry.uid == "child-uid"
