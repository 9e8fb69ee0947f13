"""Whose database a claim has, and how one looks at it without the code under test: ours, or another operator's.

Each side plants a row in the database of a claim and says later where that row is, whether the claim's Secret leads to
it, and who names it.
"""

from __future__ import annotations

import abc
import asyncio
from dataclasses import dataclass, field
from typing import Literal

import psycopg

from tests.support.api import JsonObject
from tests.support.foreign import ForeignApi, Operator
from tests.support.home import Home, furnish
from tests.support.kinds import DATABASE, EVENT, Kind, composition
from tests.support.system import System

Place = Literal["here", "retired", "gone"]
Claim = tuple[str, str]
_LOGINS_AT_ONCE = 8


class Side(abc.ABC):
    """The databases of one kind.

    Attributes:
        system: The rig.
        kind: The kind of the child that holds the data.
        name: For names of objects and for the table.
        children: The name of the child that holds a claim's data.
    """

    system: System
    kind: Kind
    name: str
    children: dict[Claim, str]

    @abc.abstractmethod
    def composition(self, name: str, *, with_data: bool = True) -> JsonObject:
        """Return a Composition of a ConfigMap and a database; or of the ConfigMap alone."""

    @abc.abstractmethod
    async def plant(self, claim: Claim) -> None:
        """Put a row into the database of a claim that is Ready."""

    @abc.abstractmethod
    async def moved_in(self) -> None:
        """Do what has to follow once every claim has its data."""

    @abc.abstractmethod
    async def places(self, claims: list[Claim]) -> dict[Claim, Place]:
        """Look where the planted rows are now."""

    @abc.abstractmethod
    async def leads_home(self, claim: Claim, secret: dict[str, str]) -> bool:
        """Return whether the content of a connection Secret logs in to the database with the planted row."""

    @abc.abstractmethod
    async def is_recorded(self, claim: Claim) -> bool:
        """Return whether the database itself, or what stands for it, names its claim."""

    async def is_named(self, claim: Claim) -> bool:
        """Return whether somebody who looks for a database that was left over finds its name and its claim's."""
        if await self.is_recorded(claim):
            return True
        events = await self.system.api.items(EVENT.path(claim[0]))
        about = [event for event in events if event.get("regarding", {}).get("name") == claim[1]]
        return any(event["reason"] in {"LetGo", "BackupTaken", "DatabaseLost"} for event in about)

    async def know_children(self, namespace: str) -> None:
        """Note which object holds which claim's data, while the objects still say so."""
        for child in await self.system.api.items(self.kind.path(namespace)):
            meta = child["metadata"]
            self.children[namespace, meta["annotations"]["fairlead.dev/claim-name"]] = meta["name"]

    def child_path(self, claim: Claim) -> str:
        """Return the path of the object that holds a claim's data."""
        return self.kind.path(claim[0], self.children[claim])


@dataclass(slots=True, eq=False)
class OnPrem(Side):
    """PostgresDatabases of the rig's provider, on the rig's PostgreSQL."""

    system: System
    kind: Kind = DATABASE
    name: str = "onprem"
    children: dict[Claim, str] = field(default_factory=dict)
    homes: dict[Claim, Home] = field(default_factory=dict)
    _logins: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LOGINS_AT_ONCE))

    def composition(self, name: str, *, with_data: bool = True) -> JsonObject:
        settings = {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}}
        policies = ["Orphan", "Snapshot", "Delete"]
        if not with_data:
            return composition(name, settings, deletionPolicies=policies)
        spec = {"forProvider": {"databaseName": "app", "username": "app"}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        database = {"name": "database", "template": template}
        return composition(name, settings, database, deletionPolicies=policies, connection={"from": "database"})

    async def plant(self, claim: Claim) -> None:
        async with self._logins:
            self.homes[claim] = await furnish(self.system, *claim)

    async def moved_in(self) -> None:
        """Nothing has to follow."""

    async def places(self, claims: list[Claim]) -> dict[Claim, Place]:
        rows = await self.system.server.server.execute("SELECT oid::text, datname FROM pg_catalog.pg_database")
        names = {str(oid): str(name) for oid, name in rows}
        places: dict[Claim, Place] = {}
        for claim in claims:
            home = self.homes[claim]
            name = names.get(home.oid)
            if name is None or await home.rows_behind() != [home.row]:
                places[claim] = "gone"
            else:
                places[claim] = "here" if name == home.database else "retired"
        return places

    async def leads_home(self, claim: Claim, secret: dict[str, str]) -> bool:
        try:
            async with self._logins, await self.system.login_by(secret) as connection:
                cursor = await connection.execute("SELECT note FROM keepsake")
                return await cursor.fetchall() == [(self.homes[claim].row,)]
        except psycopg.Error:
            return False

    async def is_recorded(self, claim: Claim) -> bool:
        rows = await self.system.server.server.execute(
            "SELECT oid::text, namespace, name FROM fairlead.ownership", database=self.system.server.database
        )
        return (self.homes[claim].oid, *claim) in rows


@dataclass(slots=True, eq=False)
class Foreign(Side):
    """Objects of another operator's kind; the operator's own store says what they hold."""

    operator: Operator
    system: System = field(init=False)
    kind: Kind = field(init=False)
    name: str = "foreign"
    children: dict[Claim, str] = field(default_factory=dict)
    planted: dict[Claim, tuple[tuple[str, str], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.system, self.kind = self.operator.system, self.api.kind

    @property
    def api(self) -> ForeignApi:
        return self.operator.api

    def composition(self, name: str, *, with_data: bool = True) -> JsonObject:
        return self.api.composition(name, with_data=with_data)

    async def plant(self, claim: Claim) -> None:
        key = (claim[0], self.children[claim])
        row = f"{claim} {key}"
        self.operator.databases[key].rows.append(row)
        self.planted[claim] = (key, row)

    async def places(self, claims: list[Claim]) -> dict[Claim, Place]:
        await self.operator.look()
        return {claim: "here" if self._holds(claim) else "gone" for claim in claims}

    async def moved_in(self) -> None:
        if self.api.late:
            await self.operator.label()

    def _holds(self, claim: Claim) -> bool:
        key, row = self.planted[claim]
        return key in self.operator.databases and self.operator.databases[key].rows == [row]

    async def leads_home(self, claim: Claim, secret: dict[str, str]) -> bool:
        data = self.operator.reached_by(secret.get("password", ""))
        _key, row = self.planted[claim]
        return data is not None and data.rows == [row]

    async def is_recorded(self, claim: Claim) -> bool:
        key, _row = self.planted[claim]
        child = await self.system.api.find(self.kind.path(*key))
        if child is None:
            return False
        return bool(child["metadata"].get("annotations", {}).get("fairlead.dev/claim-name") == claim[1])
