"""The publisher of connection Secrets: how little it asks, what it never touches, whom a change concerns."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from composer.connection.secret import Wanted
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

# What a Composition declares of the Secret of another operator.
DECLARED = {"secretRef": {"resource": "database", "name": "app-login", "keys": {"password": "password"}}}


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


async def test_another_source_is_watched_in_the_place_of_the_first() -> None:
    at = World()
    at.kube.put(SECRETS, "other-login", namespace="shop", data=encoded(password="x"))
    await at.publish(published(), known=False)
    await at.publish(published("other-login"))
    await asyncio.sleep(0)
    names = ("app-login", "other-login")

    assert [at.publisher.concerned(change_of(Key("shop", name), None)) for name in names] == [(), (CLAIM,)]


@pytest.mark.parametrize(
    ("resync", "passes_at"),
    [(600, (590,)), (600, (1, 2, 599)), (60, (59,)), (86_400, (300,))],
    ids=["ten minutes", "many passes", "a minute", "a day"],
)
async def test_a_changed_source_is_published_within_one_resync_whatever_passes_lie_between(
    resync: int, passes_at: tuple[int, ...]
) -> None:
    """A pass that does not look at the Secret says when the next one must."""

    at = World(resync=timedelta(seconds=resync))
    await at.publish(published(), known=False)
    at.login("second")
    pauses = []
    for moment in passes_at:
        at.now = moment
        pauses.append((await at.publish(published())).again)
    if at.stored() == "first":
        at.now += (pauses[-1] or timedelta(seconds=resync)).total_seconds()
        await at.publish(published())
    assert at.stored() == "second"

    assert at.now <= resync


async def test_a_source_that_was_created_again_is_read_at_once() -> None:
    """The operator that made it has given it another password, and no status shows it."""

    def foreign(uid: str) -> Wanted:
        return published(declared=DECLARED, of=live(desired(), uid=uid))

    at = World()
    before = foreign("first-uid")
    await at.publish(before, known=False)
    at.login("second")
    await at.publisher.publish(foreign("second-uid"), known_hash=before.hash, is_requested=False)

    assert at.stored() == "second"


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


async def test_a_missing_source_is_read_again_soon_and_then_less_and_less_often() -> None:
    at, reads = World(), list[float]()
    while at.now < TEN_MINUTES:
        publication = await at.publish(published("nowhere"))
        assert publication.again is not None
        reads.append(at.now)
        at.now += publication.again.total_seconds()
    at.kube.put(SECRETS, "nowhere", namespace="shop", data=encoded(password="back"))
    assert (await at.publish(published("nowhere"))).changed

    assert reads == [0, 2, 4, 8, 16, 32, 64, 128, 256, 512]


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


async def test_a_connection_secret_that_is_there_is_renewed_by_a_read() -> None:
    at = World()
    at.watched[Key("shop", "app-login")] = _watched(CHILD_CREATED, password="old")
    await at.publish(OF_NEW_CHILD, known=False)
    at.login("new")
    await at.publish(OF_NEW_CHILD, is_requested=True)

    assert at.stored() == "new"


async def test_a_watched_secret_of_another_login_publishes_nothing() -> None:
    at = World()
    at.watched[Key("shop", "app-login")] = _watched(CHILD_CREATED, login="u_b", password="seen")
    publication = await at.publish(OF_NEW_CHILD, known=False)
    assert (SECRETS, SECRET) not in at.kube.objects

    assert (publication.problem.reason if publication.problem else "") == "ConnectionIncomplete"
