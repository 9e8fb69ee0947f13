"""A simulated cloud beside a rig: its process, its control API, its log of calls, its provider.

Facts come from the simulator's log and state, from PostgreSQL behind it, and from the API server.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import aiohttp

from devcloud.certificates import authority_in
from devcloud.simulator.databases import discard
from devcloud.simulator.server import AUTHORITY
from tests.support.api import JsonObject
from tests.support.processes import Program
from tests.support.simulator_control import headers_of
from tests.support.system import System

QUICK = ("--sweep=1", "--grace=3", "--settle=2", "--resync=600")
"""Flags of a provider that looks often."""
DURATIONS = 0.005
"""What takes four minutes in a cloud takes 1.2 seconds here."""
PORTS = {"aws": 8000, "gcp": 8001, "azure": 8002}
"""The port of each cloud's simulator."""
_FIRST_DATABASES = {"aws": 1_000, "gcp": 21_000, "azure": 41_000}
"""The number of the first database's address."""
_ADDRESS = 2  # of the rig's lease; the first one is the on-prem server's


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a simulator runs beside a rig.

    Attributes:
        folder: All that it keeps.
        host: Its address.
        port: Its TCP port.
        octet: The second number of its databases' addresses.
        tls: A folder with the authority of its certificate; None is without TLS.
    """

    folder: Path
    host: str
    port: int
    octet: int
    tls: Path | None
    control_token: str = field(repr=False)

    @property
    def url(self) -> str:
        """Its one endpoint."""
        return f"{'http' if self.tls is None else 'https'}://{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        """The certificate (PEM) of whoever signs the endpoint's; empty without TLS."""
        return "" if self.tls is None else authority_in(self.tls, AUTHORITY).pem.decode()

    @property
    def databases(self) -> Path:
        """The folder of its databases."""
        return self.folder / "databases"

    def program(self, cloud: str, *own: str, real: bool) -> Program:
        """Return its process; `own` are the arguments that only this cloud has.

        `real` gives its instances databases, and itself a memory beyond its process.
        """
        arguments = (
            *(f"devcloud.{cloud}", f"--listen={self.host}:{self.port}", f"--durations={DURATIONS:g}"),
            f"--control-token-file={self.folder / 'control-token'}",
        )
        kept = (f"--state={self.folder / 'state.json'}", f"--databases={self.databases}", f"--octet={self.octet}")
        secured = () if self.tls is None else (f"--tls={self.tls}",)
        return Program((*arguments, *secured, *own, *(kept if real else ())), log=self.folder / "simulator.log")


def place_beside(system: System, cloud: str, *, has_tls: bool = False) -> Place:
    """Make the folders of a simulator beside a rig, and the token of its control API; for pods it always has TLS."""
    folder, for_pods = system.folder / cloud, system.for_pods
    if folder.exists():
        # Of an earlier module: its log is kept, and a path of a socket may not become longer.
        folder.rename(folder.with_name(f"{cloud}-{len(system.started)}"))
    folder.mkdir(mode=0o700)
    (folder / "databases").mkdir(mode=0o700)
    # Databases of several clouds beside one rig have addresses of one /16.
    (folder / "databases" / "next").write_text(str(_FIRST_DATABASES[cloud]))
    tls = None
    if for_pods is not None:
        tls = for_pods.tls
    elif has_tls:
        tls = folder / "tls"
        tls.mkdir(mode=0o700)
    place = Place(
        folder=folder,
        host=system.lease.address(_ADDRESS) if for_pods is None else for_pods.address,
        port=PORTS[cloud],
        octet=system.lease.octet,
        tls=tls,
        control_token=secrets.token_urlsafe(30),
    )
    (place.folder / "control-token").write_text(place.control_token)
    return place


@asynccontextmanager
async def running(system: System, place: Place, simulator: Program) -> AsyncIterator[aiohttp.ClientSession]:
    """Run a simulator beside a rig for the length of a block; its databases end with it."""
    await start(simulator)
    system.started.append(simulator)
    context = ssl.create_default_context(cadata=place.authority) if place.tls else True
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:
        try:
            yield session
        finally:
            # Not killed: its databases end with it, and their shared memory is given back.
            if simulator.is_running:
                await simulator.terminate()
            discard(place.databases)


async def start(simulator: Program) -> None:
    """Start a simulator; return when it listens."""
    await simulator.start()
    await simulator.until_log("listening on")


@dataclass(slots=True, kw_only=True)
class SimulatedCloud:
    """A simulated cloud and what its judges do to it; each cloud derives its own.

    Attributes:
        cloud: As in `providers.<cloud>`.
        person_principal: What the principal of a person ends with: those calls are nobody's of ours.
        system: The rig beside which it runs.
        url: Its one endpoint.
        simulator: Its process.
    """

    cloud: ClassVar[str]
    person_principal: ClassVar[str]
    system: System
    url: str
    session: aiohttp.ClientSession
    simulator: Program
    control_token: str = field(repr=False)

    @property
    def host(self) -> str:
        """Address and port of the endpoint."""
        return self.url.partition("://")[2]

    async def admit_person(self) -> None:
        """Let the simulator know a person with credentials of their own."""
        raise NotImplementedError

    # Its control

    async def control(self, method: str, path: str, body: object = None) -> Any:
        """Call the simulator's control API, e.g. `("POST", "instances/fl-x", {"vanish": True})`; return its JSON."""
        headers = headers_of(self.control_token)
        async with self.session.request(method, f"{self.url}/_control/{path}", json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status < 400, f"{method} {path}: {answer.status} {text}"
            return await answer.json(content_type=None) if text else None

    async def clock(self, **settings: float) -> JsonObject:
        """Set `advance_s`, `speed` or `durations`."""
        clock: JsonObject = await self.control("POST", "clock", settings)
        return clock

    async def behave(self, **settings: Any) -> None:
        """Change how the cloud behaves: lags, throttling, robots, quotas."""
        await self.control("POST", "behaviour", settings)

    # Who called what

    async def mark(self) -> int:
        """Return the number of the last call so far, for `calls` and `changes`."""
        return max((int(call["seq"]) for call in await self.control("GET", "audit?since=0")), default=0)

    async def calls(self, since: int = 0, *, action: str = "", by: str = "") -> list[JsonObject]:
        """Return the calls after a mark, in order: of an action, by a principal whose name ends so."""
        calls: list[JsonObject] = await self.control("GET", f"audit?since={since}")
        return [
            call
            for call in calls
            if int(call["seq"]) > since and action in {"", call["action"]} and call["principal"].endswith(by)
        ]

    async def changes(self, since: int = 0) -> list[JsonObject]:
        """Return the mutating calls after a mark but the person's, whatever became of them."""
        calls = await self.calls(since)
        return [call for call in calls if call["mutating"] and not call["principal"].endswith(self.person_principal)]

    # Processes

    async def start_provider(self, *flags: str, name: str = "", wait: bool = True) -> Program:
        """Start the cloud's provider under its own ServiceAccount; it may speak to this simulator alone."""
        arguments = (f"--endpoint-override={self.host}", *(flags or QUICK))
        return await self.system.start_provider_of(
            self.cloud, *arguments, name=name or f"provider-{self.cloud}", wait=wait
        )

    @asynccontextmanager
    async def namespace(self) -> AsyncIterator[str]:
        """Have a namespace whose claims go to this cloud."""
        async with self.system.namespace(cloud=self.cloud) as name:
            yield name

    async def child(self, namespace: str, claim_name: str, kind: str) -> JsonObject:
        """Return the one child of a kind that a claim has."""
        children = [child for child in await self.system.children(namespace, claim_name) if child["kind"] == kind]
        assert len(children) == 1, f"{claim_name} has {len(children)} {kind}s"

        return children[0]
