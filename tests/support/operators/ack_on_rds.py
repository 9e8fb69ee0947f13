"""ACK's controller of DBInstances, played over the simulated RDS by the order of its source.

Source: rds-controller, `pkg/resource/db_instance` (sdkCreate, sdkUpdate, sdkDelete and their hooks), and the runtime's
`pkg/runtime/reconciler.go`: a finalizer of its own before the first call; the spec written from the answer to that; a
state of RDS and an endpoint before `ACK.ResourceSynced`; the password anew where another Secret is named, remembered in
an annotation; `ACK.Terminal` for a refusal that does not end; under deletion policy `retain` the database stays.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.support.api import ApiError, JsonObject
from tests.support.aws import Aws
from tests.support.kinds import SECRET
from tests.support.operators.played import INSTANCE
from tests.support.system import decoded

_EVERY_S = 0.3
_FINALIZER = "finalizers.rds.services.k8s.aws/DBInstance"
_POLICY = "services.k8s.aws/deletion-policy"
_SECRET_REF = "rds.services.k8s.aws/last-applied-secret-reference"
_TERMINAL: Final = frozenset({"InvalidParameterValue", "InvalidParameterCombination", "DBInstanceAlreadyExists"})
_GONE = "DBInstanceNotFound"
_CREATED: Final = {
    "dbInstanceIdentifier": "DBInstanceIdentifier",
    "dbInstanceClass": "DBInstanceClass",
    "engine": "Engine",
    "engineVersion": "EngineVersion",
    "dbName": "DBName",
    "masterUsername": "MasterUsername",
    "allocatedStorage": "AllocatedStorage",
    "storageType": "StorageType",
    "storageEncrypted": "StorageEncrypted",
    "multiAZ": "MultiAZ",
    "publiclyAccessible": "PubliclyAccessible",
    "dbSubnetGroupName": "DBSubnetGroupName",
    "vpcSecurityGroupIDs": "VpcSecurityGroupIds",
    "backupRetentionPeriod": "BackupRetentionPeriod",
    "preferredBackupWindow": "PreferredBackupWindow",
    "preferredMaintenanceWindow": "PreferredMaintenanceWindow",
    "deletionProtection": "DeletionProtection",
}
"""The fields of a spec and the parameters of CreateDBInstance."""
_LEARNED: Final = {
    "engineVersion": "EngineVersion",
    "autoMinorVersionUpgrade": "AutoMinorVersionUpgrade",
    "preferredMaintenanceWindow": "PreferredMaintenanceWindow",
}
"""Fields of the spec that it writes from the answer to CreateDBInstance, whoever had set them: 16 becomes 16.4."""
_CHANGED: Final = ("allocatedStorage", "dbInstanceClass", "deletionProtection")


@dataclass(slots=True)
class AckController:
    """Reconciles every DBInstance of the cluster with the simulated RDS, with a person's rights."""

    aws: Aws

    async def work(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            for obj in await self.aws.system.api.items(INSTANCE.path()):
                with contextlib.suppress(ApiError):
                    # Changed or gone meanwhile: the next look has it.
                    await self._reconcile(obj)
            await asyncio.sleep(_EVERY_S)

    async def _reconcile(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            await self._delete(obj)
        elif _FINALIZER not in meta.get("finalizers", ()):
            await self._patch(obj, {"metadata": {"finalizers": [*meta.get("finalizers", ()), _FINALIZER]}})
        else:
            try:
                await self._bring_up(obj)
            except ClientError as error:
                await self._refused(obj, error.response["Error"])

    async def _bring_up(self, obj: JsonObject) -> None:
        latest = await self._latest(obj)
        if latest is None:
            await self._create(obj)
        else:
            await self._report(obj, latest)
            if latest["DBInstanceStatus"] == "available":
                await self._change(obj, latest)

    async def _latest(self, obj: JsonObject) -> JsonObject | None:
        try:
            answer = await self.aws.person(
                "describe_db_instances", DBInstanceIdentifier=obj["spec"]["dbInstanceIdentifier"]
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == _GONE:
                return None
            raise
        (instance,) = answer["DBInstances"]
        return dict(instance)

    async def _create(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        parameters = {parameter: spec[name] for name, parameter in _CREATED.items() if name in spec}
        password = await self._password(obj)
        answer = await self.aws.person("create_db_instance", **parameters, MasterUserPassword=password)
        learned = {
            name: answer["DBInstance"][field] for name, field in _LEARNED.items() if field in answer["DBInstance"]
        }
        await self._patch(obj, {"metadata": {"annotations": {_SECRET_REF: _secret_of(obj)}}, "spec": learned})

    async def _change(self, obj: JsonObject, latest: JsonObject) -> None:
        spec, changes = obj["spec"], dict[str, Any]()
        for name in _CHANGED:
            if name in spec and spec[name] != latest[_CREATED[name]]:
                changes[_CREATED[name]] = spec[name]
        is_rotated = obj["metadata"].get("annotations", {}).get(_SECRET_REF) != _secret_of(obj)
        if is_rotated:
            changes["MasterUserPassword"] = await self._password(obj)
        if changes:
            identifier = spec["dbInstanceIdentifier"]
            await self.aws.person(
                "modify_db_instance", DBInstanceIdentifier=identifier, ApplyImmediately=True, **changes
            )
        if is_rotated:
            await self._patch(obj, {"metadata": {"annotations": {_SECRET_REF: _secret_of(obj)}}})

    async def _password(self, obj: JsonObject) -> str:
        reference = obj["spec"]["masterUserPassword"]
        secret = await self.aws.system.api.get(SECRET.path(reference["namespace"], reference["name"]))
        return decoded(secret)[reference["key"]]

    async def _delete(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        if _FINALIZER not in meta.get("finalizers", ()):
            return
        latest = await self._latest(obj)
        if latest is not None and meta.get("annotations", {}).get(_POLICY) != "retain":
            if latest["DBInstanceStatus"] != "deleting":
                identifier = obj["spec"]["dbInstanceIdentifier"]
                await self.aws.person("delete_db_instance", DBInstanceIdentifier=identifier, SkipFinalSnapshot=True)
            return
        kept = [finalizer for finalizer in meta["finalizers"] if finalizer != _FINALIZER]
        await self._patch(obj, {"metadata": {"finalizers": kept}})

    async def _report(self, obj: JsonObject, latest: JsonObject) -> None:
        """Write the state of RDS and the endpoint, then whether the spec is carried out."""
        state, endpoint = latest["DBInstanceStatus"], latest.get("Endpoint")
        is_synced = state == "available"
        status: JsonObject = {"dbInstanceStatus": state}
        if endpoint:
            status["endpoint"] = {"address": endpoint["Address"], "port": endpoint["Port"]}
        await self._write(obj, status)
        words = "" if is_synced else f"DB Instance in state '{state}'"
        await self._write(obj, {"conditions": [_condition("ACK.ResourceSynced", words, is_true=is_synced)]})

    async def _refused(self, obj: JsonObject, error: JsonObject) -> None:
        type_ = "ACK.Terminal" if error["Code"] in _TERMINAL else "ACK.Recoverable"
        words = f"{error['Code']}: {error['Message']}"
        await self._write(obj, {"conditions": [_condition(type_, words, is_true=True)]})

    async def _write(self, obj: JsonObject, status: JsonObject) -> None:
        """Write a part of the status where it differs."""
        before = obj.get("status") or {}
        if any(before.get(name) != value for name, value in status.items()):
            path = INSTANCE.path(obj["metadata"]["namespace"], obj["metadata"]["name"], "status")
            await self.aws.system.api.merge(path, {"status": status})

    async def _patch(self, obj: JsonObject, patch: JsonObject) -> None:
        """Merge a patch into the very version that was read."""
        meta = obj["metadata"]
        whole = {**patch, "metadata": {**patch["metadata"], "resourceVersion": meta["resourceVersion"]}}
        await self.aws.system.api.merge(INSTANCE.path(meta["namespace"], meta["name"]), whole)


def _secret_of(obj: JsonObject) -> str:
    reference = obj["spec"]["masterUserPassword"]
    return f"{reference['namespace']}/{reference['name']}.{reference['key']}"


def _condition(type_: str, message: str, *, is_true: bool) -> JsonObject:
    status = "True" if is_true else "False"
    return {"type": type_, "status": status, "message": message, "lastTransitionTime": "2026-11-01T00:00:00Z"}


@asynccontextmanager
async def controlling(aws: Aws) -> AsyncIterator[None]:
    """Have ACK's controller at work for the length of a block."""
    task = asyncio.create_task(AckController(aws).work())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
