"""The crash matrix over a simulated Cloud SQL: its provider dies at each effect on the cluster and on Google Cloud."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.support.api import JsonObject
from tests.support.crash import SCOPE, CrashRig
from tests.support.crash_cloud import CloudRun, crash_rig_of
from tests.support.end_state import name_in
from tests.support.gate import Effect
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    GCP_CONFIG,
    KEY_SECRET,
    NAMESPACE,
    Gcp,
)
from tests.support.kinds import SECRET, Kind

_METHODS = {"POST": "insert", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_RESOURCE = re.compile(r"/projects/[^/]+/instances(?:/(?P<name>[^/]+))?(?:/(?P<inside>users|databases))?")
_SETTINGS = ("tier", "dataDiskSizeGb", "activationPolicy", "deletionProtectionEnabled")


@dataclass(slots=True)
class SqlRun(CloudRun[Gcp]):
    """Claims whose databases are in instances of Cloud SQL."""

    api: ClassVar[str] = "Cloud SQL"
    effects: ClassVar[Mapping[str, str]] = {
        "create": "users.insert",
        "update": "instances.patch",
        "rotate": "users.update",
        "delete": "instances.delete",
    }
    kinds: ClassVar[tuple[Kind, ...]] = (CLOUD_SQL_INSTANCE, CLOUD_SQL_DATABASE, CLOUD_SQL_USER)
    inside: ClassVar[str] = CLOUD_SQL_USER.plural

    async def logs_in(self, binding: Mapping[str, str]) -> bool:
        return await self.cloud.logs_in(binding)

    async def rows(self, scope: str, *statements: str) -> list[tuple[Any, ...]]:
        return await self.cloud.rows(await self.rig.system.binding(scope, scope), *statements)

    async def listed(self) -> tuple[list[JsonObject], list[JsonObject]]:
        backups = [backup for backup in await self.cloud.control("GET", "backups") if backup["state"] == "SUCCESSFUL"]
        return await self.cloud.instances(), backups

    async def held(
        self, scope: str, listed: tuple[list[JsonObject], list[JsonObject]]
    ) -> Mapping[str, tuple[str, ...]]:
        instances, backups = listed
        own = [instance for instance in instances if scope in instance["name"]]
        running = [instance for instance in own if instance["state"] == "RUNNABLE"]
        return {
            "instances": tuple(f"{name_in(scope, instance['name'])} {_shown(instance)}" for instance in own),
            "inside": tuple([await self._inside(scope, instance) for instance in running]),
            "backups": tuple(
                f"{name_in(scope, backup['instance'])} {backup['kind']}"
                for backup in backups
                if scope in backup["instance"]
            ),
        }

    async def _inside(self, scope: str, instance: JsonObject) -> str:
        names = []
        for kind in ("databases", "users"):
            try:
                listed = await self.cloud.person("GET", f"instances/{instance['name']}/{kind}")
            except AssertionError:
                # It goes just now.
                return "nothing is shown"
            names += [f"{kind} {name_in(scope, item['name'])}" for item in listed.get("items", ())]
        return ", ".join(sorted(names))

    async def identities(self) -> Mapping[str, str]:
        return {instance["name"]: str(instance["createTime"]) for instance in await self.cloud.instances()}


@asynccontextmanager
async def crash_gcp_rig(gcp: Gcp) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and Cloud SQL for Google Cloud's provider, and start it behind them."""

    async def write_credentials(endpoint: str) -> None:
        # A key says where its tokens come from, and only the endpoint's own host may stand for Google's.
        key = {**json.loads(gcp.key), "token_uri": f"http://{endpoint}/token"}
        secret = {"stringData": {"credentials.json": json.dumps(key)}}
        await gcp.system.api.merge(SECRET.path(NAMESPACE, KEY_SECRET), secret)

    async with crash_rig_of(
        gcp, GCP_CONFIG, _effect_of, program="tests.support.unmetered", write_credentials=write_credentials
    ) as rig:
        yield rig


def _effect_of(method: str, path: str, body: bytes) -> Effect | None:
    """Name the effect of a call; a scope's name is part of its path, or of the name in its body."""
    resource, scope = _RESOURCE.search(path), SCOPE.search(path.encode() + body)
    if method not in _METHODS or resource is None or scope is None:
        return None
    return Effect(scope[0].decode(), f"Cloud SQL {resource['inside'] or 'instances'}.{_METHODS[method]}")


def _shown(instance: JsonObject) -> str:
    settings = instance["settings"]
    kept = settings["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"]
    shown = " ".join(str(settings.get(name)) for name in _SETTINGS)
    return f"{instance['state']} {shown} {kept}"
