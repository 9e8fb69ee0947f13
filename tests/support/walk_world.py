"""Where random walks happen: the platform, its processes behind lines that can be cut, and its cloud as it is."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import hashlib
import tempfile
import urllib.parse
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg

from tests.runtime.tcp_proxy import TcpProxy, through
from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, LEASE, Kind, condition
from tests.support.processes import Program
from tests.support.system import System
from tests.support.waiting import eventually, in_background

COMPOSER, PROVIDER = "composer", "provider"
_LOGIN_S = 4
_LOOK_S = 0.5
# Short, and yet outlived by a busy machine.
_LEASE = ("--lease-duration=8", "--lease-renew-deadline=5", "--lease-retry=1")
_LIMIT_S = 300.0


class Cloud(Protocol):
    """One look at the cloud."""

    @property
    def unreachable(self) -> str:
        """Return why nobody can log in anywhere now; empty where they can."""

    def gap(self, claim: JsonObject, binding: dict[str, str]) -> str:
        """Return how the cloud differs from a claim's spec, or an empty text."""


class Inhabitant(Protocol):
    """One claim."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(slots=True, kw_only=True)
class World(abc.ABC):
    """A platform for walks.

    Attributes:
        system: The rig.
        line: What both processes reach the API server through.
        kubeconfigs: Each process's way through the line.
        programs: What runs now.
        labels: Of the namespaces whose claims come here.
        cut: Whether the line to the API server is cut.
        resync_s: After what time the provider looks at everything again.
        ended: How many processes ended by themselves.
        started: When each process was started last.
    """

    system: System
    line: TcpProxy
    kubeconfigs: dict[str, Path]
    programs: dict[str, Program] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    resync_s: float = 5.0
    ended: int = 0
    started: dict[str, datetime] = field(default_factory=dict)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    # What this cloud is

    @property
    @abc.abstractmethod
    def child_kind(self) -> Kind:
        """Return the kind of the child that holds the data."""

    @abc.abstractmethod
    async def look(self) -> Cloud:
        """Read the cloud, without the code under test."""

    @abc.abstractmethod
    async def move_in(self, walkers: Sequence[Inhabitant]) -> None:
        """Make a claim for each, wait until all are Ready, and plant a row in each database."""

    @abc.abstractmethod
    async def losses(self, walkers: Iterable[Inhabitant]) -> list[str]:
        """Return which of the planted rows and databases are no longer there, in words."""

    @abc.abstractmethod
    async def launch_provider(self, *flags: str) -> Program:
        """Start the provider; the flags lead it through the line."""

    # Processes

    async def start(self) -> None:
        """Start what does not run, and wait until it is healthy."""
        async with self._starting:
            names = [name for name in (COMPOSER, PROVIDER) if not self.runs(name)]
            await asyncio.gather(*(self._start(name) for name in names))

    def supervised(self) -> AbstractAsyncContextManager[None]:
        """Return a block in which a program that ends by itself, as one that lost its Lease, is started again."""
        return in_background(self._supervise())

    async def _supervise(self) -> None:
        while True:
            if not self._starting.locked() and not self._all_run:
                self.ended += 1
                with contextlib.suppress(AssertionError):
                    await self.start()
            await asyncio.sleep(_LOOK_S)

    @property
    def can_report(self) -> bool:
        """Return whether the processes run and can say what they know."""
        return not self.cut and not self._starting.locked() and self._all_run

    async def all_lead(self) -> bool:
        """Return whether both processes have led since they were started: nobody speaks while a dead one's Lease runs.

        By the Leases' renewTime (coordination.k8s.io/v1), which only who leads writes.
        """
        leases = await self.system.api.items(LEASE.path())
        return all(self._has_led(name, leases) for name in (COMPOSER, PROVIDER))

    def _has_led(self, name: str, leases: list[JsonObject]) -> bool:
        renewals = (
            datetime.fromisoformat(lease["spec"]["renewTime"])
            for lease in leases
            if lease["metadata"]["name"].startswith(f"fairlead-{name}")
        )
        return name in self.started and any(renewed >= self.started[name] for renewed in renewals)

    @property
    def _all_run(self) -> bool:
        return self.runs(COMPOSER) and self.runs(PROVIDER)

    def runs(self, name: str) -> bool:
        return name in self.programs and self.programs[name].is_running

    async def kill(self, *names: str) -> None:
        """Kill -9, and start them again."""
        async with self._starting:
            await asyncio.gather(*(self.programs[name].kill9() for name in names))
            await asyncio.gather(*(self._start(name) for name in names))

    async def end(self) -> None:
        """Kill what runs, for good."""
        await asyncio.gather(*(program.kill9() for program in self.programs.values()))

    async def _start(self, name: str) -> None:
        flags = (*_LEASE, "--kubeconfig", str(self.kubeconfigs[name]))
        self.started[name] = datetime.now(UTC)
        if name == COMPOSER:
            # It watches no Secrets: one that is deleted is missed at the next look at its claim.
            self.programs[name] = await self.system.start_composer(*flags, "--resync=5")
        else:
            self.programs[name] = await self.launch_provider(*flags)

    # Logins

    async def refusal(self, binding: dict[str, str]) -> str:
        """Log in as an application does, with what a connection Secret holds; return why that failed."""
        try:
            authority = self.system.folder / f"ca-{hashlib.sha256(binding['certificates'].encode()).hexdigest()}.pem"
            if not authority.exists():
                authority.write_text(binding["certificates"])
            connection = await psycopg.AsyncConnection.connect(
                host=binding["host"],
                port=int(binding["port"]),
                dbname=binding["database"],
                user=binding["username"],
                password=binding["password"],
                sslmode="verify-full",
                sslrootcert=str(authority),
                connect_timeout=_LOGIN_S,
                autocommit=True,
            )
        except (psycopg.Error, KeyError) as error:
            return f"{type(error).__name__} {str(error).strip()[-200:]}"
        await connection.close()
        return ""

    async def child(self, walker: Inhabitant) -> JsonObject | None:
        """Return the child that holds a claim's data, if there is one."""
        wanted = "fairlead.dev/claim-name"
        for obj in await self.system.api.items(self.child_kind.path(walker.namespace)):
            if obj["metadata"].get("annotations", {}).get(wanted) == walker.name:
                return obj
        return None

    async def move_out(self, namespace: str) -> list[str]:
        """Delete every claim of a namespace; return those that do not go, in words."""
        claims = await self.system.api.items(CLAIM.path(namespace))
        for obj in claims:
            await self.system.api.delete(CLAIM.path(namespace, obj["metadata"]["name"]))

        async def gone() -> bool:
            return not await self.system.api.items(CLAIM.path(namespace))

        with contextlib.suppress(AssertionError):
            await eventually(gone, "every claim is gone", limit_s=_LIMIT_S, every_s=1.0)
        left = await self.system.api.items(CLAIM.path(namespace))
        return [f"{obj['metadata']['name']} does not go: {condition(obj, 'Ready')}" for obj in left]

    async def until_all(self, kind: Kind, namespace: str, names: Iterable[str], holds: Any) -> None:
        """Wait until something holds of each of these objects."""
        left = set(names)

        async def met() -> bool:
            for obj in await self.system.api.items(kind.path(namespace)):
                if holds(obj):
                    left.discard(obj["metadata"]["name"])
            return not left

        try:
            await eventually(met, "every object is in that state", limit_s=_LIMIT_S, every_s=1.0)
        except AssertionError:
            raise AssertionError(f"{kind.kind} not in that state: {sorted(left)}") from None


@asynccontextmanager
async def behind_one_line(
    system: System, provider: Mapping[str, tuple[str, str]]
) -> AsyncIterator[tuple[TcpProxy, dict[str, Path]]]:
    """Put a line before the API server; yield it with the kubeconfigs of composer and provider that lead through it."""
    line = TcpProxy(urllib.parse.urlsplit(system.plane.server).port or 0)
    await line.start()
    kubeconfigs = {}
    for name, account in {COMPOSER: ("fairlead-system", "fairlead-composer"), **provider}.items():
        folder = Path(tempfile.mkdtemp(prefix=f"walk-{name}-", dir=system.folder))
        kubeconfigs[name] = through(await system.plane.service_account_kubeconfig(*account), line.port, folder)
    try:
        yield line, kubeconfigs
    finally:
        await line.close()
