"""Both processes behind one line to the API server, which can be cut."""

from __future__ import annotations

import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.tcp_proxy import TcpProxy, through
from tests.support.metric_labels import BOUNDED
from tests.support.processes import Program
from tests.support.system import System
from tests.support.waiting import eventually

ACCOUNTS = {
    "composer": ("fairlead-system", "fairlead-composer"),
    "provider": ("fairlead-onprem", "fairlead-provider-onprem"),
}
# Between its loss and its end lies the time in which work that hangs must end, on a machine that is busy.
LEASE = ("--lease-duration=8", "--lease-renew-deadline=4", "--lease-retry=0.5")
LIMIT_S = 120.0


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

        return await eventually(says, f"{name} is {'' if ready else 'not '}ready", limit_s=LIMIT_S)

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
            straight = await system.plane.service_account_kubeconfig(*ACCOUNTS[name])
            kubeconfig = through(straight, line.port, folder)
            pace = ("--sweep", "1", "--resync", "5") if name == "provider" else ()
            processes[name] = await start(*LEASE, *pace, "--kubeconfig", str(kubeconfig))
        yield Behind(system, line, processes)
    finally:
        await line.close()
