"""An API server that nobody reaches, that hangs, or whose answers are cut: all is outlived without a restart.

Health and metrics show it meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from devcloud.controlplane import plane
from tests.runtime.tcp_proxy import Line, TcpProxy, through
from tests.support.api import JsonObject
from tests.support.home import claim, furnish, move_in, until_gone
from tests.support.kinds import CLAIM, DATABASE, database, is_ready
from tests.support.metric_labels import BOUNDED
from tests.support.processes import Program
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_ACCOUNTS = {
    "composer": ("fairlead-system", "fairlead-composer"),
    "provider": ("fairlead-onprem", "fairlead-provider-onprem"),
}
_CLAIMS, _DATABASES = "PostgreSQLInstance.database.fairlead.dev", "PostgresDatabase.onprem.fairlead.dev"
# Between its loss and its end lies the time in which work that hangs must end, on a machine that is busy.
_LEASE = ("--lease-duration=8", "--lease-renew-deadline=4", "--lease-retry=0.5")
_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Behind:
    """Both processes behind one line to the API server, which can be cut."""

    system: System
    line: TcpProxy
    processes: dict[str, Program]

    async def answer(self, name: str, path: str) -> tuple[int, str]:
        address = f"http://127.0.0.1:{self.system.ports[name]}{path}"
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            return answer.status, await answer.text()

    async def until_ready(self, name: str, *, ready: bool) -> str:
        async def says() -> str:
            status, text = await self.answer(name, "/readyz")
            return text if (status == 200) == ready else ""

        return await eventually(says, f"{name} is {'' if ready else 'not '}ready", limit_s=_LIMIT_S)

    async def metrics(self, name: str) -> dict[tuple[str, str], float]:
        """Scrape a process: values by metric and `resource` label, summed over the other labels, which are checked."""
        _, text = await self.answer(name, "/metrics")
        values: dict[tuple[str, str], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                assert set(sample.labels) <= BOUNDED, sample
                place = sample.name, sample.labels.get("resource", "")
                values[place] = values.get(place, 0.0) + sample.value
        return values


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def behind(system: System) -> AsyncIterator[Behind]:
    line = TcpProxy(urllib.parse.urlsplit(system.plane.server).port or 0)
    await line.start()
    processes = {}
    try:
        for name, start in (("composer", system.start_composer), ("provider", system.start_provider)):
            folder = system.folder / f"behind-{name}"
            folder.mkdir()
            straight = await system.plane.service_account_kubeconfig(*_ACCOUNTS[name])
            kubeconfig = through(straight, line.port, folder)
            pace = ("--sweep", "1", "--resync", "5") if name == "provider" else ()
            processes[name] = await start(*_LEASE, *pace, "--kubeconfig", str(kubeconfig))
        yield Behind(system, line, processes)
    finally:
        await line.close()


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
    await asyncio.gather(*(system.until(CLAIM, namespace, name, is_ready, limit_s=_LIMIT_S) for name in torn))
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
    await system.until(CLAIM, namespace, "caught", is_ready, limit_s=_LIMIT_S)

    async def is_back() -> bool:
        return await system.connection_limit(kept.database) == limit

    await eventually(is_back, "drift that arose meanwhile is put right", limit_s=_LIMIT_S)
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


async def test_an_outage_of_the_api_server_is_outlived_and_every_phase_is_measured(
    behind: Behind, namespace: str
) -> None:
    system = behind.system
    kept, doomed = await asyncio.gather(
        *(move_in(system, claim(namespace, name, deletionPolicy="Delete")) for name in ("kept", "doomed"))
    )
    watched = await _watched(system, namespace)
    limit = await system.connection_limit(kept.database)
    await _judge_work(behind)
    pids = {name: program.pid for name, program in behind.processes.items()}

    await behind.line.become(Line.REFUSED)
    for name in behind.processes:
        message = await behind.until_ready(name, ready=False)
        assert "the API server has not answered" in message
        assert (await behind.answer(name, "/healthz"))[0] == 200
    mark = system.sql.mark()
    # The world goes on.
    await system.create(CLAIM, claim(namespace, "newcomer"))
    await system.edit(CLAIM, namespace, "kept", {"spec": {"parameters": {"work_mem": "123kB"}}})
    await system.api.delete(doomed.path)
    await system.server.server.execute(f"ALTER DATABASE {kept.database} CONNECTION LIMIT 3")
    for name in behind.processes:
        assert (await behind.metrics(name))["leader_election_master_status", ""] == 0
    assert [statement for statement in system.sql.changes(mark) if "CONNECTION LIMIT 3" not in statement] == []

    await behind.line.become(Line.OPEN)
    await system.until(CLAIM, namespace, "newcomer", is_ready, limit_s=_LIMIT_S)
    await system.until(CLAIM, namespace, "kept", is_ready, limit_s=_LIMIT_S)
    await until_gone(system, doomed.path)
    assert doomed.drops_carried_out() == 1

    async def is_back() -> bool:
        return await system.connection_limit(kept.database) == limit

    await eventually(is_back, "drift that arose meanwhile is put right", limit_s=_LIMIT_S)
    async with await system.login(namespace, "kept") as session:
        assert await (await session.execute("SHOW work_mem")).fetchone() == ("123kB",)
    for name, program in behind.processes.items():
        await behind.until_ready(name, ready=True)
        assert program.is_running
        assert program.pid == pids[name]
    await _judge_drift(behind, watched)


async def _watched(system: System, namespace: str) -> JsonObject:
    """Make a database that is only observed from now on, and change it behind our back."""
    parameters = {"databaseName": "app", "username": "app", "connectionLimit": 5}
    await system.create(DATABASE, database(namespace, "watched", forProvider=parameters))
    made = await system.until(DATABASE, namespace, "watched", is_ready)
    await system.edit(DATABASE, namespace, "watched", {"spec": {"managementPolicy": "Observe"}})
    await system.server.server.execute(f'ALTER DATABASE "{made["status"]["externalName"]}" CONNECTION LIMIT 3')
    return made


async def _judge_work(behind: Behind) -> None:
    """Prove what is measured while claims are created and drift waits."""

    async def drift_is_old() -> bool:
        return (await behind.metrics("provider"))["fairlead_drift_age_seconds", _DATABASES] > 0

    await eventually(drift_is_old, "the age of drift grows", limit_s=_LIMIT_S)
    composer, provider = await asyncio.gather(*(behind.metrics(name) for name in ("composer", "provider")))
    assert composer["controller_time_to_ready_seconds_count", _CLAIMS] >= 2
    assert provider["controller_time_to_ready_seconds_count", _DATABASES] >= 3
    assert provider["fairlead_cloud_api_calls_total", ""] > 0
    for metrics, kind in ((composer, _CLAIMS), (provider, _DATABASES)):
        assert metrics["controller_queue_oldest_seconds", ""] >= 0
        assert metrics["workqueue_queue_duration_seconds_count", ""] > 0
        assert metrics["controller_write_loops", kind] == 0


async def _judge_drift(behind: Behind, watched: JsonObject) -> None:
    """Prove what is measured when drift has ended and objects are gone."""
    system, meta = behind.system, watched["metadata"]
    await system.delete(DATABASE, meta["namespace"], meta["name"])

    async def is_quiet() -> bool:
        return (await behind.metrics("provider"))["fairlead_drift_age_seconds", _DATABASES] == 0

    await eventually(is_quiet, "drift has no age when none is left", limit_s=_LIMIT_S)
    for name in behind.processes:
        _, text = await behind.answer(name, "/metrics")
        assert [word for word in (meta["namespace"], "kept", "newcomer", "doomed") if f'"{word}' in text] == []
