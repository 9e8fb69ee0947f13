"""What hits all claims of a round of random walks: outages, and processes that die."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from devcloud import daemons
from tests.runtime.tcp_proxy import Line
from tests.support.walk_oracle import Oracle
from tests.support.walk_world import COMPOSER, PROVIDER, World

Happening = Callable[[World, Oracle], AbstractAsyncContextManager[None]]
_SHORT, _LONG = 1, 9
"""Looks of the oracle, each about two seconds."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that hits all claims.

    Attributes:
        stops_acts: Acts cannot be done while it lasts.
    """

    name: str
    happen: Happening
    stops_acts: bool = False


@asynccontextmanager
async def _nothing(world: World, oracle: Oracle) -> AsyncIterator[None]:
    del world, oracle
    yield


def _server_stopped(samples: int) -> Happening:
    @asynccontextmanager
    async def happen(world: World, oracle: Oracle) -> AsyncIterator[None]:
        async with world.system.server_away():
            yield
            await oracle.samples_more(samples)

    return happen


def _server_hangs(samples: int) -> Happening:
    @asynccontextmanager
    async def happen(world: World, oracle: Oracle) -> AsyncIterator[None]:
        proxy = daemons.load(world.system.folder / "onprem" / "front.pid.json")
        assert proxy is not None
        os.kill(proxy.pid, signal.SIGSTOP)
        try:
            yield
            await oracle.samples_more(samples)
        finally:
            os.kill(proxy.pid, signal.SIGCONT)

    return happen


def _api_server_away(line: Line, samples: int) -> Happening:
    @asynccontextmanager
    async def happen(world: World, oracle: Oracle) -> AsyncIterator[None]:
        world.cut = True
        await world.line.become(line)
        try:
            yield
            await oracle.samples_more(samples)
        finally:
            await world.line.become(Line.OPEN)
            world.cut = False

    return happen


def _killed(*names: str) -> Happening:
    @asynccontextmanager
    async def happen(world: World, oracle: Oracle) -> AsyncIterator[None]:
        del oracle
        dying = asyncio.create_task(world.kill(*names))
        yield
        await dying

    return happen


NOTHING = Event("nothing", _nothing)
KILLS = (
    Event("composer killed", _killed(COMPOSER)),
    Event("provider killed", _killed(PROVIDER)),
    Event("both killed", _killed(COMPOSER, PROVIDER)),
)
API_OUTAGES = (
    Event("API server refuses", _api_server_away(Line.REFUSED, 3)),
    Event("API server hangs", _api_server_away(Line.HUNG, 3)),
    Event("API server resets", _api_server_away(Line.DROPPED, _SHORT)),
)
SERVER_OUTAGES = (
    Event("server stopped", _server_stopped(_SHORT), stops_acts=True),
    Event("server stopped for long", _server_stopped(_LONG), stops_acts=True),
    Event("server hangs", _server_hangs(_SHORT)),
    Event("server hangs for long", _server_hangs(_LONG)),
)
EVENTS = (NOTHING, *KILLS, *API_OUTAGES, *SERVER_OUTAGES)
