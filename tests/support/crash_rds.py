"""The crash matrix over a simulated RDS: its provider dies at each effect on the cluster and on AWS."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import parse_qs

from tests.support.api import JsonObject
from tests.support.aws import (
    AWS_CONFIG,
    DB_PARAMETER_GROUP,
    DB_SUBNET_GROUP,
    RDS_INSTANCE,
    Aws,
)
from tests.support.crash import SCOPE, CrashRig
from tests.support.crash_cloud import CloudRun, crash_rig_of
from tests.support.end_state import name_in
from tests.support.gate import Effect
from tests.support.kinds import Kind

_READING = re.compile(r"Describe|List|Get|Assume|Download")
Listed = tuple[list[JsonObject], list[JsonObject], list[str]]
"""Instances, snapshots, and the names of subnet groups and parameter groups."""


@dataclass(slots=True)
class RdsRun(CloudRun[Aws]):
    """Claims whose databases are DB instances."""

    api: ClassVar[str] = "RDS"
    effects: ClassVar[Mapping[str, str]] = {
        "create": "CreateDBInstance",
        "update": "ModifyDBInstance",
        "rotate": "ModifyDBInstance",
        "delete": "DeleteDBInstance",
    }
    kinds: ClassVar[tuple[Kind, ...]] = (RDS_INSTANCE, DB_SUBNET_GROUP, DB_PARAMETER_GROUP)

    async def listed(self) -> Listed:
        snapshots = (await self.cloud.person("describe_db_snapshots", SnapshotType="manual"))["DBSnapshots"]
        groups = [
            *(group["DBSubnetGroupName"] for group in await self._groups("subnet", "DBSubnetGroups")),
            *(group["DBParameterGroupName"] for group in await self._groups("parameter", "DBParameterGroups")),
        ]
        return await self.cloud.instances(), snapshots, groups

    async def held(self, scope: str, listed: Listed) -> Mapping[str, tuple[str, ...]]:
        instances, snapshots, groups = listed
        return {
            "instances": tuple(
                f"{name_in(scope, row['DBInstanceIdentifier'])} {row['DBInstanceStatus']} {row['DBInstanceClass']} "
                f"{row['AllocatedStorage']} {row['BackupRetentionPeriod']} {_set(row['PendingModifiedValues'])}"
                for row in instances
                if scope in row["DBInstanceIdentifier"]
            ),
            "snapshots": tuple(
                f"{name_in(scope, snapshot['DBInstanceIdentifier'])} {snapshot['Status']}"
                for snapshot in snapshots
                if scope in snapshot["DBInstanceIdentifier"]
            ),
            "groups": tuple(sorted(name_in(scope, group) for group in groups if scope in group)),
        }

    async def _groups(self, kind: str, member: str) -> list[JsonObject]:
        groups: list[JsonObject] = (await self.cloud.person(f"describe_db_{kind}_groups", MaxRecords=100))[member]
        return groups

    async def identities(self) -> Mapping[str, str]:
        instances = await self.cloud.instances()
        return {instance["DBInstanceIdentifier"]: str(instance["DbiResourceId"]) for instance in instances}


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
