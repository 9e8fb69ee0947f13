"""What others do in Cloud SQL, and what happens there behind the API."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from devcloud.gcp.server import PROJECT
from fairlead.simulation.cloud_sql import ALICE, CloudSql
from providers.gcp import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.cast import Cast
from tests.simulation.cloud_acts import CloudActs
from tests.simulation.people import CLAIM_KEYS, INNER_NAMES

_INSTANCES, _DATABASES, _USERS = (kind.resource for kind in PROVIDER.kinds)
_NAMES: Final = (*INNER_NAMES, *(key.name for key in CLAIM_KEYS))


def _call(cast: Cast, verb: str, path: str, body: Any = None, query: Any = ()) -> str:
    answer = _cloud(cast).ask(ALICE, verb, f"v1/projects/{PROJECT}/{path}", query, body)
    return f"stranger {verb} {path} {query or ''}: {answer.status}"


def _cloud(cast: Cast) -> CloudSql:
    cloud = cast.platform.cloud
    assert isinstance(cloud, CloudSql)
    return cloud


async def makes(cast: Cast) -> str:
    instance = cast.server()
    if cast.happens(1 / 2):
        return _call(cast, "POST", f"instances/{instance}/databases", {"name": cast.draw(*_NAMES)})
    name = f"{cast.draw(*_NAMES)}_app"
    return _call(cast, "POST", f"instances/{instance}/users", {"name": name, "password": "Strangers-1"})


async def drops(cast: Cast) -> str:
    return _call(cast, "DELETE", f"instances/{cast.server()}/databases/{cast.draw(*_NAMES)}")


async def drops_user(cast: Cast) -> str:
    query = (("name", f"{cast.draw(*_NAMES)}_app"),)
    return _call(cast, "DELETE", f"instances/{cast.server()}/users", query=query)


async def replaces(cast: Cast) -> str:
    instance, name = cast.server(), cast.draw(*_NAMES)
    dropped = _call(cast, "DELETE", f"instances/{instance}/databases/{name}")
    await asyncio.sleep(cast.chance.uniform(3, 30))
    return f"{dropped}, {_call(cast, 'POST', f'instances/{instance}/databases', {'name': name})}"


async def edits(cast: Cast) -> str:
    """Change a setting, or take the labels by which an instance is known."""
    settings = cast.draw({"activationPolicy": "NEVER"}, {"activationPolicy": "ALWAYS"}, {"userLabels": {}},
                         {"tier": "db-custom-2-8192"}, {"userLabels": {"costs": "77"}})  # fmt: skip
    return _call(cast, "PATCH", f"instances/{cast.server()}", {"settings": settings})


async def deletes(cast: Cast) -> str:
    return _call(cast, "DELETE", f"instances/{cast.server()}")


async def cloud_changes(cast: Cast) -> str:
    instance = cast.server()
    change = cast.draw({"state": "SUSPENDED"}, {"state": "FAILED"}, {"vanish": True}, {"state": "RUNNABLE"},
                       {"state": "SUSPENDED"}, {"state": "FAILED"}, {"vanish": True},
                       {"grow": 60}, {"replace": True}, {"state": "MAINTENANCE"})  # fmt: skip
    if instance:
        _cloud(cast).steer(instance, **change)
    return f"{instance} {change}"


STRANGERS: Final = (
    (makes, 9),
    (drops, 1),
    (drops_user, 1),
    (replaces, 2),
    (edits, 1),
    (deletes, 1),
    (cloud_changes, 3),
)


_SHARED: Final[Object] = {
    "region": "europe-west1",
    "databaseVersion": "POSTGRES_16",
    "tier": "db-custom-1-3840",
    "edition": "ENTERPRISE",
    "activationPolicy": "ALWAYS",
    "dataDiskSizeGb": 20,
    "ipv4Enabled": True,
}


def _inside(resource: Resource, name: str) -> Object:
    fields: Object = {"instanceRef": {"name": "shared"}, "name": name}
    return {**fields, "name": f"{name}_app", "database": "postgres"} if resource == _USERS else fields


ACTS: Final = CloudActs(
    policies=(
        ("Delete", "Delete", "Snapshot", "Orphan"),
        ("Delete", "Orphan", "Snapshot"),
        ("Delete", "Orphan"),
    ),
    shared=_SHARED,
    inside=_inside,
    storage=(20, 25, 30),
    claims_kept=lambda cast, namespace: _cloud(cast).claims_kept(namespace),
    database_fields=lambda _has_one: {},
    strangers=STRANGERS,
    size="tier",
    sizes={"small": "db-custom-2-4096", "medium": "db-custom-2-8192", "large": "db-custom-4-16384"},
)
