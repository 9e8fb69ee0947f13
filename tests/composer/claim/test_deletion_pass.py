"""Passes over a claim that is being deleted: on which reads and answers they rest, and what they do not read."""

from __future__ import annotations

import pytest

from composer.claim.gather import Gatherer
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.cluster import Cluster
from runtime.cache import Cache
from runtime.errors import WriteConflict
from runtime.objects import Object, dumps, key_of
from tests.composer.claim.passes import LoggedKube, Reads, reconciler
from tests.composer.factories import CLAIMS, claim, rendered, snapshot

LIVING: Object = {"metadata": {"name": "shop", "labels": {}}}


def _deleted() -> Object:
    return claim(deleted=True, deletionPolicy="Delete")


def _in_version(of: Object, version: str, **spec: object) -> Object:
    return {**of, "metadata": {**of["metadata"], "resourceVersion": version}, "spec": {**of["spec"], **spec}}


def _seen(of: Object, *children: ObservedChild) -> Snapshot:
    return snapshot(*children, of=of, namespace=LIVING)


@pytest.mark.parametrize(
    ("stored", "is_same"),
    [
        (_deleted(), True),
        (_in_version(_deleted(), "8"), False),
        ({**_deleted(), "metadata": {**_deleted()["metadata"], "uid": "successor-uid"}}, False),
        (None, False),
    ],
)
async def test_a_claim_is_as_it_was_seen_only_in_the_same_version(stored: Object | None, *, is_same: bool) -> None:
    kube = LoggedKube()
    cluster = Cluster(kube, Cache(kube))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    if stored:
        kube.objects[CLAIMS, key_of(stored)] = stored

    if is_same:
        await gatherer.check_version(snapshot(of=_deleted()))
        return
    with pytest.raises(WriteConflict):
        await gatherer.check_version(snapshot(of=_deleted()))


async def test_a_claim_whose_finalizer_was_removed_is_not_deleted_twice_while_its_watch_is_behind() -> None:
    kube = LoggedKube()
    seen = _seen(_deleted())
    reads = Reads(Cache(kube).informer(CLAIMS), seen, seen)
    reads.claims.store.apply_event("ADDED", dumps(seen.claim))
    without = {**seen.claim, "metadata": {**seen.claim["metadata"], "finalizers": []}}
    kube.objects[CLAIMS, seen.key] = without

    await reconciler(reads, rendered(), kube, lambda: 0.0).reconcile(seen.key)

    assert kube.verbs() == ["patch PostgreSQLInstance"]
    assert reads.claims.store.get(seen.key) is None
