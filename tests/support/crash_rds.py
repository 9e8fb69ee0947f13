"""The crash matrix over a simulated RDS: its provider dies at each effect on the cluster and on AWS."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs

from tests.support.api import JsonObject
from tests.support.aws import (
    AWS_CONFIG,
    DB_PARAMETER_GROUP,
    DB_SUBNET_GROUP,
    RDS_INSTANCE,
    Aws,
)
from tests.support.crash import PROVIDER, SCOPE, CrashRig, Plan, plans_by_text
from tests.support.crash_cloud import crash_rig_of
from tests.support.crash_run import CrashRun
from tests.support.end_state import name_in, object_state, secret_state
from tests.support.gate import Effect, Moment
from tests.support.kinds import CLAIM, SECRET, claim

_READING = re.compile(r"Describe|List|Get|Assume|Download")
_CHILDREN = (RDS_INSTANCE, DB_SUBNET_GROUP, DB_PARAMETER_GROUP)


@dataclass(frozen=True, slots=True)
class RdsEndState:
    """All that the system keeps for one claim.

    Attributes:
        claims: Conditions, finalizers and annotation names of the claim, if it is there.
        children: Likewise of each managed resource.
        secrets: Type and key names of each Secret.
        instances: Identifier, state and settings of each DB instance.
        snapshots: Identifier, type and state of each snapshot that is kept.
        groups: Names of subnet groups and parameter groups.
    """

    claims: tuple[str, ...]
    children: tuple[str, ...]
    secrets: tuple[str, ...]
    instances: tuple[str, ...]
    snapshots: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A row, and the DbiResourceId of the instance in which it was planted."""

    row: str
    resource_id: str


@dataclass(slots=True)
class RdsRun(CrashRun):
    """Claims whose databases are DB instances."""

    aws: Aws | None = None

    @property
    def rds(self) -> Aws:
        assert self.aws is not None
        return self.aws

    def expected(self) -> Mapping[tuple[str, str], str]:
        return {
            ("create", PROVIDER): "RDS CreateDBInstance",
            ("update", PROVIDER): "RDS ModifyDBInstance",
            ("rotate", PROVIDER): "RDS ModifyDBInstance",
            ("delete", PROVIDER): "RDS DeleteDBInstance",
        }

    def keeps_login(self, step: str) -> bool:
        # RDS has one administrator: his old password ends once the new one is in force, and that has to be published.
        return step not in {"rotate", "delete"}

    def plan(self, learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
        return plans_by_text(learned, turns)

    def name_of(self, scope: str) -> str:
        # What AWS receives has the claim's name in it, not always the namespace's.
        return scope

    async def make(self, scope: str) -> None:
        system = self.rig.system
        await system.namespaced(scope, cloud="aws")
        await system.create(CLAIM, claim(scope, scope, deletionPolicy="Snapshot"))

    def edit(self) -> JsonObject:
        # Another size would wait for the maintenance window.
        return {"backup": {"retentionDays": 21}}

    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        instances = await self.rds.instances()
        snapshots = (await self.rds.person("describe_db_snapshots", SnapshotType="manual"))["DBSnapshots"]
        groups = [
            *(group["DBSubnetGroupName"] for group in await self._groups("subnet", "DBSubnetGroups")),
            *(group["DBParameterGroupName"] for group in await self._groups("parameter", "DBParameterGroups")),
        ]
        return {scope: await self._end_state(scope, instances, snapshots, groups) for scope in scopes}

    async def _end_state(
        self, scope: str, instances: list[JsonObject], snapshots: list[JsonObject], groups: list[str]
    ) -> RdsEndState:
        api = self.rig.system.api
        children = [child for kind in _CHILDREN for child in await api.items(kind.path(scope))]
        return RdsEndState(
            claims=tuple(object_state(scope, claim) for claim in await api.items(CLAIM.path(scope))),
            children=tuple(object_state(scope, child) for child in children),
            secrets=tuple(secret_state(scope, secret) for secret in await api.items(SECRET.path(scope))),
            instances=tuple(
                f"{name_in(scope, row['DBInstanceIdentifier'])} {row['DBInstanceStatus']} {row['DBInstanceClass']} "
                f"{row['AllocatedStorage']} {row['BackupRetentionPeriod']} {_set(row['PendingModifiedValues'])}"
                for row in instances
                if scope in row["DBInstanceIdentifier"]
            ),
            snapshots=tuple(
                f"{name_in(scope, snapshot['DBInstanceIdentifier'])} {snapshot['Status']}"
                for snapshot in snapshots
                if scope in snapshot["DBInstanceIdentifier"]
            ),
            groups=tuple(sorted(name_in(scope, group) for group in groups if scope in group)),
        )

    async def _groups(self, kind: str, member: str) -> list[JsonObject]:
        groups: list[JsonObject] = (await self.rds.person(f"describe_db_{kind}_groups", MaxRecords=100))[member]
        return groups

    async def plant(self, scope: str) -> Planted:
        row = secrets.token_hex(8)
        async with await self.rig.system.login(scope, scope) as connection:
            await connection.execute("CREATE TABLE keepsake (note text)")
            await connection.execute("INSERT INTO keepsake VALUES (%s)", (row,))
        return Planted(row, await self._resource_id(scope))

    async def is_home(self, scope: str, planted: Planted) -> None:
        async with await self.rig.system.login(scope, scope) as connection:
            rows = await (await connection.execute("SELECT note FROM keepsake")).fetchall()
        assert rows == [(planted.row,)], scope
        assert await self._resource_id(scope) == planted.resource_id, scope

    async def _resource_id(self, scope: str) -> str:
        instances = [instance for instance in await self.rds.instances() if scope in instance["DBInstanceIdentifier"]]
        assert len(instances) == 1, [instance["DBInstanceIdentifier"] for instance in instances]
        return str(instances[0]["DbiResourceId"])


@asynccontextmanager
async def crash_rds_rig(aws: Aws) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and RDS for AWS's provider, and start it behind them beside a composer."""
    async with crash_rig_of(aws, AWS_CONFIG, _effect_of) as rig:
        yield rig


def _effect_of(method: str, path: str, body: bytes) -> Effect | None:
    """Name the effect of a call; a scope's name is part of what AWS receives."""
    del method, path
    action = parse_qs(body.decode()).get("Action", [""])[0]
    scope = SCOPE.search(body)
    if not action or _READING.match(action) or scope is None:
        return None
    return Effect(scope[0].decode(), f"RDS {action}")


def _set(values: JsonObject) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
