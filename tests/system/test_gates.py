"""The gates of the crash tests: what they take for an effect, and that nothing passes a trap that has sprung."""

from __future__ import annotations

import asyncio
import itertools
import struct

import pytest

from tests.support.crash import SCOPE, batches, plans
from tests.support.gate import Effect, Gate, Moment, SeveredError, Trap
from tests.support.kube_proxy import effect_of
from tests.support.sql_proxy import Message, Statements

_SPEC = "/apis/onprem.fairlead.dev/v1alpha1/namespaces/k001z/postgresdatabases"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", _SPEC, None),
        ("POST", _SPEC, Effect("k001z", "POST postgresdatabases")),
        ("PATCH", f"{_SPEC}/db/status", Effect("k001z", "PATCH postgresdatabases/status")),
        ("PUT", "/api/v1/namespaces/k001z/secrets/db-connection", Effect("k001z", "PUT secrets")),
        ("PATCH", "/apis/fairlead.dev/v1alpha1/compositions/x/status", Effect("", "PATCH compositions/status")),
        ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/fairlead-system/leases/x", None),
        ("POST", "/apis/events.k8s.io/v1/namespaces/k001z/events", None),
    ],
)
def test_a_request_says_what_it_changes(method: str, path: str, expected: Effect | None) -> None:
    assert effect_of(method, path) == expected


def _query(text: str) -> list[Message]:
    return [Message(b"Q", text.encode() + b"\0")]


def _prepared(text: str, value: str) -> list[Message]:
    bind = b"\0\0" + struct.pack("!hhi", 0, 1, len(value)) + value.encode()
    return [Message(b"P", b"\0" + text.encode() + b"\0\0\0"), Message(b"B", bind), Message(b"S", b"")]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([_query("SELECT 'k001z'")], [None]),
        ([_query('CREATE DATABASE "k001z_db_x" TEMPLATE template0')], ["SQL CREATE DATABASE _"]),
        ([_query("/* why */ DROP DATABASE k001z_db")], ["SQL DROP DATABASE _"]),
        ([_query("SELECT pg_terminate_backend(1), 'k001z'")], ["SQL SELECT PG_TERMINATE_BACKEND(1), _"]),
        ([_prepared("INSERT INTO o VALUES ($1)", "k001z")], ["SQL INSERT INTO O"]),
        (
            [_query("BEGIN"), _query("CREATE ROLE k001z_a"), _query("GRANT k001z_a TO me"), _query("COMMIT")],
            [None, None, None, "SQL COMMIT(CREATE ROLE _, GRANT _ TO)"],
        ),
        ([_query("BEGIN"), _query("CREATE ROLE k001z_a"), _query("ROLLBACK")], [None, None, None]),
        ([_query("BEGIN"), _query("SELECT 'k001z'"), _query("COMMIT")], [None, None, None]),
    ],
)
def test_a_statement_is_known_to_last_or_not(requests: list[list[Message]], expected: list[str | None]) -> None:
    statements = Statements(SCOPE)

    effects = [statements.effect_of(request) for request in requests]

    assert [None if effect is None else effect.text for effect in effects] == expected
    assert {effect.scope for effect in effects if effect is not None} <= {"k001z"}


@pytest.mark.parametrize(
    ("moment", "sent", "delivered"),
    [
        (Moment.UNSENT, ["first"], ["first"]),
        (Moment.UNANSWERED, ["first", "second"], ["first"]),
        (Moment.ANSWERED, ["first", "second"], ["first", "second"]),
    ],
)
async def test_a_sprung_trap_lets_nothing_pass(moment: Moment, sent: list[str], delivered: list[str]) -> None:
    gate, was_sent, was_delivered = Gate(), list[str](), list[str]()

    async def carry(text: str) -> None:
        async def send() -> str:
            was_sent.append(text)
            return text

        async def deliver(answer: str) -> None:
            was_delivered.append(answer)

        await gate.carry(Effect("k001z", text), send, deliver)

    gate.arm({"k001z": Trap(2, moment)})
    tasks = [asyncio.create_task(carry(text)) for text in ("first", "second", "third")]
    sprung = await gate.until_sprung(limit_s=60)
    await asyncio.sleep(0)

    assert sprung == {"k001z": Effect("k001z", "second")}
    gate.open()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert (was_sent, was_delivered) == (sent, delivered)
    assert isinstance(outcomes[-1], SeveredError)


def test_each_effect_is_planned_at_its_turn_and_no_process_is_parked_whole() -> None:
    learned = {"composer": ["a", "b"], "provider": [f"SQL {number}" for number in range(20)]}

    in_turn = plans(learned, [(moment,) for moment in Moment])
    whole = plans(learned, [tuple(Moment)])

    assert len(in_turn) == 22
    assert {plan.trap.moment for plan in in_turn} == set(Moment)
    assert len(whole) == 66
    assert sorted(map(str, itertools.chain(*batches(whole)))) == sorted(map(str, whole))
    for batch in batches(whole):
        assert sum(plan.actor == "provider" for plan in batch) < 16
        assert sum(plan.is_sql for plan in batch) < 8
