"""The connection Secret of a claim in its passes: its name, the Secret of a former name, what is an event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis import names
from composer.claim.compose import Prepared
from composer.claim.connection import Followed, connect, follow
from composer.claim.outcomes import Connected
from composer.composition.revision import Revision
from composer.models import CompositionSpec
from composer.render.render import Waiting
from fairlead.simulation.virtual_time import VirtualLoop
from runtime.objects import SECRETS, Key, Object
from tests.composer.connection.world import OURS, PLAIN, SECRET, World, encoded, published
from tests.composer.factories import child, claim, desired, live, observed, rendered, snapshot

LOOP = VirtualLoop

PASSWORD = {"name": "app-login", "key": "password", "hash": "h"}
CONNECTION = {**PLAIN, "port": 5432, "passwordRef": PASSWORD}
SPEC: dict[str, Any] = {
    "compositeTypeRef": {"apiVersion": "a/v1", "kind": "K"},
    "resources": [],
    "deletionPolicies": ["Delete"],
}
SOURCE = observed(stored={**live(desired()), "status": {"connection": CONNECTION}})


async def _connected(at: World, owner: Object) -> Connected:
    """Connect a claim to its database as a pass does."""
    composed = rendered(child(desired(), ready=True), connection={"from": "database", "pooler": "p"})
    revision, read = Revision("c-1", 1, "c", SPEC, None), msgspec.convert(SPEC, CompositionSpec)
    return await connect(at.publisher, snapshot(SOURCE, of=owner), Prepared("c", revision, read, composed, snapshot()))


@pytest.mark.parametrize(
    ("type_", "label", "is_left"),
    [(OURS, "claim-uid", False), (OURS, "other-uid", True), ("Opaque", "claim-uid", True)],
    ids=["ours", "another claim's", "a stranger's"],
)
async def test_the_secret_of_the_former_name_is_deleted_once_the_new_one_is_there(
    type_: str, label: str, *, is_left: bool
) -> None:
    former = Key("shop", "former")
    owner = claim(connectionSecretName="renamed", status={"binding": {"name": "former"}, "connectionHash": "old"})

    at = World()
    meta = {"labels": {names.CLAIM_LABEL: label}}
    at.kube.put(SECRETS, former.name, namespace="shop", metadata=meta, type=type_, data=encoded(password="old"))
    # A process that stops before the status is written does it once more.
    first, connected = await _connected(at, owner), await _connected(at, owner)
    assert connected.causes == ()
    assert (SECRETS, Key("shop", "renamed")) in at.kube.objects
    moved = [note for note in (*first.notes, *connected.notes) if note.reason == "ConnectionMoved"]
    secret, stays, writes = connected.secret, (SECRETS, former) in at.kube.objects, at.kube.writes

    assert (secret, stays) == ("renamed", is_left)
    assert {verb for verb, _ in writes} == ({"create"} if is_left else {"create", "delete"})
    # One event names both, for those who use the former one.
    assert [("former is deleted" in note.message, "renamed" in note.message, note.is_warning) for note in moved] == (
        [] if is_left else [(True, True, True)]
    )


@pytest.mark.parametrize("declared", [{"from": "database", "pooler": "p"}, None], ids=["as composed", "revision gone"])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_claim_that_cannot_be_composed_has_the_login_that_its_child_publishes(
    declared: Object | None, *, is_restarted: bool
) -> None:
    at = World()
    await _connected(at, claim())
    at = World(at.kube) if is_restarted else at
    at.login("second")
    spec = msgspec.convert({**SPEC, "connection": declared}, CompositionSpec) if declared else None
    moved = {**CONNECTION, "host": "moved", "passwordRef": {**PASSWORD, "hash": "h2"}}
    rotated = observed(stored={**live(desired()), "status": {"connection": moved}})
    seen = snapshot(rotated, of=claim(status={"binding": {"name": SECRET.name}}))

    if spec and not is_restarted:
        # A rendered claim whose database waits for something is no other one.
        waits = rendered(waiting=(Waiting("database", "network", "p"),), connection={"from": "database"})
        revision = Revision("c-1", 1, "c", SPEC, None)
        connected = await connect(at.publisher, seen, Prepared("c", revision, spec, waits, seen))
        assert (connected.causes, len(connected.notes), at.stored()) == ((), 1, "second")
        at.login("first")
        await follow(at.publisher, replace(seen, children=(SOURCE,)), spec)
        at.login("second")
    first, again = [await follow(at.publisher, seen, spec) for _ in range(2)]
    data, reads = at.kube.objects[SECRETS, SECRET]["data"], len(at.kube.reads)
    await follow(at.publisher, seen, spec)

    assert (first.lost, again, at.stored(), len(at.kube.reads)) == (None, Followed(), "second", reads)
    assert [note.reason for note in first.notes] == ["ConnectionPublished"]
    uri = "postgresql://u:second@moved:5432/d?sslmode=require"
    assert data.items() >= encoded(host="moved", pooler="p", uri=uri).items()

    del at.kube.objects[SECRETS, Key("shop", "app-login")]
    lost = observed(stored={**live(desired()), "status": {"connection": CONNECTION}})
    why = (await follow(at.publisher, replace(seen, children=(lost,)), spec)).lost
    assert why
    assert why.reason == "SecretNotFound"


@pytest.mark.parametrize(("is_restarted", "password"), [(False, "second"), (True, "first")])
async def test_the_secret_of_an_operator_is_followed_by_the_process_that_published_it(
    password: str, *, is_restarted: bool
) -> None:
    at, declared = World(), {"secretRef": {"resource": "database", "name": "{{ 'app-login' }}", "keys": {}}}
    await at.publish(published(declared=declared), known=False)
    at.login("second")
    spec = msgspec.convert({**SPEC, "connection": declared}, CompositionSpec)
    newer = observed(stored=live(desired(), resourceVersion="10"))
    seen = snapshot(newer, of=claim(status={"binding": {"name": SECRET.name}}))

    at = World(at.kube) if is_restarted else at
    assert (await follow(at.publisher, seen, spec)).lost is None
    assert at.stored() == password
