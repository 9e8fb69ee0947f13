"""Which children being deleted are abandoned: those whose claim is gone, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from apis import names
from composer.claim.gather import Gatherer
from composer.kinds.cluster import Cluster
from runtime.cache import Cache
from runtime.objects import CRDS, Key, Object
from tests.composer.factories import CLAIMS, DATABASES, claim, desired, live
from tests.support.memory_kube import MemoryKube
from tests.support.waiting import in_background

KEY = Key("shop", "orders")
OWNER = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "name": "orders", "uid": "claim-uid"}
MINE = names.claim_manager(CLAIMS.group, CLAIMS.kind, KEY)
_VERSION = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
_CRD: dict[str, Any] = {
    "group": DATABASES.group,
    "scope": "Namespaced",
    "names": {"kind": DATABASES.kind, "plural": DATABASES.plural},
    "versions": [_VERSION],
}


def _child(*, label: str = "claim-uid", owners: tuple[Object, ...] = (OWNER,), deleted: bool = True) -> Object:
    stored = live(desired(), deleted=deleted, ownerReferences=list(owners), finalizers=["someone.example.org/keeps"])
    stored["metadata"]["labels"] = {names.CLAIM_LABEL: label}
    return stored


async def _abandoned(child: Object, *, now: Object | None, wrote: str = MINE) -> list[str]:
    """Return the names of the children that are abandoned; `now`: the claim as the API server has it."""
    kube = MemoryKube()
    kube.put(CRDS, f"{DATABASES.plural}.{DATABASES.group}", namespace="", spec=_CRD)
    meta = {**child["metadata"], "managedFields": [{"manager": wrote}]}
    kube.put(DATABASES, meta["name"], namespace="shop", metadata=meta, spec={})
    if now is not None:
        kube.put(CLAIMS, "orders", namespace="shop", metadata=now["metadata"], spec={}, status=now["status"])
    cache = Cache(kube)
    cluster = Cluster(kube, cache)
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    async with in_background(cache.run()):
        await cache.wait_synced()
        assert await cluster.watches.unlisted([DATABASES]) == ()
        return [abandoned.entry.name for abandoned in await gatherer.abandoned(KEY)]


def _successor() -> Object:
    owner = claim()
    owner["metadata"] |= {"uid": "successor-uid", "annotations": {names.IDENTITY: "successor-uid@shop/orders"}}
    return owner


def _restored() -> Object:
    owner = claim()
    owner["metadata"] |= {"uid": "restored-uid", "annotations": {names.IDENTITY: "claim-uid@shop/orders"}}
    return owner


def _instructed() -> Object:
    stored = _child()
    stored["metadata"]["annotations"] |= {names.TEARDOWN: "child-uid/Delete"}
    return stored


@pytest.mark.parametrize(
    ("child", "now", "is_abandoned"),
    [
        pytest.param(_child(), None, True, id="its claim is gone"),
        pytest.param(_child(deleted=False), None, False, id="it is not going"),
        pytest.param(_instructed(), None, False, id="it has its instruction"),
        pytest.param(_child(), claim(), False, id="its claim is there"),
        pytest.param(_child(), _successor(), True, id="another claim has the name"),
        pytest.param(_child(), _restored(), False, id="its claim was restored"),
        pytest.param(
            _child(owners=({**OWNER, "apiVersion": "other.example.org/v1"},)),
            None,
            False,
            id="it is of a namesake kind of another group",
        ),
        pytest.param(_child(owners=({**OWNER, "kind": "Other"},)), None, False, id="it is of another kind"),
        pytest.param(_child(owners=()), None, True, id="it names no owner, and was written for this claim"),
        pytest.param(_child(owners=()), _successor(), True, id="it names no owner, and another claim has the name"),
    ],
)
async def test_a_child_being_deleted_is_abandoned_when_its_claim_is_gone(
    child: Object, now: Object | None, *, is_abandoned: bool
) -> None:
    assert await _abandoned(child, now=now) == ([child["metadata"]["name"]] if is_abandoned else [])
