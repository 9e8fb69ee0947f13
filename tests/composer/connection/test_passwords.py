"""Passwords that the composer makes: each once, never a second in its place, another one for each rotation token."""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from apis.connection import PasswordRecord
from apis.identity import Identity
from composer.connection.passwords import (
    KeptPasswords,
    PasswordKeeper,
    WantedPassword,
    recorded,
    wanted_passwords,
)
from composer.render.passwords import secret_name, secret_names
from runtime.objects import SECRETS, Key, Object
from tests.composer.factories import IDENTITY, claim
from tests.support.memory_kube import MemoryKube

FIRST = Key("shop", "orders-password-admin-first")
SECOND = Key("shop", "orders-password-admin-second")
THIRD = Key("shop", "orders-password-admin-third")


@dataclass
class _World:
    kube: MemoryKube = field(default_factory=MemoryKube)
    now: float = 0.0
    resync: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        self.keeper = self.restarted()

    def restarted(self) -> PasswordKeeper:
        return PasswordKeeper(self.kube, monotonic=lambda: self.now, manager="m", resync=self.resync)

    def keep(
        self, secret: Key, *records: PasswordRecord, is_made: bool | None = None, is_requested: bool = False
    ) -> KeptPasswords:
        """Keep the one password `admin`; it is made before where a record says so."""
        record = next(iter(records), None)
        known = record is not None and record.secret == secret.name if is_made is None else is_made
        former = "" if record is None else record.former if record.secret == secret.name else record.secret
        wanted = WantedPassword("admin", secret, "claim-uid", known, former)
        return asyncio.run(self.keeper.keep([wanted], records, is_requested=is_requested))

    def password(self, secret: Key) -> str:
        return base64.b64decode(self.kube.objects[SECRETS, secret]["data"]["password"]).decode()


def _record(secret: Key, former: str = "") -> PasswordRecord:
    return PasswordRecord("admin", secret.name, former)


def test_a_password_whose_record_a_crash_prevented_is_taken_as_it_is() -> None:
    world = _World()
    world.keep(FIRST)
    made = world.password(FIRST)
    world.keeper = world.restarted()

    kept = world.keep(FIRST)

    assert kept == KeptPasswords((_record(FIRST),), is_new=True)
    assert world.password(FIRST) == made
    assert len(world.kube.objects) == 1


@pytest.mark.parametrize("records", [(_record(FIRST),), ()], ids=["recorded", "named by a child alone"])
def test_a_password_that_is_gone_is_never_made_again(records: tuple[PasswordRecord, ...]) -> None:
    world = _World()

    kept = world.keep(FIRST, *records, is_made=True)

    (why,) = kept.causes
    assert why.reason == "PasswordUnknown"
    assert FIRST.name in why.message
    assert kept.records == (_record(FIRST),)
    assert world.kube.objects == {}


def test_two_rotations_in_a_row_leave_the_last_two_passwords() -> None:
    world = _World()
    first = world.keep(FIRST)
    second = world.keep(SECOND, *first.records)
    third = world.keep(THIRD, *second.records)

    assert third.records == (_record(THIRD, SECOND.name),)
    assert {key for _, key in world.kube.objects} == {SECOND, THIRD}


def test_a_token_that_is_taken_back_finds_its_password_again() -> None:
    world = _World()
    first = world.keep(FIRST)
    made = world.password(FIRST)
    second = world.keep(SECOND, *first.records)

    back = world.keep(FIRST, *second.records)

    assert back.records == (_record(FIRST, SECOND.name),)
    assert world.password(FIRST) == made


def test_a_password_is_looked_for_once_a_resync_or_on_request_or_when_it_changed() -> None:
    world = _World()
    records = world.keep(FIRST).records
    del world.kube.objects[SECRETS, FIRST]

    assert world.keep(FIRST, *records).causes == ()
    assert len(world.keep(FIRST, *records, is_requested=True).causes) == 1
    world.kube.objects.clear()

    world = _World()
    records = world.keep(FIRST).records
    del world.kube.objects[SECRETS, FIRST]
    world.keeper.forget(FIRST)
    assert len(world.keep(FIRST, *records).causes) == 1

    world = _World()
    records = world.keep(FIRST).records
    del world.kube.objects[SECRETS, FIRST]
    world.now = 600.0
    assert len(world.keep(FIRST, *records).causes) == 1


def test_another_owners_secret_of_that_name_is_not_touched() -> None:
    world = _World()
    world.kube.put(SECRETS, FIRST.name, namespace="shop", data={"password": "eA=="}, type="Opaque")

    kept = world.keep(FIRST)
    asyncio.run(world.keeper.drop(FIRST, "claim-uid"))

    assert [why.reason for why in kept.causes] == ["SecretNotOwned"]
    assert kept.records == ()
    assert world.password(FIRST) == "x"


def test_a_password_is_deleted_for_its_claim_alone() -> None:
    world = _World()
    world.keep(FIRST)

    asyncio.run(world.keeper.drop(FIRST, "another-uid"))
    assert (SECRETS, FIRST) in world.kube.objects

    asyncio.run(world.keeper.drop(FIRST, "claim-uid"))
    assert (SECRETS, FIRST) not in world.kube.objects


# Which are wanted

COMPOSITION = {"passwords": [{"name": "admin"}]}


def _names(**spec: Any) -> dict[str, str]:
    return secret_names(COMPOSITION, IDENTITY, claim(**spec))


def test_the_name_of_a_secret_never_changes_and_follows_the_token() -> None:
    # Recorded: another value here means that every password in the field is another one.
    identity = Identity("7d1c8f1e-3a8e-4a0e-9d3e-0e7a3f0c1b2a", "shop", "orders")
    secret_of = [secret_name(identity, "admin", token) for token in ("", "2026-11", "2026-12")]

    assert len(set(secret_of)) == 3
    assert all(re.fullmatch(r"orders-password-admin-[a-z2-7]{10}", name) for name in secret_of)
    assert secret_name(identity, "admin", "") == secret_of[0]


NAMED = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"ref": {"name": _names()["admin"]}}}


@pytest.mark.parametrize(
    ("records", "children", "expected"),
    [
        pytest.param((), (), (False, ""), id="never made"),
        pytest.param((_names()["admin"],), (), (True, ""), id="recorded"),
        pytest.param((), (NAMED,), (True, ""), id="its record is lost, and a child names it"),
        pytest.param(("orders-password-admin-x",), (NAMED,), (True, "orders-password-admin-x"), id="of another token"),
        pytest.param(
            ("orders-password-admin-x",), (), (False, "orders-password-admin-x"), id="of another token, and nobody's"
        ),
    ],
)
def test_a_password_was_made_where_the_status_or_a_child_says_so(
    records: tuple[str, ...], children: tuple[Object, ...], expected: tuple[bool, str]
) -> None:
    kept = tuple(PasswordRecord("admin", secret) for secret in records)

    (wanted,) = wanted_passwords(_names(), kept, children, (Key("shop", "orders"), "claim-uid"))

    assert (wanted.is_made, wanted.former) == expected
    assert wanted.secret == Key("shop", _names()["admin"])


@pytest.mark.parametrize("passwords", [None, "x", [{"name": 1}], [{"name": "admin"}], 7])
def test_records_of_an_odd_shape_are_none(passwords: object) -> None:
    assert recorded({"passwords": passwords}) == ()
