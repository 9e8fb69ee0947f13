"""Passes over a claim that is being deleted: on which reads and answers they rest, and what they do not read."""

from __future__ import annotations

import pytest

from composer.claim.gather import Gatherer
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.cluster import Cluster
from runtime.cache import Cache
from runtime.errors import WriteConflict
from runtime.objects import Object, key_of
from tests.composer.claim.passes import LoggedKube, Reads, make_pass, reconciler
from tests.composer.factories import CLAIMS, DATABASE, claim, desired, live, rendered, sent, snapshot

LIVING: Object = {"metadata": {"name": "shop", "labels": {}}}
WANTED = desired()
LIVE = live(WANTED)
CHILD = ObservedChild(sent(WANTED, LIVE), LIVE, DATABASE)


def _deleted() -> Object:
    return claim(deleted=True, deletionPolicy="Delete")


def _in_version(of: Object, version: str, **spec: object) -> Object:
    return {**of, "metadata": {**of["metadata"], "resourceVersion": version}, "spec": {**of["spec"], **spec}}


def _kube(*, is_held: bool = True) -> LoggedKube:
    kube = LoggedKube(is_held=is_held)
    kube.there(LIVE)
    return kube


def _seen(of: Object, *children: ObservedChild) -> Snapshot:
    return snapshot(*children, of=of, namespace=LIVING)


async def _pass_over_protected(cached: Object) -> LoggedKube:
    """Make a pass over a claim that was protected since the cache saw it."""
    kube, protected = _kube(), _in_version(cached, "8", deletionProtection=True)
    reads = Reads(Cache(kube).informer(CLAIMS), _seen(cached, CHILD), _seen(protected, CHILD))
    kube.objects[CLAIMS, key_of(protected)] = protected
    await reconciler(reads, rendered(), kube, lambda: 0.0).reconcile(key_of(cached))
    return kube


async def test_a_protection_that_the_cache_has_not_seen_is_obeyed() -> None:
    kube = await _pass_over_protected(_deleted())

    assert kube.instructions() == []
    assert kube.verbs() == ["status PostgreSQLInstance"]


async def test_where_nothing_is_to_be_recorded_the_claim_is_read_before_a_child_is_deleted() -> None:
    recording, before = _kube(), _seen(_deleted(), CHILD)
    await make_pass(before, before, rendered(), recording)
    status = next(operations[-1]["value"] for verb, _, operations in recording.written if verb == "status")

    kube = await _pass_over_protected({**_deleted(), "status": status})

    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()


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
