"""What a step does on a server, real or in memory, and what is shown of it: statements, rows, refusals, errors."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import psycopg

from apis.teardown import Policy
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Present
from providers.external.ownership import Owner
from providers.external.sql.session import Session
from providers.onprem import catalog
from providers.onprem.client import OnPremCloud
from providers.onprem.facts import broken_rules
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.translate import wanted
from runtime.errors import Failure
from tests.simulation.postgres.sequences import Names, Step

PASSWORDS: Final = ("Correct1horse2battery3", "Another1password2here3")
FENCE: Final = Fence(until=time.monotonic() + 86_400, leads=lambda: True, monotonic=time.monotonic)
_QUESTIONS: Final = {sql: name for name, sql in vars(catalog).items() if name.isupper() and isinstance(sql, str)}
_VERIFIER: Final = re.compile(r"SCRAM-SHA-256\$[^']*")


class Recording(Session):
    """Writes down each statement with its rows or its refusal."""

    record: list[str]
    names: Names

    async def _run(
        self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float, fence: Fence | None = None
    ) -> list[tuple[Any, ...]]:
        said = _QUESTIONS.get(sql) or _VERIFIER.sub("SCRAM", sql)
        try:
            rows = await super()._run(sql, parameters, at_least_s=at_least_s, fence=fence)
        except psycopg.Error as error:
            self._note(f"{said} -> {error.sqlstate} {error.diag.message_primary}")
            raise
        if sql == catalog.SERVER:
            rows[0][0]["exposed"] = [name for name in rows[0][0]["exposed"] or () if self.names.tail in name]
        shown = [row for row in rows if sql != catalog.ALL or self.names.tail in row[0]]
        self._note(f"{said} -> {msgspec.json.encode(shown, order='sorted').decode()}")
        return rows

    def _note(self, line: str) -> None:
        # A server ends sessions a moment after the request.
        if not (line.startswith("BUSY") and self.record and self.record[-1].startswith("BUSY")):
            self.record.append(line)


@dataclass
class DatabaseOfSpec:
    """What the provider knows of one database besides the server's answers."""

    target: Target[PostgresDatabaseParameters]
    seen: Any = None

    def credential(self, *, other: bool = False) -> Credential:
        """Return the login that is published, or the other one."""
        active = self.target.active
        login = active[:-1] + ("b" if active.endswith("a") else "a") if other else active
        return Credential(login, PASSWORDS[login.endswith("b")])


def database_of_spec(names: Names, place: int) -> DatabaseOfSpec:
    """Return what is known of a database at first; the two are the same claim under two identities."""
    fields = {"databaseName": "orders", "username": "app", "connectionLimit": 20, "parameters": {"work_mem": "8MB"}}
    spec, tail = msgspec.convert(fields, PostgresDatabaseParameters), names.tails[place]
    owner = Owner("installation", f"uid-{tail}", f"claim-{names.tail}", "team", "orders", "database")
    return DatabaseOfSpec(Target(names.database(place), spec, owner, tail, active=names.logins(place)[0]))


@dataclass
class Side(ABC):
    """One server under a sequence."""

    names: Names
    cloud: OnPremCloud
    record: list[str] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [database_of_spec(self.names, place) for place in (0, 1)]

    @abstractmethod
    async def run(self, sql: str, database: str) -> str:
        """Run a statement as the superuser in a database; return `done` or what it was refused with."""

    @abstractmethod
    async def hold(self, login: Credential, database: str) -> bool:
        """Open a session as an application does and keep it; return whether it was let in."""

    @abstractmethod
    async def end_sessions(self) -> None:
        """End all sessions that are kept."""

    @abstractmethod
    async def catalogs(self) -> list[str]:
        """Return what the catalogs hold of this sequence's things."""

    async def take(self, step: Step) -> list[str]:
        """Take a step; return the statements that it led to, and what came of it."""
        self.record.clear()
        try:
            came = await self._taken(step, self.known[step.place])
        except Failure as failure:
            came = f"{type(failure).__name__} {getattr(failure, 'reason', '')} {failure}"
        return [*self.record, str(came)]

    async def _taken(self, step: Step, of: DatabaseOfSpec) -> object:
        match step.verb:
            case "stranger" | "table":
                return await self.run(step.sql, "fairlead" if step.verb == "table" else "postgres")
            case "strangers inside":
                return await self.run(step.sql, of.target.name)
            case "own":
                async with self.cloud._sessions.own("try") as session:
                    await session.change(step.sql, FENCE)
                    return await session.rows("RESET ROLE")
            case "inside":
                async with self.cloud._sessions.inside(of.target.name, "try") as session:
                    return await session.change(step.sql, FENCE)
            case "hold":
                return await self.hold(of.credential(), of.target.name)
            case _:
                return await self._unseen(step, of)

    async def _unseen(self, step: Step, of: DatabaseOfSpec) -> object:  # noqa: PLR0911 - an arm for each kind of step
        """Do what the provider does without looking first, else have it look."""
        cloud, target = self.cloud, of.target
        match step.verb:
            case "create":
                return await cloud.create(target, of.credential(), FENCE)
            case "finish":
                return await cloud.delete(target, None, Policy.DELETE, FENCE)
            case "latest":
                return await cloud.latest(target)
            case "list":
                listed = await cloud.list()
                return sorted(item for item in listed.items.items() if self.names.tail in item[0])
            case "predecessors":
                return await cloud.find_predecessors(target.owner)
            case "log in":
                return await cloud.try_login(cloud.endpoint(target.name), of.credential())
            case _:
                return await self._seen(step, of)

    async def _seen(self, step: Step, of: DatabaseOfSpec) -> object:
        if step.verb == "let go":
            await self.end_sessions()
        if step.verb == "edit":
            of.target = replace(of.target, spec=msgspec.structs.replace(of.target.spec, connection_limit=33))
        seen = await self.cloud.observe(of.target)
        if isinstance(seen, Present):
            of.seen = seen.observed
            await self._act(step.verb, of)
        return seen

    async def _act(self, verb: str, of: DatabaseOfSpec) -> None:
        cloud, target, observed = self.cloud, of.target, of.seen
        match verb:
            case "update":
                changes = (*diff(target.spec, observed.spec), *broken_rules(wanted(target), observed.facts))
                await cloud.update(target, observed, changes, FENCE)
            case "set":
                await cloud.set(target, observed, of.credential(), FENCE)
            case "rotate":
                login = of.credential(other=True)
                await cloud.set(target, observed, login, FENCE)
                of.target = replace(target, active=login.username, retiring=target.active)
            case "disable":
                of.target = replace(target, retiring="")
                await cloud.disable(target, observed, of.credential(other=True).username, FENCE)
            case "adopt":
                await cloud.adopt(target, observed, FENCE)
            case "release":
                await cloud.release(target, observed, FENCE)
            case "delete" | "retire":
                policy = Policy.DELETE if verb == "delete" else Policy.SNAPSHOT
                await cloud.delete(target, observed, policy, FENCE)
            case "remember":
                of.target = replace(target, incarnation=observed.incarnation)
            case _:
                return


_NUMBER: Final = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{12}|\d{3,})\b")


@dataclass
class Plain:
    """Gives numbers that each server chooses, as oids, the same names on both: by when they were first shown."""

    known: dict[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Return a text with such numbers named."""
        return _NUMBER.sub(lambda match: self.known.setdefault(match[0], f"<{len(self.known)}>"), text)
