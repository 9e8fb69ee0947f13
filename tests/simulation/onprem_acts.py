"""What the superuser of the platform team's server does there."""

from __future__ import annotations

import asyncio
from typing import Final

from fairlead.simulation.onprem import OnPrem
from providers.external.sql.text import quoted
from providers.onprem import DATABASES
from runtime.objects import Object, Resource
from tests.simulation.cast import Act, Cast
from tests.simulation.cloud_acts import CloudActs

_STRANGERS: Final = ("anna", "bert")


def _server(cast: Cast) -> OnPrem:
    cloud = cast.platform.cloud
    assert isinstance(cloud, OnPrem)
    return cloud


def _database(cast: Cast) -> str:
    """Return a database that is there or is to come, quoted."""
    return quoted(cast.draw(*sorted(_server(cast).databases()) or ("none",)))


def _role(cast: Cast) -> str:
    return quoted(cast.draw(*sorted(_server(cast).roles()) or ("none",)))


async def drops(cast: Cast) -> str:
    return _server(cast).ask(f"DROP DATABASE {_database(cast)} WITH (FORCE)")


async def replaces(cast: Cast) -> str:
    """Drop a database, and make an empty one of the same name a while later."""
    database, owner = _database(cast), cast.draw("postgres", "fairlead_admin")
    dropped = _server(cast).ask(f"DROP DATABASE {database} WITH (FORCE)")
    await asyncio.sleep(cast.chance.uniform(0, 30))
    return f"{dropped}, {_server(cast).ask(f'CREATE DATABASE {database} OWNER {owner}')}"


async def makes_first(cast: Cast) -> str:
    """Make a database of the name that an object has, be it that it was dropped or is not made yet."""
    present = cast.keys(DATABASES.resource)
    if not present:
        return "nobody knows a name"
    resource, key = cast.draw(*present)
    external = (cast.platform.server.all_of(resource)[key].get("status") or {}).get("externalName", "")
    return _server(cast).ask(f"CREATE DATABASE {quoted(external)}") if external else f"{key} has no name yet"


async def renames(cast: Cast) -> str:
    """Rename a database, and mostly name it back a while later."""
    database = _database(cast)
    moved = quoted(f"moved_{cast.chance.randrange(1000)}")
    said = _server(cast).ask(f"ALTER DATABASE {database} RENAME TO {moved}")
    await asyncio.sleep(cast.chance.uniform(0, 90))
    if cast.happens(3 / 4):
        said = f"{said}, {_server(cast).ask(f'ALTER DATABASE {moved} RENAME TO {database}')}"
    return said


async def changes_database(cast: Cast) -> str:
    database = _database(cast)
    change = cast.draw(
        f"ALTER DATABASE {database} CONNECTION LIMIT 3",
        f"ALTER DATABASE {database} ALLOW_CONNECTIONS false",
        f"ALTER DATABASE {database} IS_TEMPLATE true",
        f"ALTER DATABASE {database} OWNER TO postgres",
        f"ALTER DATABASE {database} SET search_path TO 'public'",
        f"GRANT CONNECT ON DATABASE {database} TO PUBLIC",
        f"REVOKE CREATE ON DATABASE {database} FROM {_role(cast)}",
    )
    return _server(cast).ask(change)


async def changes_role(cast: Cast) -> str:
    role = _role(cast)
    change = cast.draw(
        f"ALTER ROLE {role} NOLOGIN",
        f"ALTER ROLE {role} SUPERUSER",
        f"ALTER ROLE {role} CONNECTION LIMIT 0",
        f"ALTER ROLE {role} RESET ALL",
        f"ALTER ROLE {role} RENAME TO {quoted(f'moved_{cast.chance.randrange(1000)}')}",
        f"GRANT {role} TO {_role(cast)}",
        f"REVOKE {_role(cast)} FROM {role}",
        f"DROP ROLE {role}",
        f"CREATE ROLE {cast.draw(*_STRANGERS)} LOGIN",
    )
    return _server(cast).ask(change)


async def changes_schema(cast: Cast) -> str:
    sql = cast.draw("DROP SCHEMA public CASCADE", f"ALTER SCHEMA public OWNER TO {_role(cast)}")
    return _server(cast).ask(sql, _database(cast).strip('"'))


async def loses_row(cast: Cast) -> str:
    database = _database(cast).strip('"')
    _server(cast).disown(database)
    return f"the row of {database} is lost"


async def connects(cast: Cast) -> str:
    """Keep a session of the superuser open in a database for a while."""
    database = _database(cast).strip('"')
    session = _server(cast).session_in(database)
    await asyncio.sleep(cast.chance.uniform(5, 120))
    if session is not None:
        session.end()
    return f"a session in {database}"


STRANGERS: Final[tuple[tuple[Act, int], ...]] = (
    (drops, 1),
    (replaces, 3),
    (makes_first, 2),
    (renames, 2),
    (changes_database, 3),
    (changes_role, 4),
    (changes_schema, 1),
    (loses_row, 1),
    (connects, 2),
)


def _inside(_resource: Resource, name: str) -> Object:
    return {"databaseName": name, "username": name, "connectionLimit": 10}


ACTS: Final = CloudActs(
    policies=(("Delete", "Delete", "Snapshot", "Orphan"), ("Delete", "Orphan"), ("Delete", "Orphan")),
    shared=_inside(DATABASES.resource, "shared"),
    inside=_inside,
    storage=(20, 25, 30),
    database_fields=lambda _has_one: {},
    strangers=STRANGERS,
    size="connectionLimit",
    sizes={"small": 20, "medium": 50, "large": 100},
    versions=("16",),
    has_standby=False,
)
