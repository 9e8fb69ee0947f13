"""The publisher of connection Secrets: how little it asks, what it never touches, whom a change concerns."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.objects import SECRETS, Key, Object
from tests.composer.connection.world import (
    CLAIM,
    OURS,
    SECRET,
    TEN_MINUTES,
    World,
    change_of,
    encoded,
    published,
)
from tests.composer.factories import desired, live

LOOP = VirtualLoop


async def test_a_foreign_secret_is_not_touched() -> None:
    at = World()
    at.kube.put(SECRETS, SECRET.name, namespace="shop", data=encoded(password="mine"), type="Opaque")
    publication = await at.publish(published(), known=False)
    assert at.stored() == "mine"

    assert (publication.problem.reason if publication.problem else "") == "SecretNotOwned"


async def test_a_secret_that_somebody_made_immutable_is_made_again() -> None:
    at = World()
    await at.publish(published(), known=False)
    stored = at.kube.objects[SECRETS, SECRET]
    labels = {**stored["metadata"]["labels"], "team": "own"}
    changed = {**stored, "immutable": True, "metadata": {**stored["metadata"], "labels": labels}}
    await at.kube.replace(SECRETS, changed, manager="kubectl")
    at.login("second")
    publication = await at.publish(published(), is_requested=True)

    made = at.kube.objects[SECRETS, SECRET]
    assert (publication.changed, at.stored(), made.get("immutable")) == (True, "second", None)
    assert made["metadata"]["uid"] != stored["metadata"]["uid"]
    assert made["metadata"]["labels"]["team"] == "own"


async def test_a_secret_that_somebody_changed_concerns_its_claim_and_our_own_write_nobody() -> None:
    at = World()
    await at.publish(published(), known=False)
    concerned = at.publisher.concerned
    claims = [concerned(at.change(SECRET))]
    at.kube.put(SECRETS, SECRET.name, namespace="shop", data=encoded(password="edited"), type=OURS)
    claims.append(concerned(at.change(SECRET)))
    assert (await at.publish(published())).changed
    claims += [concerned(at.change(SECRET)), concerned(change_of(SECRET, None))]
    at.login("second")
    claims.append(concerned(at.change(Key("shop", "app-login"))))
    claims.append(concerned(change_of(Key("shop", "of-another"), None)))
    at.publisher.forget(SECRET)
    claims.append(concerned(change_of(SECRET, None)))

    assert claims == [(), (CLAIM,), (), (CLAIM,), (CLAIM,), (), ()]


async def test_the_memory_of_a_claim_that_is_gone_is_dropped() -> None:
    """Its finalizer may have been removed by force, and then nobody disowned its Secret."""

    at = World()
    await at.publish(published(), known=False)
    before = at.publisher.concerned(change_of(SECRET, None))
    at.publisher.forget_claim(Key("shop", "another"))
    between = at.publisher.concerned(change_of(SECRET, None))
    at.publisher.forget_claim(CLAIM)

    assert [before, between, at.publisher.concerned(change_of(SECRET, None))] == [(CLAIM,), (CLAIM,), ()]


async def test_a_published_secret_is_read_once_a_resync_and_its_loss_is_reported() -> None:
    at, reasons = World(resync=timedelta(seconds=60)), list[str]()

    async def look(*, is_requested: bool = False) -> None:
        problem = await at.publisher.look(SECRET, "claim-uid", is_requested=is_requested)
        reasons.append(problem.reason if problem else "")

    await at.publish(published(), known=False)
    del at.kube.objects[SECRETS, SECRET]
    await look()
    await look(is_requested=True)
    await look()
    at.now += 60
    await look()
    await at.publish(published())
    at.now += 60
    await look()
    at.kube.put(SECRETS, SECRET.name, namespace="shop", data=encoded(password="mine"), type="Opaque")
    await look()
    at.now += 60
    await look()

    assert reasons == ["", "SecretNotFound", "SecretNotFound", "SecretNotFound", "", "", "SecretNotOwned"]


@pytest.mark.parametrize(
    ("owned", "later", "reads"),
    [
        (False, 0.0, 0),  # seen without an owner a moment ago: it stays as it is
        (False, TEN_MINUTES, 1),  # too long ago
        (True, 0.0, 1),  # its owner has to go
    ],
)
async def test_a_secret_that_is_kept_is_read_unless_it_was_seen_lately_without_an_owner(
    later: float, reads: int, *, owned: bool
) -> None:
    want = published(owned=owned)

    at = World()
    await at.publish(want, known=False)
    at.now += later
    before = len(at.kube.reads)
    await at.publisher.disown(SECRET, "claim-uid", keep=True, collected_with="claim-uid")
    assert at.kube.objects[SECRETS, SECRET]["metadata"].get("ownerReferences") in (None, [])

    assert len(at.kube.reads) - before == reads


CHILD_CREATED = "2026-11-21T12:00:00Z"
OF_NEW_CHILD = published(of=live(desired(), creationTimestamp=CHILD_CREATED), owned=False)


def _watched(created: str, *, login: str = "u", **data: str) -> Object:
    meta = {"name": "app-login", "namespace": "shop", "creationTimestamp": created}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "fairlead.dev/credentials",
        "metadata": meta,
        "data": encoded(username=login, **data),
    }


@pytest.mark.parametrize(
    ("watched", "reads", "password"),
    [
        (None, 1, "stored"),
        (_watched("2026-11-21T12:00:00Z", password="seen"), 0, "seen"),
        (_watched("2026-11-21T12:00:01Z", password="seen"), 0, "seen"),
        (_watched("2026-11-21T11:59:59Z", password="seen"), 1, "stored"),  # an earlier child's
        (_watched("2026-11-21T12:00:01Z", password=""), 1, "stored"),  # its password is not accepted yet
    ],
)
async def test_the_first_secret_is_made_of_a_watched_one_that_was_made_for_its_child(
    watched: Object | None, reads: int, password: str
) -> None:
    at = World()
    at.login("stored")
    if watched:
        at.watched[Key("shop", "app-login")] = watched
    await at.publish(OF_NEW_CHILD, known=False)

    assert (len(at.kube.reads), at.stored()) == (reads, password)


async def test_a_watched_secret_of_another_login_publishes_nothing() -> None:
    at = World()
    at.watched[Key("shop", "app-login")] = _watched(CHILD_CREATED, login="u_b", password="seen")
    publication = await at.publish(OF_NEW_CHILD, known=False)
    assert (SECRETS, SECRET) not in at.kube.objects

    assert (publication.problem.reason if publication.problem else "") == "ConnectionIncomplete"
