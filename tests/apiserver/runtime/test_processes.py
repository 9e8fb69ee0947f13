"""Whole processes on the real API server: they lead one at a time, survive its absence, and end cleanly."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from runtime.kube_client import KubeClient
from runtime.objects import CONFIG_MAPS, LEASES, Key
from tests.apiserver.runtime.test_kube_client import config_map
from tests.runtime.tcp_proxy import Line, TcpProxy
from tests.support.processes import Program
from tests.support.waiting import eventually

MODULE = "tests.apiserver.runtime.caller_process"
Lines = Callable[[], Awaitable[tuple[TcpProxy, Path]]]


@dataclass
class Call:
    by: str
    begun: float
    ended: float


@dataclass
class Caller:
    program: Program
    proxy: TcpProxy
    port: int

    def calls(self) -> list[Call]:
        lines = (line for line in self.program.text().splitlines() if '"msg":"call"' in line)
        return [msgspec.convert(msgspec.json.decode(line), Call, strict=False) for line in lines]

    async def until_calls_after(self, instant: float, *, limit_s: float = 60.0) -> Call:
        async def calling() -> Call | None:
            return next((call for call in self.calls() if call.begun > instant), None)

        return await eventually(calling, f"process {self.program.pid} makes calls", limit_s=limit_s)

    async def status(self, path: str) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        head = (await reader.read()).split(None, 2)
        writer.close()
        return int(head[1])


def overlaps(*callers: Caller) -> list[tuple[Call, Call]]:
    """Return each pair of calls of two processes that ran at one time."""
    calls = sorted((call for caller in callers for call in caller.calls()), key=lambda call: call.begun)
    return [(call, other) for call, other in pairwise(calls) if call.by != other.by and other.begun < call.ended]


@pytest.fixture
async def callers(
    kube: KubeClient, namespace: str, lines: Lines, programs: Callable[..., Program]
) -> Callable[..., Awaitable[Caller]]:
    """Start processes, each on a line of its own; one object gives them work for ever."""
    await kube.create(CONFIG_MAPS, config_map(namespace, "work", metadata={"labels": {"call": "yes"}}), manager="m")

    async def start(*lease: str, line: Line = Line.OPEN) -> Caller:
        proxy, kubeconfig = await lines()
        await proxy.become(line)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        program = programs(MODULE, namespace, str(port), *lease, kubeconfig=kubeconfig)
        await program.start()
        return Caller(program, proxy, port)

    return start


async def a_pair(callers: Callable[..., Awaitable[Caller]]) -> tuple[Caller, Caller]:
    leader = await callers()
    await leader.until_calls_after(0)
    standby = await callers()
    await standby.program.until_healthy(standby.port)
    return leader, standby


async def test_a_leader_cut_off_makes_no_call_once_another_leads(callers: Callable[..., Awaitable[Caller]]) -> None:
    await cut_off_it_makes_no_call(callers, Line.HUNG)


async def cut_off_it_makes_no_call(callers: Callable[..., Awaitable[Caller]], line: Line) -> None:
    """Cut a leader off in a way; prove that it makes no call beside its successor, and leads again after it."""
    leader, standby = await a_pair(callers)
    await leader.proxy.become(line)
    await standby.until_calls_after(time.monotonic())
    await leader.proxy.become(Line.OPEN)
    await standby.program.kill9()
    await leader.until_calls_after(time.monotonic())

    assert overlaps(leader, standby) == []
    assert leader.program.is_running


async def test_a_frozen_leader_begins_no_call_when_it_wakes(callers: Callable[..., Awaitable[Caller]]) -> None:
    leader, standby = await a_pair(callers)
    leader.program.freeze()
    await standby.until_calls_after(time.monotonic())
    leader.program.thaw()
    woken = time.monotonic()
    await standby.until_calls_after(woken)

    async def decided() -> bool:
        # With a call still in flight it ends hard, as its lease is another's; else it stands by.
        return not leader.program.is_running or "leadership lost" in leader.program.text()

    await eventually(decided, "the woken process gives way")
    begun_awake = [call for call in leader.calls() if call.begun > woken]

    assert begun_awake == []
    assert overlaps(leader, standby)[1:] == []  # the call that was frozen in its middle ends late, and no other


async def test_a_clean_stop_ends_what_began_and_frees_the_lease(
    callers: Callable[..., Awaitable[Caller]], kube: KubeClient, namespace: str
) -> None:
    only = await callers()
    await only.until_calls_after(0)
    status = await only.program.terminate()
    lease = await kube.get(LEASES, Key(namespace, "caller"))

    assert status == 0
    assert lease["spec"]["holderIdentity"] == ""


async def test_a_process_waits_for_an_api_server_that_is_away_at_its_start(
    callers: Callable[..., Awaitable[Caller]],
) -> None:
    waiting = await callers(line=Line.REFUSED)

    async def answers() -> bool:
        try:
            return await waiting.status("/healthz") == 200
        except OSError:
            return False

    await eventually(answers, "it is alive")
    await waiting.program.until_log("waiting for the API server")
    ready = await waiting.status("/readyz")
    await waiting.proxy.become(Line.OPEN)
    await waiting.until_calls_after(0)

    assert ready == 503
    assert await waiting.status("/readyz") == 200
