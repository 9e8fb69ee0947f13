"""What is left of one claim in the cluster and on the server, with names made the same in every run.

Two runs that ended alike have equal end states: the one that was never disturbed is the measure of all others.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from dataclasses import dataclass

from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, DATABASE, SECRET
from tests.support.system import System

_HASH = re.compile(r"[_-][a-z2-7]{10}(?=$|[_-])")
_CONDITIONS = ("Ready", "Synced", "Reconciling", "Stalled")


@dataclass(frozen=True, slots=True)
class EndState:
    """All that the system keeps for one claim.

    Attributes:
        claims: Conditions, finalizers and annotation names of the claim, if it is there.
        children: Likewise of each managed resource.
        secrets: Type and key names of each Secret.
        databases: Name, connection limit and whether connections are allowed.
        roles: Name and whether it may log in.
        owned: The rows of the ownership table: database and state.
    """

    claims: tuple[str, ...]
    children: tuple[str, ...]
    secrets: tuple[str, ...]
    databases: tuple[str, ...]
    roles: tuple[str, ...]
    owned: tuple[str, ...]


async def end_states(system: System, namespaces: list[str]) -> dict[str, EndState]:
    """Read the end state of each namespace, whose name is part of all that belongs to it."""
    server = system.server.server
    databases = await server.execute(
        "SELECT datname, datconnlimit, datallowconn FROM pg_catalog.pg_database ORDER BY 1"
    )
    roles = await server.execute("SELECT rolname, rolcanlogin FROM pg_catalog.pg_roles ORDER BY 1")
    owned = await server.execute(
        "SELECT database, state FROM fairlead.ownership ORDER BY 1, 2", database=system.server.database
    )
    states = {}
    for namespace in namespaces:
        states[namespace] = EndState(
            claims=tuple(object_state(namespace, claim) for claim in await system.api.items(CLAIM.path(namespace))),
            children=tuple(
                object_state(namespace, child) for child in await system.api.items(DATABASE.path(namespace))
            ),
            secrets=tuple(secret_state(namespace, secret) for secret in await system.api.items(SECRET.path(namespace))),
            databases=_rows(namespace, databases),
            roles=_rows(namespace, roles),
            owned=_rows(namespace, owned),
        )
    return states


def differences(state: object, expected: object) -> list[str]:
    """Name what differs between two end states of one dataclass."""
    assert dataclasses.is_dataclass(state)
    names = [field.name for field in dataclasses.fields(state)]
    return [
        f"{name}: {getattr(state, name)} instead of {getattr(expected, name)}"
        for name in names
        if getattr(state, name) != getattr(expected, name)
    ]


def object_state(namespace: str, obj: JsonObject) -> str:
    """Return an object's conditions, finalizers and annotations."""
    meta = obj["metadata"]
    conditions = {
        entry["type"]: (entry["status"], entry["reason"]) for entry in obj.get("status", {}).get("conditions", [])
    }
    parts = [
        name_in(namespace, meta["name"]),
        "deleting" if "deletionTimestamp" in meta else "living",
        *(f"{kind}={conditions[kind]}" for kind in _CONDITIONS if kind in conditions),
        f"finalizers={sorted(meta.get('finalizers', []))}",
        f"annotations={sorted(meta.get('annotations', {}))}",
        f"intent={'intent' in obj.get('status', {})}",
    ]
    return " ".join(parts)


def secret_state(namespace: str, obj: JsonObject) -> str:
    """Return a Secret's type and which of its keys hold something."""
    data = obj.get("data", {})
    full = sorted(key for key, value in data.items() if base64.b64decode(value))
    return f"{name_in(namespace, obj['metadata']['name'])} {obj['type']} {full}"


def _rows(namespace: str, rows: list[tuple[object, ...]]) -> tuple[str, ...]:
    return tuple(
        " ".join(name_in(namespace, str(value)) for value in row) for row in rows if str(row[0]).startswith(namespace)
    )


def name_in(namespace: str, text: str) -> str:
    """Return a name without what differs between runs."""
    return _HASH.sub("-#", text.replace(namespace, "ns"))
