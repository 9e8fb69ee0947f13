"""The crash matrix over a simulated Cloud SQL: its provider dies at each effect on the cluster and on Google Cloud."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.api import JsonObject
from tests.support.crash import PROVIDER, SCOPE, CrashRig, Plan, plans_by_text
from tests.support.crash_cloud import crash_rig_of
from tests.support.crash_run import CrashRun
from tests.support.end_state import name_in, object_state, secret_state
from tests.support.gate import Effect, Moment
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    GCP_CONFIG,
    KEY_SECRET,
    NAMESPACE,
    Gcp,
)
from tests.support.kinds import CLAIM, SECRET, claim

_CHILDREN = (CLOUD_SQL_INSTANCE, CLOUD_SQL_DATABASE, CLOUD_SQL_USER)
_CLOUD = "Cloud SQL"
_METHODS = {"POST": "insert", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_RESOURCE = re.compile(r"/projects/[^/]+/instances(?:/(?P<name>[^/]+))?(?:/(?P<inside>users|databases))?")
_SETTINGS = ("tier", "dataDiskSizeGb", "activationPolicy", "deletionProtectionEnabled")


@dataclass(frozen=True, slots=True)
class SqlEndState:
    """All that the system keeps for one claim.

    Attributes:
        claims: Conditions, finalizers and annotation names of the claim, if it is there.
        children: Likewise of each managed resource.
        secrets: Type and key names of each Secret.
        instances: Name, state and settings of each instance.
        inside: Names of the databases and users of each instance.
        backups: Instance, type and state of each backup that is kept.
    """

    claims: tuple[str, ...]
    children: tuple[str, ...]
    secrets: tuple[str, ...]
    instances: tuple[str, ...]
    inside: tuple[str, ...]
    backups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A row, and when the instance was made in which it was planted."""

    row: str
    created: str


@dataclass(slots=True)
class SqlRun(CrashRun):
    """Claims whose databases are in instances of Cloud SQL."""

    gcp: Gcp | None = None

    @property
    def cloud(self) -> Gcp:
        assert self.gcp is not None
        return self.gcp

    def expected(self) -> Mapping[tuple[str, str], str]:
        return {
            ("create", PROVIDER): f"{_CLOUD} users.insert",
            ("update", PROVIDER): f"{_CLOUD} instances.patch",
            ("rotate", PROVIDER): f"{_CLOUD} users.update",
            ("delete", PROVIDER): f"{_CLOUD} instances.delete",
        }

    def keeps_login(self, step: str) -> bool:
        # A claim has one login: its old password ends once the new one is in force, and that has to be published.
        return step not in {"rotate", "delete"}

    async def logs_in(self, binding: Mapping[str, str]) -> bool:
        return await self.cloud.logs_in(binding)

    def plan(self, learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
        return plans_by_text(learned, turns, cloud=_CLOUD)

    def may_be_missed(self, step: str, plan: Plan) -> bool:
        """Return whether a run may lack this effect: a user who goes with the instance may not get to a report."""
        goes_with_instance = step == "delete" and plan.effect == "PATCH cloudsqlusers/status"
        return goes_with_instance or CrashRun.may_be_missed(self, step, plan)

    def name_of(self, scope: str) -> str:
        # What Google receives has the claim's name in it, not always the namespace's.
        return scope

    async def make(self, scope: str) -> None:
        system = self.rig.system
        await system.namespaced(scope, cloud="gcp")
        await system.create(CLAIM, claim(scope, scope, deletionPolicy="Snapshot"))

    def edit(self) -> JsonObject:
        # Another size would wait for the maintenance window.
        return {"backup": {"retentionDays": 21}}

    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        instances = await self.cloud.instances()
        backups = [backup for backup in await self.cloud.control("GET", "backups") if backup["state"] == "SUCCESSFUL"]
        return {scope: await self._end_state(scope, instances, backups) for scope in scopes}

    async def _end_state(self, scope: str, instances: list[JsonObject], backups: list[JsonObject]) -> SqlEndState:
        api = self.rig.system.api
        children = [child for kind in _CHILDREN for child in await api.items(kind.path(scope))]
        own = [instance for instance in instances if scope in instance["name"]]
        return SqlEndState(
            claims=tuple(object_state(scope, claim) for claim in await api.items(CLAIM.path(scope))),
            children=tuple(object_state(scope, child) for child in children),
            secrets=tuple(secret_state(scope, secret) for secret in await api.items(SECRET.path(scope))),
            instances=tuple(f"{name_in(scope, instance['name'])} {_shown(instance)}" for instance in own),
            inside=tuple([await self._inside(scope, instance) for instance in own if instance["state"] == "RUNNABLE"]),
            backups=tuple(
                f"{name_in(scope, backup['instance'])} {backup['kind']}"
                for backup in backups
                if scope in backup["instance"]
            ),
        )

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

    async def plant(self, scope: str) -> Planted:
        row, binding = secrets.token_hex(8), await self.rig.system.binding(scope, scope)
        insert = f"INSERT INTO keepsake VALUES ('{row}')"  # noqa: S608 - a word of hexadecimal digits
        await self.cloud.rows(binding, "CREATE TABLE keepsake (note text)", insert)
        return Planted(row, await self._created(scope))

    async def is_home(self, scope: str, planted: Planted) -> None:
        binding = await self.rig.system.binding(scope, scope)
        assert await self.cloud.rows(binding, "SELECT note FROM keepsake") == [(planted.row,)], scope
        assert await self._created(scope) == planted.created, scope

    async def _created(self, scope: str) -> str:
        instances = [instance for instance in await self.cloud.instances() if scope in instance["name"]]
        assert len(instances) == 1, [instance["name"] for instance in instances]
        return str(instances[0]["createTime"])


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
    return Effect(scope[0].decode(), f"{_CLOUD} {resource['inside'] or 'instances'}.{_METHODS[method]}")


def _shown(instance: JsonObject) -> str:
    settings = instance["settings"]
    kept = settings["backupConfiguration"]["backupRetentionSettings"]["retainedBackups"]
    shown = " ".join(str(settings.get(name)) for name in _SETTINGS)
    return f"{instance['state']} {shown} {kept}"
