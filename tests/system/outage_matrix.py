"""Answers that are cut in their middle, and an API server that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from devcloud.controlplane import plane
from tests.support.home import claim, furnish, move_in
from tests.support.kinds import CLAIM, is_ready
from tests.support.system import System
from tests.support.waiting import eventually
from tests.system.behind import LIMIT_S, Behind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest.fixture(scope="module")
def system(own_system: System) -> System:
    """Return a platform that only this module has: its API server freezes."""
    return own_system


async def test_answers_cut_in_their_middle_and_an_api_server_that_hangs_double_nothing(
    behind: Behind, namespace: str
) -> None:
    system, line = behind.system, behind.line
    kept = await move_in(system, claim(namespace, "kept"))
    child = await kept.child()
    limit = await system.connection_limit(kept.database)
    pids = {name: program.pid for name, program in behind.processes.items()}

    torn = ("torn-1", "torn-2", "torn-3")
    line.tear()
    await asyncio.gather(*(system.create(CLAIM, claim(namespace, name)) for name in torn))
    await asyncio.gather(*(system.until(CLAIM, namespace, name, is_ready, limit_s=LIMIT_S) for name in torn))
    assert line.torn > 0

    # Whatever is on its way to it now is carried out when it goes on, and nobody knows of it.
    line.tear()
    await system.create(CLAIM, claim(namespace, "caught"))
    with _frozen(system):
        await system.server.server.execute(f"ALTER DATABASE {kept.database} CONNECTION LIMIT 3")
        for name in behind.processes:
            message = await behind.until_ready(name, ready=False)
            assert "the API server has not answered" in message
            assert (await behind.answer(name, "/healthz"))[0] == 200
            assert (await behind.metrics(name))["leader_election_master_status", ""] == 0
    await system.until(CLAIM, namespace, "caught", is_ready, limit_s=LIMIT_S)

    async def is_back() -> bool:
        return await system.connection_limit(kept.database) == limit

    await eventually(is_back, "drift that arose meanwhile is put right", limit_s=LIMIT_S)
    for name, program in behind.processes.items():
        await behind.until_ready(name, ready=True)
        assert program.is_running
        assert program.pid == pids[name]
    await kept.until_home()
    await kept.untouched()
    assert (await kept.child())["metadata"]["uid"] == child["metadata"]["uid"]
    for name in (*torn, "caught"):
        home = await furnish(system, namespace, name)
        await home.child()
        assert (home.creates(), home.drops()) == (1, 0)


@contextmanager
def _frozen(system: System) -> Iterator[None]:
    """Have an API server that takes connections and answers nothing."""
    identity = plane.members(system.plane.folder)["kube-apiserver"]
    assert identity is not None
    os.kill(identity.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(identity.pid, signal.SIGCONT)
