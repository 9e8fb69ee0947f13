"""A child whose create had no answer goes at another moment of its claim's deletion, too: run by `make faults`."""

from __future__ import annotations

import pytest

from tests.apiserver.composer.test_stuck_claims import a_child_without_an_answer_goes
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_child_whose_create_had_no_answer_goes_with_its_claim(composing: System, namespace: str) -> None:
    await a_child_without_an_answer_goes(composing, namespace, "after the claim has said so")
