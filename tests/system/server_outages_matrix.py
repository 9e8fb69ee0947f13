"""An on-prem server that takes no login: its claims say so within seconds, in whatever state, and its end too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from devcloud import daemons
from tests.support.api import JsonObject
from tests.support.home import Home, claim, move_in
from tests.support.kinds import CLAIM, SECRET, condition
from tests.support.staff import Staff
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

# Within 15 s on a quiet machine; other tests run beside this one.
_REPORTED_S = 40.0
_PAUSED = {"metadata": {"annotations": {"fairlead.dev/paused": "true"}}}


def _stopped(system: System) -> AbstractAsyncContextManager[None]:
    return system.server_away()


@asynccontextmanager
async def _hung(system: System) -> AsyncIterator[None]:
    proxy = daemons.load(system.folder / "onprem" / "front.pid.json")
    assert proxy is not None
    os.kill(proxy.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(proxy.pid, signal.SIGCONT)


async def _until_ready_is(home: Home, status: str, reason: str) -> None:
    last: JsonObject = {}

    async def is_reported() -> bool:
        last.update(condition(await home.system.api.get(home.path), "Ready"))
        return (last["status"], last["reason"]) == (status, reason)

    try:
        await eventually(is_reported, f"{home.name} says Ready={status} {reason}", limit_s=_REPORTED_S, every_s=0.2)
    except AssertionError as error:
        raise AssertionError(f"{error}; its Ready is {last}") from None


@pytest.mark.parametrize("outage", [_stopped, _hung])
async def test_an_outage_takes_ready_away_and_its_end_gives_it_back(
    staff: Staff, namespace: str, outage: Callable[[System], AbstractAsyncContextManager[None]]
) -> None:
    system = staff.system
    plain, paused, refused = homes = await asyncio.gather(
        *(move_in(system, claim(namespace, name, deletionPolicy="Delete")) for name in ("plain", "paused", "refused"))
    )
    await system.edit(CLAIM, namespace, paused.name, _PAUSED)
    await system.edit(CLAIM, namespace, refused.name, {"spec": {"parameters": {"no_such_parameter": "1"}}})

    async def are_seen() -> bool:
        reasons = [condition(await system.api.get(home.path), "Synced")["reason"] for home in (paused, refused)]
        return reasons == ["Paused", "InvalidValue"]

    await eventually(are_seen, "the pause and the edit are seen", limit_s=_REPORTED_S)

    async with outage(system):
        await asyncio.gather(*(_until_ready_is(home, "False", "ServerUnreachable") for home in homes))
    await asyncio.gather(*(_until_ready_is(home, "True", "Available") for home in homes))

    assert condition(await system.api.get(plain.path), "Synced")["status"] == "True"
    for home in homes:
        await home.untouched()


async def test_a_paused_claim_says_that_its_connection_secret_was_deleted(staff: Staff, namespace: str) -> None:
    system = staff.system
    home = await move_in(system, claim(namespace, "secretless", deletionPolicy="Delete"))
    await system.edit(CLAIM, namespace, home.name, _PAUSED)
    await system.api.delete(SECRET.path(namespace, f"{home.name}-connection"))
    await system.ask_for_a_pass(CLAIM, namespace, home.name)
    await _until_ready_is(home, "False", "SecretNotFound")

    resumed: JsonObject = {"metadata": {"annotations": {"fairlead.dev/paused": None}}}
    await system.edit(CLAIM, namespace, home.name, resumed)
    await _until_ready_is(home, "True", "Available")
    assert await system.binding(namespace, home.name)
