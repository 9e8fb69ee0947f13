"""Rotations under an application that reads its connection Secret before each login, several times a second.

The provider is killed in each of them, at another moment after the token. Every login is counted, with the password
that the Secret held; a failed one is of a kind that the caller judges.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.support.api import ApiError
from tests.support.kinds import CLAIM, SECRET, Kind, is_ready
from tests.support.kinds import claim as new_claim
from tests.support.processes import Program
from tests.support.staff import QUICK_LEASE
from tests.support.system import System, decoded
from tests.support.waiting import eventually

GRACE_S = 3
"""How long a former login works: longer than an application takes from reading the Secret to the login."""
FLAGS = (*QUICK_LEASE, f"--rotation-grace={GRACE_S}")
_LIMIT_S = 180.0
# A prime number of parts of a rotation's first seconds: the moments do not repeat.
_KILL_PARTS, _KILL_WITHIN_S = 7, 2.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many claims rotate side by side, how often, and how often their applications log in."""

    claims: int
    rounds: int
    login_every_s: float = 0.1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One login: `at` when the Secret was read, by the monotonic clock in seconds; `refusal` is empty if it worked."""

    at: float
    username: str
    password: str
    refusal: str


@dataclass(slots=True)
class Application:
    """An application of one claim; `requested_at` are the moments of the rotations' tokens.

    `kind` is that of the object whose spec holds the token.
    """

    system: System
    namespace: str
    name: str
    attempts: list[Attempt] = field(default_factory=list)
    requested_at: list[float] = field(default_factory=list)
    kind: Kind = CLAIM

    async def binding(self) -> dict[str, str]:
        """Return what the connection Secret says now."""
        return decoded(await self.system.api.get(SECRET.path(self.namespace, f"{self.name}-connection")))

    async def run(self, authority: Path, every_s: float) -> None:
        """Log in again and again until cancelled."""
        while True:
            begun = time.monotonic()
            await self._attempt(begun, authority)
            await asyncio.sleep(max(0.0, begun + every_s - time.monotonic()))

    async def _attempt(self, at: float, authority: Path) -> None:
        binding, refusal = await self.binding(), ""
        if not self.attempts:
            await asyncio.to_thread(authority.write_text, binding["certificates"])
        try:
            connection = await psycopg.AsyncConnection.connect(
                host=binding["host"],
                port=int(binding["port"]),
                dbname=binding["database"],
                user=binding["username"],
                password=binding["password"],
                sslmode=binding["sslmode"],
                sslrootcert=str(authority),
                connect_timeout=10,
            )
            await connection.close()
        except psycopg.OperationalError as error:
            refusal = str(error).strip()[-160:] or "refused"
        self.attempts.append(Attempt(at, binding["username"], binding["password"], refusal))

    @property
    def failed(self) -> list[Attempt]:
        """Return the logins that did not work."""
        return [attempt for attempt in self.attempts if attempt.refusal]

    def unexplained(self) -> list[Attempt]:
        """Return failed logins that no single login's rotation explains.

        Explained is one by a password for whose successor somebody has asked, while the Secret does not hold that yet:
        the database took the next password, and nobody can publish it before a login proved that.
        """
        return [attempt for attempt in self.failed if not self._is_explained(attempt)]

    def _is_explained(self, failure: Attempt) -> bool:
        first = min(attempt.at for attempt in self.attempts if attempt.password == failure.password)
        last = max(attempt.at for attempt in self.attempts if attempt.password == failure.password)
        is_followed = any(attempt.at > last for attempt in self.attempts)
        worked = [
            attempt.at for attempt in self.attempts if attempt.password == failure.password and not attempt.refusal
        ]
        requests = [at for at in self.requested_at if first <= at <= failure.at]
        return bool(requests) and is_followed and all(at < failure.at for at in worked)

    def locked_out_s(self) -> float:
        """Return the longest time in a row in which no login worked, in seconds."""
        longest, since = 0.0, None
        for attempt in self.attempts:
            if attempt.refusal:
                since = attempt.at if since is None else since
            elif since is not None:
                longest, since = max(longest, attempt.at - since), None
        return longest


@dataclass(slots=True)
class Rotations:
    """Applications side by side, and the provider that is killed and started again."""

    system: System
    start: Callable[[], Awaitable[Program]]
    provider: Program
    applications: list[Application] = field(default_factory=list)

    async def move_in(self, namespace: str, names: list[str]) -> None:
        """Make claims and wait until each has its Secret."""
        for name in names:
            await self.system.create(CLAIM, new_claim(namespace, name, deletionPolicy="Delete"))
        for name in names:
            await self.system.until(CLAIM, namespace, name, is_ready, limit_s=_LIMIT_S)
            self.applications.append(Application(self.system, namespace, name))

    @contextlib.asynccontextmanager
    async def at_work(self, login_every_s: float) -> AsyncIterator[None]:
        """Have the applications log in for the length of a block."""
        folder = self.system.folder
        tasks = [
            asyncio.create_task(app.run(folder / f"{app.namespace}-{app.name}.pem", login_every_s))
            for app in self.applications
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in ended if not isinstance(result, asyncio.CancelledError)] == []

    async def rotate(self, number: int) -> None:
        """Rotate the passwords of all, kill the provider in the middle, start it again, wait for the new ones."""
        before = {application.name: (await application.binding())["password"] for application in self.applications}
        for application in self.applications:
            application.requested_at.append(time.monotonic())
            spec = {"passwordRotation": {"token": secrets.token_hex(4)}}
            await self.system.edit(application.kind, application.namespace, application.name, {"spec": spec})
        await asyncio.sleep(_KILL_WITHIN_S * (number % _KILL_PARTS) / _KILL_PARTS)
        await self.provider.kill9()
        self.provider = await self.start()
        for application in self.applications:
            await self._until_followed(application, before[application.name])
        # The former login's end is part of the rotation.
        await asyncio.sleep(GRACE_S + 1)

    async def _until_followed(self, application: Application, former: str) -> None:
        async def is_followed() -> bool:
            with contextlib.suppress(ApiError):
                return (await application.binding())["password"] != former
            return False

        await eventually(is_followed, f"{application.name} has another password", limit_s=_LIMIT_S)
        await self.system.until(application.kind, application.namespace, application.name, is_ready, limit_s=_LIMIT_S)

    def summary(self, title: str) -> str:
        """Return the figures in one line."""
        attempts = sum(len(application.attempts) for application in self.applications)
        failed = sum(len(application.failed) for application in self.applications)
        rotated = sum(len(application.requested_at) for application in self.applications)
        longest = max(application.locked_out_s() for application in self.applications)
        return f"{title}: {rotated} rotations, {attempts} logins, {failed} failed, at most {longest:.1f} s in a row"
