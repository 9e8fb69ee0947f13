"""Odd texts and odd statuses are faults in words, or none: no worker ends of them, and no neighbour waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from composer.render.errors import CompositionError
from composer.render.render import Rendered
from composer.render.request import Observed, Request
from composer.validation.validate import CheckRequest
from composer.workers.pool import RenderPool
from tests.composer.workers.test_pool import IDENTITY, _pids, _reason, _request
from tests.runtime.test_conditions import ODD_STATUSES


@pytest.fixture
async def pool() -> AsyncIterator[RenderPool]:
    made = RenderPool(workers=1)
    await asyncio.to_thread(made.prove)
    yield made
    await made.close()


ODD_TEXTS: dict[str, tuple[str, str]] = {
    "half of a pair": (r"{{ '\ud800' }}", "NotJson"),
    "half of a pair in a path": (r"{{ claim.spec['\ud800'] }}", "RenderFailed"),
    "half of a pair in a computed name": (r"{{ claim.spec['a' ~ '\ud800'] }}", "RenderFailed"),
    "a number of 5,000 digits": ("{{ 1" + "0" * 5_000 + " }}", "TemplateInvalid"),
}


@pytest.mark.parametrize(("text", "reason"), ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_an_odd_text_is_a_fault_in_words_and_costs_no_worker(pool: RenderPool, text: str, reason: str) -> None:
    await pool.render(_request("fine"))
    before = _pids(pool._workers.idle)

    assert await _reason(pool, _request(text)) == reason
    (problem, *_) = await pool.check(CheckRequest(_request(text).composition, {}))

    assert problem.reason in (reason, "KindNotInstalled")
    assert _pids(pool._workers.idle) == before


async def test_an_odd_status_of_a_child_is_no_fault_and_costs_no_worker(pool: RenderPool) -> None:
    request = _request("x")
    template = request.composition["resources"][0]["template"]
    for status in (*ODD_STATUSES.values(), {"conditions": [{"type": "Ready", "status": "False"}]}):
        live = {**template, "metadata": {"name": "x", "generation": 1}, "status": status}
        await pool.render(msgspec.structs.replace(request, observed=(Observed("database", "", live),)))

    assert [idle_worker.served for idle_worker in pool._workers.idle._queue] == [len(ODD_STATUSES) + 1]


async def test_an_unexpected_error_is_named_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: Request) -> Rendered:
        raise AttributeError("no \x1b[2J such \ud800 thing") if request.identity == IDENTITY else CompositionError()

    monkeypatch.setattr("composer.workers.worker.render", broken)
    pool = RenderPool(workers=1)
    try:
        with pytest.raises(CompositionError) as caught:
            await pool.render(_request("x"))
        assert [idle_worker.served for idle_worker in pool._workers.idle._queue] == [1]
    finally:
        await pool.close()

    (problem,) = caught.value.problems
    assert (problem.reason, problem.message) == (
        "RenderFailed",
        "cannot be rendered (AttributeError): no [2J such  thing",
    )
