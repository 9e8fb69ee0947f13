"""What a template worker answers is compared with what its request can render to, before anything is written.

Each row is an answer as of a worker that was taken over: a true render with one part forged.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import structlog

from composer.models import OfferedField, OfferedValue, Offerings
from composer.render.errors import CompositionError, Problem
from composer.render.render import Rendered, render
from composer.render.request import Request
from composer.validation.validate import CheckRequest
from composer.workers import worker
from composer.workers.answer_check import AnswerError, refuse_boundless, refuse_excess, refuse_foreign
from composer.workers.pool import ANSWERS_REFUSED, RenderPool
from tests.composer.workers.forged_answers import (
    COMPOSITION,
    FORGED,
    IDENTITY,
    Plain,
    forged,
    of_metadata,
    request_of_all,
)


def test_a_true_render_is_accepted() -> None:
    request = request_of_all()
    rendered = render(request)

    refuse_foreign(request, rendered)

    assert [child.resource for child in rendered.children] == ["network", "database", "kept", "each", "each"]
    assert [held.resource for held in rendered.waiting] == ["later"]
    assert rendered.children[1].object["spec"]["storage"] == {"gib": 20}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_render_is_refused(forge: Callable[[Plain], None]) -> None:
    request = request_of_all()

    with pytest.raises(AnswerError):
        refuse_foreign(request, forged(request, forge))


def test_a_refusal_names_the_part_and_is_short() -> None:
    request = request_of_all()

    with pytest.raises(AnswerError, match=r"database: metadata.namespace is 'alice' instead of 'shop'"):
        refuse_foreign(request, forged(request, FORGED["another namespace"]))
    with pytest.raises(AnswerError) as caught:
        refuse_foreign(request, forged(request, of_metadata("namespace", to="x" * 10_000)))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "forged_field",
    [OfferedField("a" * 300), OfferedField("size", note="\x1b[2J"), OfferedField("a", default="a" * 300)],
)
def test_offers_that_a_status_has_no_room_for_are_refused(forged_field: OfferedField) -> None:
    refuse_boundless(Offerings(fields=(OfferedField("size", values=(OfferedValue("small"),)),)))

    with pytest.raises(AnswerError):
        refuse_boundless(Offerings(fields=(forged_field,)))


def test_an_answer_that_is_larger_than_any_render_is_refused() -> None:
    refuse_excess(b'"' + b"," * 100_000 + b'"')
    for answer in (b'"' + b"x" * (1 << 20) + b'   "' * 20, b"[" + b"[]," * (1 << 17) + b"[]]"):
        with pytest.raises(AnswerError, match="larger"):
            refuse_excess(answer)


# What the pool does with such an answer. The workers are forked from here, and answer by what stands here then.


@asynccontextmanager
async def _answering(
    answer: Callable[[Request], Rendered], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RenderPool]:
    monkeypatch.setattr("composer.workers.worker.render", answer)
    made = RenderPool(workers=1)
    monkeypatch.undo()
    try:
        yield made
    finally:
        await made.close()


def _taken_over(request: Request) -> Rendered:
    """Answer truly, but in namespace shop: a worker that an earlier render took over."""
    if request.identity != IDENTITY:
        return render(request)
    return forged(request, FORGED["another namespace"])


def _refused() -> float:
    return float(ANSWERS_REFUSED.labels("render")._value.get())


async def test_a_forged_answer_ends_its_worker_and_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _refused()
    async with _answering(_taken_over, monkeypatch) as pool:
        with structlog.testing.capture_logs() as logs, pytest.raises(CompositionError) as caught:
            await pool.render(request_of_all())
        left = pool._workers.idle._queue[0].pid
        neighbour = msgspec.structs.replace(request_of_all(), identity="other-uid@library/books", observed=())
        await pool.render(neighbour)

    (problem,) = caught.value.problems
    audit = [record for record in logs if record["event"] == "audit"]
    assert problem.reason == "RenderRefused"
    assert "metadata.namespace is 'alice' instead of 'shop'" in problem.message
    # The first may have been another's victim: a second worker is asked, and both are ended.
    assert _refused() - before == 2
    assert [(record["action"], record["namespace"]) for record in audit] == [("WorkerEnded", "shop")] * 2
    assert left not in {record["worker"] for record in audit}


async def test_a_claim_whose_worker_another_took_over_is_rendered_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    serves: list[str] = []

    def second_is_forged(request: Request) -> Rendered:
        # Each worker has a list of its own, empty when it was forked; the server tries renders of another claim.
        if request.identity == IDENTITY:
            serves.append(request.identity)
        return forged(request, FORGED["another namespace"]) if len(serves) == 2 else render(request)

    before = _refused()
    async with _answering(second_is_forged, monkeypatch) as pool:
        results = [await pool.render(request_of_all()) for _ in range(2)]

    assert results == [render(request_of_all())] * 2
    assert _refused() - before == 1


async def test_a_worker_with_neither_result_nor_fault_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Request) -> Rendered:
        raise CompositionError

    async with _answering(nothing, monkeypatch) as pool:
        with pytest.raises(CompositionError, match="neither a result nor a fault"):
            await pool.render(request_of_all())


@pytest.mark.parametrize("problem", [Problem("Ready or not", "x"), Problem("RenderFailed", "x", resource="other")])
async def test_a_problem_that_is_none_of_the_composition_ends_its_worker(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(request: Request | CheckRequest) -> Any:
        # The server tries renders and checks of one resource before it serves anybody.
        raise CompositionError(*([problem] if len(request.composition["resources"]) > 1 else ()))

    def no_check(request: CheckRequest) -> Any:
        return faulty(request) if len(request.composition["resources"]) > 1 else ()

    monkeypatch.setattr("composer.workers.worker.check", no_check)
    async with _answering(faulty, monkeypatch) as pool:
        with pytest.raises(CompositionError, match="no fault of this Composition"):
            await pool.render(request_of_all())
        (refused,) = await pool.check(CheckRequest(COMPOSITION, {}))

    assert refused.reason == "RenderRefused"


async def test_a_worker_that_writes_more_than_its_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest would be read as the answer to the next request, which another namespace makes."""

    def talkative(pipe: int, payload: bytes) -> None:
        more = b"" if payload == worker.READY else struct.pack("!I", len(payload)) + payload
        os.write(pipe, struct.pack("!I", len(payload)) + payload + more)

    monkeypatch.setattr("composer.workers.worker._send", talkative)
    async with _answering(render, monkeypatch) as pool:
        with pytest.raises(CompositionError, match="something follows it"):
            await pool.render(request_of_all())


async def test_an_answer_without_a_request_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _refused()
    async with _answering(render, monkeypatch) as pool:
        await pool.render(request_of_all())
        idle_worker = pool._workers.idle._queue[0]
        idle_worker.pipe.data_received(b"\0\0\0\2{}")
        await asyncio.sleep(0)
        result = await pool.render(request_of_all())

    assert result == render(request_of_all())
    assert _refused() - before == 1
