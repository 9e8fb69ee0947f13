"""Few logins are tried at once; those that are answered take turns, those that are not hold up nobody."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from providers.credentials.proofs import Proofs

pytestmark = pytest.mark.asyncio


async def test_proofs_that_are_answered_take_turns() -> None:
    proofs, at_once, most = Proofs(timedelta(minutes=5)), 0, 0

    async def prove() -> bool:
        nonlocal at_once, most
        async with proofs.slot() as is_free:
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return is_free

    assert await asyncio.gather(*(prove() for _ in range(50))) == [True] * 50
    assert most == 4


async def test_proofs_that_get_no_answer_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.credentials.proofs._PLACE_SECONDS", 0.0)
    proofs, answer = Proofs(timedelta(minutes=5)), asyncio.Event()

    async def prove() -> bool:
        async with proofs.slot() as is_free:
            if is_free:
                await answer.wait()
            return is_free

    waiting = [asyncio.create_task(prove()) for _ in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [await prove() for _ in range(3)] == [False] * 3
    answer.set()
    assert await asyncio.gather(*waiting) == [True] * 4
    assert await prove()
