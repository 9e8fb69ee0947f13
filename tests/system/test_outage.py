"""An API server that nobody reaches, that hangs, or whose answers are cut: all is outlived without a restart.

Health and metrics show it meanwhile.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.tcp_proxy import Line
from tests.support.api import JsonObject
from tests.support.home import claim, move_in, until_gone
from tests.support.kinds import CLAIM, DATABASE, EVENT, database, is_ready
from tests.support.system import System
from tests.support.waiting import eventually
from tests.system.behind import LIMIT_S, Behind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_CLAIMS, _DATABASES = "PostgreSQLInstance.database.fairlead.dev", "PostgresDatabase.onprem.fairlead.dev"


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
    await system.until(CLAIM, namespace, "newcomer", is_ready, limit_s=LIMIT_S)
    await system.until(CLAIM, namespace, "kept", is_ready, limit_s=LIMIT_S)
    await until_gone(system, doomed.path)
    assert doomed.drops_carried_out() == 1

    async def is_back() -> bool:
        return await system.connection_limit(kept.database) == limit

    await eventually(is_back, "drift that arose meanwhile is put right", limit_s=LIMIT_S)
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

    await eventually(drift_is_old, "the age of drift grows", limit_s=LIMIT_S)
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

    await eventually(is_quiet, "drift has no age when none is left", limit_s=LIMIT_S)
    for name in behind.processes:
        _, text = await behind.answer(name, "/metrics")
        assert [word for word in (meta["namespace"], "kept", "newcomer", "doomed") if f'"{word}' in text] == []


async def test_drift_is_corrected_and_reported(behind: Behind, namespace: str) -> None:
    system = behind.system
    home = await move_in(system, claim(namespace, "orders"))
    name, limit = (await home.child())["metadata"]["name"], await system.connection_limit(home.database)
    login = (await system.binding(namespace, "orders"))["username"]
    await system.server.server.execute(
        f"ALTER DATABASE {home.database} CONNECTION LIMIT 3", f"ALTER ROLE {login} PASSWORD 'of-somebody-else'"
    )

    async def notes() -> list[str]:
        events = await system.api.items(EVENT.path(namespace))
        return [event["note"] for event in events if event["reason"] == "DriftCorrected"]

    async def both_are_said() -> bool:
        said = str(await notes())
        return "connectionLimit" in said and login in said

    await eventually(both_are_said, "events DriftCorrected")
    await home.until_home()
    assert await system.connection_limit(home.database) == limit
    after = await system.until(DATABASE, namespace, name, lambda obj: is_ready(obj) and bool(obj["status"]["drift"]))
    assert "of-somebody-else" not in str(after) + str(await notes())
