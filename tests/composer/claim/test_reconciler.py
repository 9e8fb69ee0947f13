"""Whole passes over a claim: on which reads its instructions rest, and in which order it writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from apis import names
from composer.claim.act import Actor
from composer.claim.decide import Create, Delete, Step
from composer.claim.gather import Gatherer
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import dump
from composer.kinds.cluster import Cluster
from composer.kinds.informers import claim_index
from runtime.cache import Cache
from runtime.errors import ApiError, Conflict, Invalid, Unavailable
from runtime.objects import Object, annotations_of, key_of
from tests.composer.claim.passes import LoggedKube, make_pass
from tests.composer.factories import (
    CLAIMS,
    DATABASE,
    DATABASES,
    NOW,
    RULES,
    SETTINGS,
    child,
    claim,
    desired,
    entry,
    live,
    rendered,
    sent,
    snapshot,
)

LIVING: Object = {"metadata": {"name": "shop", "labels": {}}}
GOING: Object = {"metadata": {"name": "shop", "labels": {}, "deletionTimestamp": NOW}}
WANTED = desired()
LIVE = live(WANTED)
SENT = sent(WANTED, LIVE)
SETTLED = live(desired("settings", SETTINGS), uid="settings-uid")
SETTLED_SENT = sent(desired("settings", SETTINGS), SETTLED)


def _going(namespace: Object = LIVING) -> Snapshot:
    """Return what is seen of a claim that is being deleted, with its one child."""
    owner = claim(deleted=True, deletionPolicy="Delete")
    return snapshot(ObservedChild(SENT, LIVE, DATABASE), of=owner, namespace=namespace)


def _kube(*stored: Object) -> LoggedKube:
    kube = LoggedKube()
    kube.there(*stored)
    return kube


# Words


async def test_the_instruction_for_a_child_that_leaves_the_composition_rests_on_a_fresh_read_of_the_namespace() -> None:
    owner = claim(annotations={names.CONSENT: "database=child-uid"}, deletionPolicy="Delete")
    known = (ObservedChild(SENT, LIVE, DATABASE), ObservedChild(SETTLED_SENT, SETTLED, SETTINGS))
    composed, kube = rendered(child(desired("settings", SETTINGS), "settings")), _kube(LIVE, SETTLED)
    seen = snapshot(*known, of=owner, namespace=LIVING)

    await make_pass(seen, snapshot(*known, of=owner, namespace=GOING), composed, kube)
    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()

    await make_pass(seen, seen, composed, kube)
    assert kube.instructions() == ["child-uid/Delete"]


async def test_a_claim_that_was_created_again_decides_nothing_about_the_children_of_the_former_one() -> None:
    kube = LoggedKube()
    cluster = Cluster(kube, Cache(kube))
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    successor = claim(deleted=True)
    successor["metadata"]["uid"] = "successor-uid"
    kube.objects[CLAIMS, key_of(successor)] = successor

    assert await gatherer.gather_live(snapshot(of=claim(deleted=True))) is None


@pytest.mark.parametrize(
    "stored",
    [live(WANTED, uid="strangers-uid"), {**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "newer"}}],
    ids=["another object of the name", "it was written since"],
)
async def test_a_child_that_is_not_as_it_was_seen_gets_no_instruction(stored: Object) -> None:
    kube = _kube(stored)

    with pytest.raises(Conflict):
        await make_pass(_going(), _going(), rendered(), kube)

    assert kube.instructions() == []
    assert "delete PostgresDatabase" not in kube.verbs()


# The order of a pass


def _replaced() -> tuple[Step, ...]:
    """A replacement that is made, and what it replaces."""
    made = desired("fresh", SETTINGS)
    del made["spec"]
    goes = Delete(entry("settings", SETTINGS), SETTINGS, SETTLED, "", "not in the composition any more")
    return Create(entry("fresh", SETTINGS, uid=""), SETTINGS, made), goes


@pytest.mark.parametrize(
    "refusal", [Unavailable("later"), Invalid("never", status=422)], ids=["an outage", "what is refused"]
)
async def test_a_child_is_not_removed_while_its_replacement_could_not_be_created(refusal: ApiError) -> None:
    kube = LoggedKube(refusal=refusal)
    kube.there(SETTLED)
    actor = Actor(kube, now=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC), remember=lambda _facts, _obj, _over: None)

    again = ["create ConfigMap"] if isinstance(refusal, Unavailable) else []
    outcomes = await actor.act(snapshot(), _replaced())
    assert kube.verbs() == ["create ConfigMap"]
    assert [outcome.entry.resource for outcome in outcomes if outcome.entry] == (
        ["fresh", "settings"] if isinstance(refusal, Unavailable) else ["settings"]
    )

    # A rule goes all the same.
    rule = live(desired("rule", RULES))
    kube.objects[RULES.resource, key_of(rule)] = rule
    await actor.act(snapshot(), (*_replaced(), Delete(entry("rule", RULES), RULES, rule, "", "not wanted any more")))
    assert kube.verbs()[1:] == [*again, "delete FlexibleServerFirewallRule"]
    kube.written.clear()

    # What was refused is not sent again, and holds the other back all the same.
    await actor.act(snapshot(), _replaced())
    assert kube.verbs() == again

    kube.refusal = None
    await actor.act(replace(snapshot(), claim=claim(annotations={names.RECONCILE_REQUESTED_AT: "now"})), _replaced())
    assert kube.verbs()[-1] == "delete ConfigMap"


# What is there


async def test_a_child_that_the_cache_lacks_is_gone_only_when_the_api_server_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its label an object is not listed, and a create without an answer may have made it."""
    kube = LoggedKube()
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
