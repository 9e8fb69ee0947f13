"""Takes away what earlier modules left on a shared platform, while no process of ours runs.

`tidy` ends what a process that starts would read again, `only_claims_of` what would hold a definition. `reset` brings
all back to how it was before the first module: no claims, an empty server.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, CRD, LEASE, NAMESPACE, SECRET, Kind
from tests.support.namespaces import end_namespace, side_by_side, take_away
from tests.support.system import System

KEPT_NAMESPACES: Final = ("default", "kube-", "fairlead-", "watched")
"""How the names of the namespaces begin that the platform itself has."""
_SHIPPED_COMPOSITIONS: Final = frozenset(
    path.stem for path in (Path(__file__).resolve().parents[2] / "compositions").glob("*.yaml")
)
_OF_KUBERNETES: Final = ("kube-root-ca.crt",)


async def reset(system: System) -> None:
    """Take away what earlier modules left in cluster and server, while no process of ours runs, and configure anew."""
    await _delete_all(system)
    await _empty_server(system)
    system.clouds[:] = ["onprem"]
    await system.configure()
    await _end_namespaces(system)


async def tidy(system: System) -> None:
    """End the namespaces that earlier modules left, and delete their Compositions: who starts reads each of them."""
    await _end_namespaces(system)
    compositions = await system.api.items(COMPOSITION.path())
    left = [obj for obj in compositions if obj["metadata"]["name"] not in _SHIPPED_COMPOSITIONS]
    await side_by_side(take_away(system.api, COMPOSITION, obj) for obj in left)


async def only_claims_of(system: System, namespace: str) -> None:
    """Take away all claims but those of a namespace: a paused one of an earlier module would hold its definition."""
    claims = await system.api.items(CLAIM.path())
    await side_by_side(take_away(system.api, CLAIM, obj) for obj in claims if obj["metadata"]["namespace"] != namespace)


async def _delete_all(system: System) -> None:
    async for kind in _kinds(system):
        await side_by_side(take_away(system.api, kind, obj) for obj in await system.api.items(kind.path()))
    for kind in (LEASE, SECRET, CONFIG_MAP):
        objects = [obj["metadata"] for obj in await system.api.items(kind.path())]
        ours = [meta for meta in objects if meta["namespace"].startswith("fairlead-")]
        paths = [kind.path(meta["namespace"], meta["name"]) for meta in ours if meta["name"] not in _OF_KUBERNETES]
        await side_by_side(map(system.api.delete, paths))


async def _kinds(system: System) -> AsyncIterator[Kind]:
    """List the kinds of all definitions; an object of another operator's can hold its namespace, too."""
    for crd in await system.api.items(CRD.path()):
        spec, names = crd["spec"], crd["spec"]["names"]
        served = [version for version in spec["versions"] if version["served"]]
        # The stored version needs no conversion.
        version = max(served, key=lambda version: version["storage"])
        yield Kind(
            spec["group"], version["name"], names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced"
        )


async def _end_namespaces(system: System) -> None:
    names = [obj["metadata"]["name"] for obj in await system.api.items(NAMESPACE.path())]
    left = [name for name in names if not name.startswith(KEPT_NAMESPACES)]
    await side_by_side(end_namespace(system.api, name) for name in left)


async def _empty_server(system: System) -> None:
    """Drop all databases and roles but those that the platform team made, and what the provider made beside them."""
    server = system.server.server
    kept = ("postgres", system.server.database)
    names = await server.execute("SELECT datname FROM pg_catalog.pg_database WHERE NOT datistemplate")
    for (name,) in names:
        if name not in kept:
            await server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await server.execute("DROP SCHEMA IF EXISTS fairlead CASCADE", database=system.server.database)
    logins = await server.execute("SELECT rolname FROM pg_catalog.pg_roles WHERE NOT rolsuper AND rolname !~ '^pg_'")
    roles = [role for (role,) in logins if role != system.server.username]
    for role, database in itertools.product(roles, kept):
        await server.execute(f'DROP OWNED BY "{role}"', database=database)
    for role in roles:
        await server.execute(f'DROP ROLE "{role}"')
