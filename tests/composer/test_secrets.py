"""The publisher of connection Secrets: how little it asks, what it never touches, whom a change concerns."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field

from composer.connection import Origin, Secretly, SecretRef, Wanted, wanted
from composer.secrets import Publication, Publisher
from runtime.changes import Change, ChangeKind
from runtime.objects import SECRETS, Key, Object, dumps
from runtime.record import record_of
from tests.composer.factories import claim, desired, live
from tests.runtime.fake_kube import FakeKube
from tests.runtime.virtual_loop import run

SECRET = Key("shop", "orders-connection")
CLAIM = Key("shop", "orders")
PLAIN = {"host": "h", "port": "5432", "database": "d", "username": "u", "sslmode": "require"}
TEN_MINUTES = 600.0
OURS = "servicebinding.io/postgresql"


def _wanted(source: str = "app-login") -> Wanted:
    found = Origin(PLAIN, {"password": SecretRef(source, "password")})
    return wanted(claim(), {"from": "database"}, live(desired()), found, Secretly(SECRET, "claim-uid", owned=True))


def _encoded(**data: str) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


@dataclass
class _Scene:
    kube: FakeKube = field(default_factory=FakeKube)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.publisher = Publisher(self.kube, monotonic=lambda: self.now, manager="m")
        self.login("first")

    def login(self, password: str) -> None:
        self.kube.put(SECRETS, "app-login", namespace="shop", data=_encoded(password=password))

    async def publish(self, want: Wanted, *, known: bool = True, asked: bool = False) -> Publication:
        return await self.publisher.publish(want, known_hash=want.hash if known else "", asked=asked)

    def stored(self) -> str:
        data = self.kube.objects[SECRETS, SECRET]["data"]
        return base64.b64decode(data["password"]).decode()

    def change(self, key: Key) -> Change:
        """Return the change by which a watch tells of an object as it is now stored."""
        return _change(key, self.kube.objects[SECRETS, key])


def _change(key: Key, obj: Object | None) -> Change:
    after = record_of(dumps(obj), SECRETS, {}) if obj else None
    return Change(key, ChangeKind.MODIFIED if obj else ChangeKind.DELETED, None, after)


def test_it_is_written_once_and_looked_at_again_after_ten_minutes_or_when_asked() -> None:
    async def scene() -> list[bool]:
        at = _Scene()
        found = [(await at.publish(_wanted(), known=False)).changed]
        at.login("second")
        found.append((await at.publish(_wanted())).changed)
        at.now += TEN_MINUTES
        found.append((await at.publish(_wanted())).changed)
        at.login("third")
        found.append((await at.publish(_wanted(), asked=True)).changed)
        assert at.stored() == "third"
        return found

    assert run(scene()) == [True, False, True, True]


def test_what_is_not_there_to_copy_is_named_and_nothing_is_written() -> None:
    async def scene() -> tuple[str, str, bool]:
        at = _Scene()
        publication = await at.publish(_wanted("nowhere"), known=False)
        assert publication.problem is not None
        return publication.problem.reason, publication.problem.message, (SECRETS, SECRET) in at.kube.objects

    reason, message, is_there = run(scene())

    assert reason == "SecretNotFound"
    assert "Secret nowhere has no key 'password'" in message
    assert not is_there


def test_a_strangers_secret_is_left_alone() -> None:
    async def scene() -> str:
        at = _Scene()
        at.kube.put(SECRETS, SECRET.name, namespace="shop", data=_encoded(password="mine"), type="Opaque")
        publication = await at.publish(_wanted(), known=False)
        assert at.stored() == "mine"
        return publication.problem.reason if publication.problem else ""

    assert run(scene()) == "SecretNotOwned"


def test_a_secret_that_somebody_changed_concerns_its_claim_and_our_own_write_nobody() -> None:
    async def scene() -> list[tuple[Key, ...]]:
        at = _Scene()
        await at.publish(_wanted(), known=False)
        concerned = at.publisher.concerned
        found = [concerned(at.change(SECRET))]
        at.kube.put(SECRETS, SECRET.name, namespace="shop", data=_encoded(password="edited"), type=OURS)
        found.append(concerned(at.change(SECRET)))
        assert (await at.publish(_wanted())).changed
        found += [concerned(at.change(SECRET)), concerned(_change(SECRET, None))]
        at.login("second")
        found.append(concerned(at.change(Key("shop", "app-login"))))
        found.append(concerned(_change(Key("shop", "of-another"), None)))
        at.publisher.forget(SECRET)
        found.append(concerned(_change(SECRET, None)))
        return found

    assert run(scene()) == [(), (CLAIM,), (), (CLAIM,), (CLAIM,), (), ()]


def test_another_source_is_listened_to_in_the_place_of_the_first() -> None:
    async def scene() -> list[tuple[Key, ...]]:
        at = _Scene()
        at.kube.put(SECRETS, "other-login", namespace="shop", data=_encoded(password="x"))
        await at.publish(_wanted(), known=False)
        await at.publish(_wanted("other-login"))
        await asyncio.sleep(0)
        names = ("app-login", "other-login")
        return [at.publisher.concerned(_change(Key("shop", name), None)) for name in names]

    assert run(scene()) == [(), (CLAIM,)]


def test_bytes_that_are_no_text_are_a_missing_key_in_words() -> None:
    scene = _Scene()
    scene.kube.put(SECRETS, "app-login", namespace="shop", data={"password": base64.b64encode(b"\xff\xfe").decode()})

    publication = run(scene.publish(_wanted(), known=False))

    assert publication.problem is not None
    assert publication.problem.reason == "SecretNotFound"
    assert publication.problem.message == "Secret app-login has no key 'password' with a text to copy yet"
    assert list(scene.kube.objects) == [(SECRETS, Key("shop", "app-login"))]
