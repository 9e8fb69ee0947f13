"""The gates of the crash tests: what they take for an effect, and that nothing passes a trap that has sprung."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.gate import Effect, Gate, Moment, SeveredError, Trap
from tests.support.kube_proxy import effect_of

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
