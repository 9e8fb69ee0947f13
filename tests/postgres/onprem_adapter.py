"""The on-prem cloud under the contract: a real PostgreSQL, whose superuser is the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import psycopg

from devcloud.onprem import OnPremServer
from providers.external.metering import Meter
from providers.external.provider import Provider, Rate, RecordedAccount
from providers.external.sql.session import ConnectionSettings, Session, open_session
from providers.onprem import PROVIDER
from runtime.objects import Object
from tests.postgres.steered_session import Line, SteeredSession
from tests.providers.adapter import Adapter, Drift, ExternalObject, Mode, Property, Verb
from tests.providers.adapter_parts import FilledWorld
from tests.providers.gates import GatedKube, Wrapped
from tests.providers.toy import ToyCloud
from tests.providers.world import World

# Before its oid is recorded, a row is of the database that the provider's own login made.
_OWNED = """
SELECT d.datname, o.installation, o.identity FROM fairlead.ownership o JOIN pg_database d ON d.datname = o.database
WHERE o.oid = d.oid OR (o.oid IS NULL AND pg_get_userbyid(d.datdba) = '{}')
"""
_DATABASES = "SELECT datname, oid::text, datconnlimit FROM pg_database"
_RETIRED = "retired_"


class _World(FilledWorld):
    """The on-prem cloud's ProviderConfig, and a database with a value in each field."""

    fields: ClassVar[Object] = {"databaseName": "orders", "username": "app", "connectionLimit": 20,
                                "parameters": {"work_mem": "8MB"}}  # fmt: skip

    def __init__(self, server: OnPremServer, kube: GatedKube, process: str, of: Provider[Any]) -> None:
        self.server = server
        super().__init__(ToyCloud(), kube=kube, process=process, provider=of)

    def config(self) -> Object:
        server = self.server
        return {"host": server.host, "port": server.port, "database": server.database,
                "adminSecretRef": {"name": "admin"}, "caBundle": server.authority_pem.decode()}  # fmt: skip


@dataclass
class OnPremAdapter(Adapter):
    """Databases on a real server; what was there before is not looked at."""

    properties: ClassVar[frozenset[Property]] = frozenset({Property.TAGS, Property.BACKUPS})
    edit: ClassVar[Object] = {"connectionLimit": 15}
    never_observed: ClassVar[frozenset[str]] = frozenset({"username"})
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden")
    server: OnPremServer = field(kw_only=True)

    def __post_init__(self) -> None:
        self.line = Line(self.gate)
        self.earlier = {name for name, *_ in self._rows(_DATABASES)}
        super().__post_init__()
        keys = {"username": self.server.username, "password": self.server.password, "host": self.server.host}
        self.store_secret("admin", keys)

    def new_world(self, process: str) -> World:
        async def dial(settings: ConnectionSettings, database: str) -> Session:
            return SteeredSession(await open_session(settings, database), self.line)

        async def wrap(cloud: Any) -> Any:
            await cloud._sessions.close()
            cloud._sessions.dial = dial
            return cloud

        def connected(config: Any, secrets: Any, recorded: RecordedAccount, meter: Meter) -> Wrapped:
            return Wrapped(PROVIDER.connect(config, secrets, recorded, meter), wrap)

        of = replace(PROVIDER, connect=connected, rate=Rate(100_000, 100_000), probe=None)
        return _World(self.server, self.kube, process, of)

    def _rows(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as the superuser; return the last one's rows."""
        rows: list[tuple[Any, ...]] = []
        with psycopg.connect(self.server.server.superuser_conninfo(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def _databases(self) -> dict[str, tuple[str, int]]:
        return {name: (oid, limit) for name, oid, limit in self._rows(_DATABASES) if name not in self.earlier}

    def objects(self) -> Mapping[str, ExternalObject]:
        owners = {name: (installation, identity) for name, installation, identity in self._owned()}
        databases = self._databases().items()
        shown = (ExternalObject(name, oid, owners.get(name)) for name, (oid, _) in databases)
        return {thing.name: thing for thing in shown if not thing.name.startswith(_RETIRED)}

    def _owned(self) -> list[tuple[Any, ...]]:
        own = self.server.database
        is_there = self._rows("SELECT pg_catalog.to_regclass('fairlead.ownership')", database=own)[0][0]
        return self._rows(_OWNED.format(self.server.username), database=own) if is_there else []

    def writes(self) -> list[str]:
        return list(self.line.sent)

    def forget(self) -> None:
        self.line.sent.clear()

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        self.line.faults[verb] = (mode, times)

    def heal(self) -> None:
        self.line.faults.clear()

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        # The provider may act for its owner: else a superuser hands it over before it can be adopted.
        dba = f"dba_{name}"[:63]
        self._rows(f'CREATE ROLE "{dba}"')
        self._rows(f'GRANT "{dba}" TO "{self.server.username}"')
        self._rows(f'CREATE DATABASE "{name}" OWNER "{dba}"')
        if owner is not None:
            row = f"('{name}', '{owner[0]}', '{owner[1]}', '0123456789abcdef', 'ready')"
            insert = "INSERT INTO fairlead.ownership (database, installation, identity, claim, state) VALUES"
            self._rows(f"{insert} {row} ON CONFLICT DO NOTHING", database=self.server.database)

    def before_create(self, act: Callable[[], None]) -> None:
        self.line.before_create = act

    def vanish(self, name: str) -> None:
        self._rows(f'DROP DATABASE "{name}" WITH (FORCE)')

    def strip_owner(self, name: str) -> None:
        delete = f"DELETE FROM fairlead.ownership WHERE database = '{name}'"  # noqa: S608 - a name of this test's
        self._rows(delete, database=self.server.database)

    def drifts(self) -> tuple[Drift, ...]:
        def change(name: str) -> None:
            self._rows(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')

        return (Drift("connectionLimit", change, lambda name: self._databases()[name][1] == 3),)

    def backups(self) -> tuple[str, ...]:
        return tuple(name for name in self._databases() if name.startswith(_RETIRED))

    def refuse_backups(self) -> None:
        self.fail("delete", "forbidden", None)

    async def close(self) -> None:
        """Drop what was made: the next test has the same claim, and would meet its predecessor."""
        await super().close()
        self._rows(*(f'DROP DATABASE "{name}" WITH (FORCE)' for name in self._databases()))
        self._rows("DELETE FROM fairlead.ownership", database=self.server.database)
