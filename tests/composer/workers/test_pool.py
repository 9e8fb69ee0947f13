"""Templates are rendered where they can do no harm: real worker processes, killed and confined for real."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from composer.render.errors import CompositionError
from composer.render.render import render
from composer.render.request import Request
from composer.validation.offerings import offerings
from composer.validation.validate import CheckRequest
from composer.workers.pool import RenderPool, _About
from fairlead.rendering import shipped_kinds
from runtime.errors import Transient
from tests.composer.factories import claim
from tests.composer.validation import claim_fields
from tests.composer.workers.bombs import BOMBS, request_of
from tests.support.waiting import eventually

IDENTITY = "claim-uid@shop/orders"


@pytest.fixture
async def pool() -> AsyncIterator[RenderPool]:
    async with _pool(1) as made:
        await asyncio.to_thread(made.prove)
        yield made


@asynccontextmanager
async def _pool(workers: int = 2) -> AsyncIterator[RenderPool]:
    made = RenderPool(workers=workers)
    try:
        yield made
    finally:
        await made.close()


def _request(text: Any) -> Request:
    template = {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "PostgresDatabase", "spec": {"x": text}}
    composition = {
        "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
        "resources": [{"name": "database", "template": template}],
    }
    return Request("c", composition, claim(), IDENTITY)


def _neighbour(text: str) -> Request:
    return msgspec.structs.replace(_request(text), identity="other-uid@library/books")


async def _reason(pool: RenderPool, request: Request) -> str:
    with pytest.raises(CompositionError) as caught:
        await pool.render(request)
    return caught.value.problems[0].reason


async def test_a_worker_renders_the_same_bytes(pool: RenderPool) -> None:
    request = _request("{{ claim.spec.size | upper }}-{{ {'a': 1}['a'] }}")

    assert msgspec.json.encode(await pool.render(request)) == msgspec.json.encode(render(request))


@pytest.mark.slow
async def test_a_bomb_costs_its_own_render_alone() -> None:
    """Each goes off beside neighbours; all of them get what they ask for, from the worker that is left."""
    reasons: dict[str, str] = {}
    neighbours = 0
    async with _pool() as pool:
        for name, bomb in BOMBS.items():
            going_off = asyncio.create_task(_reason(pool, request_of(bomb)))
            for number in range(3):
                (child,) = (await pool.render(_neighbour(f"{name} {number}"))).children
                neighbours += child.object["spec"]["x"] == f"{name} {number}"
            reasons[name] = await going_off

    assert reasons == {name: bomb.reason for name, bomb in BOMBS.items()}
    assert neighbours == 3 * len(BOMBS)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are forked from now on have a fifth of the processor time."""
    monkeypatch.setattr("composer.workers.worker.CPU_SECONDS", 0.2)


@pytest.mark.usefixtures("impatient")
async def test_a_render_that_kills_three_workers_is_refused_to_its_own_content_alone_and_kills_no_fourth(
    pool: RenderPool,
) -> None:
    """The refusal needs no worker: it comes while the only one is taken away.

    What a neighbour's child says differs, be the Composition and the spec the same.
    """
    bomb = request_of(BOMBS["lists of lists"])
    for _ in range(3):
        assert await _reason(pool, bomb) == "RenderLimit"
    idle = pool._workers.idle
    idle_worker = idle.get_nowait()

    assert await _reason(pool, bomb) == "RenderLimit"

    idle.put_nowait(idle_worker)
    killed = len(pool._kills)
    neighbour = msgspec.structs.replace(bomb, identity="other-uid@library/books")
    with pytest.raises(CompositionError) as caught:
        await pool.render(neighbour)
    assert "tried again" not in str(caught.value)
    assert (killed, len(pool._kills)) == (1, 2)
    assert (await pool.render(_request("fine"))).children


@pytest.mark.usefixtures("impatient")
async def test_a_namespace_of_bombs_has_one_worker_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bombs = [msgspec.structs.replace(request_of(BOMBS["lists of lists"]), claim=claim(size=str(n))) for n in range(4)]
    async with _pool() as pool:
        assert await _reason(pool, bombs[0]) == "RenderLimit"
        going_off = asyncio.create_task(_reason(pool, bombs[1]))
        await asyncio.sleep(0)
        for bomb in bombs[2:]:
            with pytest.raises(Transient, match="namespace shop"):
                await pool.render(bomb)
        rendered = [await pool.render(_neighbour("fine")) for _ in range(3)]

        assert await going_off == "RenderLimit"
        assert all(result.children for result in rendered)
        monkeypatch.setattr("composer.workers.pool.REFUSED_FOR", timedelta(0))
        first, second = await asyncio.gather(pool.render(_request("a")), pool.render(_request("b")))
        assert first.children != second.children


def _pids(idle: asyncio.Queue[Any]) -> set[int]:
    idle_workers = [idle.get_nowait() for _ in range(idle.qsize())]
    for idle_worker in idle_workers:
        idle.put_nowait(idle_worker)
    return {idle_worker.pid for idle_worker in idle_workers}


async def test_a_render_that_takes_long_costs_its_worker_and_the_turns_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every render takes long here, so what it does not show is the answer: that comes all the same."""
    async with _pool() as pool:
        await pool.render(_neighbour("fine"))
        idle = pool._workers.idle
        before = _pids(idle)
        monkeypatch.setattr("composer.workers.pool.LONG", timedelta(0))
        (child,) = (await pool.render(_request("long"))).children
        monkeypatch.undo()
        after = _pids(idle)
        under_way = asyncio.create_task(pool.render(_request("again")))
        await asyncio.sleep(0)
        with pytest.raises(Transient, match="namespace shop"):
            await pool.render(_request("at the same time"))

        assert child.object["spec"]["x"] == "long"
        assert len(before) == len(after) == 1
        assert not before & after
        assert (await under_way).children
        assert (await pool.render(_neighbour("fine"))).children


async def test_other_namespaces_keep_the_worker_with_their_compositions_and_throttled_ones_get_another() -> None:
    def served(pool: RenderPool) -> list[int]:
        return sorted(idle_worker.served for idle_worker in pool._workers.idle._queue)

    async with _pool() as pool:
        for _ in range(3):
            await pool.render(_neighbour("fine"))
        alone = served(pool)
        pool._throttle("shop")
        await pool.render(_request("fine"))
        served_by_both = served(pool)
        await asyncio.gather(*(pool.render(_neighbour("fine")) for _ in range(4)))

    assert alone == [3]
    assert served_by_both == [1, 3]


async def _until_workers(pool: RenderPool, number: int) -> None:
    async def has() -> bool:
        return pool._workers.idle.qsize() == number

    await eventually(has, f"{number} workers rest", limit_s=60.0)


async def test_a_second_worker_is_for_those_who_wait_and_is_ended_when_nobody_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Renders one after the other need one worker; one that is taken away lets the next wait for it."""
    monkeypatch.setattr("composer.workers.processes.SPARE", timedelta(milliseconds=50))
    async with _pool() as pool:
        await asyncio.to_thread(pool.prove)
        for _ in range(3):
            await pool.render(_request("fine"))
        (first,) = _pids(pool._workers.idle)
        busy = pool._workers.idle.get_nowait()
        (child,) = (await pool.render(_request("beside it"))).children
        (second,) = _pids(pool._workers.idle)
        pool._workers.put_back(busy)
        await _until_workers(pool, 1)

        assert child.object["spec"]["x"] == "beside it"
        assert first != second
        assert _pids(pool._workers.idle) == {first}
        assert (await pool.render(_request("fine"))).children


async def test_checks_have_one_worker_and_wait_for_it() -> None:
    async with _pool() as pool:
        answers = await asyncio.gather(*(pool.check(CheckRequest({"resources": 3}, {})) for _ in range(8)))

        assert all(answers)
        assert pool._workers.idle.qsize() == 1


async def test_offers_are_found_in_a_worker_and_a_composition_that_has_none_says_why(pool: RenderPool) -> None:
    request = CheckRequest(claim_fields.COMPOSITIONS["azure"], dict(shipped_kinds("*.yaml")), claim_fields.ENVIRONMENTS)

    assert await pool.offerings(request) == offerings(request)
    with pytest.raises(CompositionError, match="resources"):
        await pool.offerings(CheckRequest({"resources": 3}, {}))


async def test_the_worker_that_was_proven_is_the_first_that_renders(pool: RenderPool) -> None:
    proven = pool._workers._proven
    await pool.render(_request("fine"))

    assert proven
    assert _pids(pool._workers.idle) == {proven[0]}


def test_the_server_is_forked_before_anything_large_is_loaded() -> None:
    """What is loaded then is in the memory of every worker."""
    program = "import sys, composer.workers.server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert "composer.workers.server" in loaded
    large = {"aiohttp", "asyncio", "composer.workers.pool", "jinja2", "msgspec", "structlog"}
    assert large & set(loaded) == set()


async def test_an_environment_is_read_by_a_worker_that_can_open_no_file(pool: RenderPool) -> None:
    """Its reader of YAML is loaded before the worker is confined."""
    request = msgspec.structs.replace(
        _request("{{ env.zones.sizes.a[1] }}"), environments={"zones": {"sizes.yaml": "a: [1, 2026-11-24]\n"}}
    )
    (child,) = (await pool.render(request)).children

    assert child.object["spec"]["x"] == "2026-11-24"


async def test_a_worker_gets_a_lower_priority_on_order(pool: RenderPool) -> None:
    await pool.render(_request("fine"))
    idle = pool._workers.idle
    idle_worker = idle.get_nowait()
    before = os.getpriority(os.PRIO_PROCESS, idle_worker.pid)
    pool._watch(idle_worker, _About("content", "shop"), 0.0)
    # The server takes one order after the other: with the answer to the second, the first is done.
    other, pipe = await asyncio.to_thread(pool._server.spawn)
    pipe.close()

    assert other != idle_worker.pid
    assert os.getpriority(os.PRIO_PROCESS, idle_worker.pid) == min(before + 10, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    await pool._workers.replace(idle_worker)


async def test_a_worker_that_writes_too_much_is_disconnected(monkeypatch: pytest.MonkeyPatch, pool: RenderPool) -> None:
    await pool.render(_request("fine"))
    next_worker = max(pool._workers.idle._queue, key=lambda worker: worker.served)
    monkeypatch.setattr(next_worker.pipe, "_largest", 100)

    assert await _reason(pool, _request("x" * 100)) == "RenderLimit"
    assert (await pool.render(_request("fine"))).children


async def test_a_killed_worker_is_replaced(pool: RenderPool) -> None:
    await pool.render(_request("fine"))
    idle = pool._workers.idle
    idle_worker = idle.get_nowait()
    pool._workers.end(idle_worker)
    idle.put_nowait(idle_worker)

    assert await _reason(pool, _request("fine")) == "RenderLimit"
    assert (await pool.render(_request("fine"))).children


async def test_a_cancelled_render_does_not_answer_the_next_request(pool: RenderPool) -> None:
    await pool.render(_request("fine"))
    slow = asyncio.create_task(pool.render(_request("{{ 'slow' }}")))
    await asyncio.sleep(0)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow

    (child,) = (await pool.render(_request("{{ 'next' }}"))).children

    assert child.object["spec"]["x"] == "next"


async def test_the_composer_does_not_start_where_workers_cannot_be_confined(tmp_path: Path) -> None:
    """A kernel without seccomp is played by a machine name that seccomp does not know."""
    program = (
        "import platform, sys; platform.machine = lambda: 'unknown'\n"
        "from composer.__main__ import main\n"
        f"sys.exit(main(['--kubeconfig', {str(tmp_path / 'absent')!r}]))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    _, output = await asyncio.wait_for(process.communicate(), 60)

    assert process.returncode == 1
    assert b"--unsafe-render" in output
