"""A recorded exchange with the real RDS, made again with the simulated one, and what differs then.

A recording is a file `rds.<Operation>_<n>.json` with `status_code` and `data`, the parsed reply, as placebo writes it;
times are objects of class `datetime`; requests are not part of it, so each is derived from its reply. For every one a
simulator is brought where the reply shows the real service was, the call is made, and the two replies are compared:
HTTP status, error code, states, pending values, what a restore takes over, and every field by name and type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from devcloud.aws.api import wire
from devcloud.aws.state import catalog
from devcloud.simulator.messages import Refusal
from tests.devcloud.aws.conftest import PASSWORD, QUICK, Cloud

_FILE = re.compile(r"rds\.(\w+?)_\d+\.json")
_DATABASE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# Whether they are shown says that an instance is not created yet.
_SHOWN_BY_CREATION = (
    "Endpoint",
    "AvailabilityZone",
    "InstanceCreateTime",
    "LatestRestorableTime",
    "AutomaticRestartTime",
)
_RESTORES = frozenset({"RestoreDBInstanceFromDBSnapshot", "RestoreDBInstanceToPointInTime"})
# What a restored instance has from its source; the source is made with the recorded values.
_INHERITED = ("DBName", "PreferredBackupWindow", "PreferredMaintenanceWindow", "BackupRetentionPeriod")
_VERSION, _NEWER_VERSION = "16.4", "16.6"

Reply = dict[str, Any]


class Recording(msgspec.Struct, frozen=True):
    """An exchange: which operation, how it was answered, in which file."""

    operation: str
    status: int
    data: Reply
    name: str


def recordings(folder: Path) -> Iterator[Recording]:
    """Yield the exchanges below a folder."""
    for path in sorted(folder.rglob("rds.*.json")):
        match = _FILE.fullmatch(path.name)
        if match:
            content = json.loads(path.read_text(encoding="utf-8"), object_hook=_times)
            name = f"{path.parent.name}/{path.name}"
            yield Recording(match[1], content["status_code"], content["data"], name)


def _times(value: Reply) -> Any:
    if value.get("__class__") != "datetime":
        return value
    return datetime(value["year"], value["month"], value["day"], tzinfo=UTC)


def differences(cloud: Cloud, recording: Recording) -> list[str]:
    """Make a recorded call again; return in words how the two answers differ, nothing when they do not.

    Raises:
        AssertionError: The operation is not one of those that can be derived from their replies.
    """
    if recording.status >= 400:
        error = recording.data["Error"]
        status, _ = wire.refusal(Refusal(error["Code"], error["Message"]), "", "")
        return _unequal("HTTP status", recording.status, status)
    reply = _again(cloud, recording)
    recorded = {name: value for name, value in recording.data.items() if name != "ResponseMetadata"}
    if "DBEngineVersions" in recorded:
        # Other engines have fields of their own, and the simulator offers none of them.
        ours = [version for version in recorded["DBEngineVersions"] if version["Engine"] == catalog.ENGINE]
        recorded["DBEngineVersions"] = ours
    return [
        *_unequal("HTTP status", recording.status, reply["ResponseMetadata"]["HTTPStatusCode"]),
        *_missing(_shape(recorded), _shape(reply)),
        *_unequal("states", _states(recorded), _states(reply)),
        *_unequal("values", _values(recording.operation, recorded), _values(recording.operation, reply)),
    ]


def _unequal(part: str, recorded: object, simulated: object) -> list[str]:
    return [] if recorded == simulated else [f"{part}: {simulated}, was {recorded}"]


def _shape(value: Any) -> Any:
    """Return a reply's names and types; of a list, those of all its members together."""
    match value:
        case dict():
            return {name: _shape(inner) for name, inner in value.items()}
        case list():
            merged: Reply = {}
            for member in value:
                inner = _shape(member)
                merged = _merged(merged, inner if isinstance(inner, dict) else {"": inner})
            return [merged]
        case bool():
            return "boolean"
        case _:
            return type(value).__name__


def _merged(shape: Reply, other: Reply) -> Reply:
    """Return two members' shapes as one; a list that is empty in one of them hides no other's."""
    kept = {name: shape[name] for name, inner in other.items() if inner == [{}] and name in shape}
    return {**shape, **other, **kept}


def _missing(recorded: Any, simulated: Any, path: str = "") -> Iterator[str]:
    """Name what a recorded reply has that the simulated one lacks or has otherwise."""
    match recorded, simulated:
        case dict(), dict():
            for name, inner in recorded.items():
                if name not in simulated:
                    yield f"{path}.{name} is missing"
                else:
                    yield from _missing(inner, simulated[name], f"{path}.{name}")
        case [member], [other]:
            # An empty list says nothing of its members.
            if member and other:
                yield from _missing(member, other, f"{path}[]")
        case _ if recorded != simulated:
            yield f"{path} is {simulated}, was {recorded}"


def _resources(reply: Reply) -> list[Reply]:
    """Return the instances or snapshots that a reply shows."""
    for name in ("DBInstances", "DBSnapshots"):
        if name in reply:
            return list(reply[name])
    return [reply[name] for name in ("DBInstance", "DBSnapshot") if name in reply]


def _states(reply: Reply) -> list[Reply]:
    """Return what a reply says of states: each resource's own, its pending values, whether it is created."""
    return [
        {
            "status": shown.get("DBInstanceStatus", shown.get("Status")),
            "pending": sorted(shown.get("PendingModifiedValues", {})),
            "shows": sorted(set(_SHOWN_BY_CREATION) & set(shown))
            if shown.get("DBInstanceStatus") == "creating"
            else "",
        }
        for shown in sorted(_resources(reply), key=lambda shown: str(shown["DBInstanceIdentifier"]))
    ]


def _values(operation: str, reply: Reply) -> object:
    """Return the values of a reply that follow from what the service was asked or had before."""
    if operation in _RESTORES:
        instance = reply["DBInstance"]
        joined = [group["Status"] for group in instance.get("OptionGroupMemberships", ())]
        return {name: instance.get(name) for name in _INHERITED} | {"OptionGroupMemberships": joined}
    if operation == "ListTagsForResource":
        return _tags(reply)
    return None


def _tags(reply: Reply) -> list[tuple[str, str]]:
    """Return the tags of a reply in order, but those that the service itself gives."""
    tags = ((tag["Key"], tag["Value"]) for tag in reply.get("TagList", ()))
    return sorted(tag for tag in tags if not tag[0].startswith("aws:"))


def _wanted(instance: Reply) -> Reply:
    """Return the parameters of an instance like a recorded one; other engines become PostgreSQL."""
    kind = instance.get("StorageType", "gp2")
    gib = max({"standard": 5, "io1": 100, "io2": 100}.get(kind, 20), instance["AllocatedStorage"])
    known = instance.get("DBInstanceClass") in catalog.CLASSES
    monitored, insights = instance.get("MonitoringInterval"), instance.get("PerformanceInsightsEnabled")
    database = instance.get("DBName")
    parameters = {
        "DBInstanceIdentifier": instance["DBInstanceIdentifier"],
        "DBInstanceClass": instance["DBInstanceClass"] if known else "db.m5.large",
        "Engine": "postgres",
        "EngineVersion": _VERSION,
        "MasterUsername": "app_admin",
        "MasterUserPassword": PASSWORD,
        "AllocatedStorage": gib,
        "StorageType": kind,
        "Iops": 1000 if kind in {"io1", "io2"} else None,
        "MaxAllocatedStorage": 2 * gib if "MaxAllocatedStorage" in instance else None,
        "BackupRetentionPeriod": instance.get("BackupRetentionPeriod", 1),
        "PreferredBackupWindow": instance.get("PreferredBackupWindow"),
        "PreferredMaintenanceWindow": instance.get("PreferredMaintenanceWindow"),
        "StorageEncrypted": instance.get("StorageEncrypted", instance.get("Encrypted")),
        "DBName": database if database is None or _DATABASE.fullmatch(database) else "shop",
        "MultiAZ": instance.get("MultiAZ", "SecondaryAvailabilityZone" in instance),
        "MonitoringInterval": monitored,
        "MonitoringRoleArn": "arn:aws:iam::123456789012:role/monitor" if monitored else None,
        "EnablePerformanceInsights": insights,
        "EnableCloudwatchLogsExports": ["postgresql"] if "EnabledCloudwatchLogsExports" in instance else None,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def _bring(cloud: Cloud, instance: Reply, status: str) -> None:
    """Make an instance like a recorded one, in a state that lasts."""
    name = instance["DBInstanceIdentifier"].lower()
    cloud.control("POST", "clock", {"durations": QUICK if status != "creating" else 1.0})
    cloud.rds.create_db_instance(**_wanted(instance))
    if status == "creating":
        cloud.advance(61 if "AvailabilityZone" in instance else 1)
        return
    cloud.rest(name)
    cloud.at_real_length()
    match status:
        case "available":
            pass
        case "deleting":
            cloud.rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)
        case "stopping" | "stopped":
            cloud.rds.stop_db_instance(DBInstanceIdentifier=name)
            if status == "stopped":
                cloud.advance(61)
                cloud.until(lambda shown: shown["DBInstanceStatus"] == status, name)
        case _:
            cloud.control("POST", f"instances/{name}", {"status": status})


def _modification(instance: Reply) -> Reply:
    """Return a change whose pending values are the recorded ones; those of a creation need none."""
    pending = instance.get("PendingModifiedValues", {})
    change = {name: value for name, value in pending.items() if value != "****"}
    if "AllocatedStorage" in change:
        change["AllocatedStorage"] = max(30, change["AllocatedStorage"])
    if "EngineVersion" in change:
        change["EngineVersion"] = _NEWER_VERSION
    if "MasterUserPassword" in pending and instance["DBInstanceStatus"] != "creating":
        change["MasterUserPassword"] = PASSWORD
    return {**change, "CopyTagsToSnapshot": instance.get("CopyTagsToSnapshot", False)}


def _on_instance(cloud: Cloud, operation: str, instance: Reply) -> Any:
    name = {"DBInstanceIdentifier": instance["DBInstanceIdentifier"]}
    if operation == "CreateDBInstance":
        return cloud.rds.create_db_instance(**_wanted(instance))
    if operation in _RESTORES:
        return _restore(cloud, operation, instance)
    calls: dict[str, tuple[str, Callable[[], Any]]] = {
        "ModifyDBInstance": (
            "creating" if instance["DBInstanceStatus"] == "creating" else "available",
            lambda: cloud.rds.modify_db_instance(**name, **_modification(instance)),
        ),
        "DeleteDBInstance": ("available", lambda: cloud.rds.delete_db_instance(**name, SkipFinalSnapshot=True)),
        "StopDBInstance": ("available", lambda: cloud.rds.stop_db_instance(**name)),
        "StartDBInstance": ("stopped", lambda: cloud.rds.start_db_instance(**name)),
        "RebootDBInstance": ("available", lambda: cloud.rds.reboot_db_instance(**name)),
    }
    assert operation in calls, f"{operation} is not replayed"
    status, call = calls[operation]
    _bring(cloud, instance, status)
    return call()


def _restore(cloud: Cloud, operation: str, instance: Reply) -> Any:
    source = {**instance, "DBInstanceIdentifier": "the-source", "MultiAZ": False}
    same = {"DBInstanceClass": _wanted(instance)["DBInstanceClass"], "MultiAZ": instance.get("MultiAZ", False)}
    if operation == "RestoreDBInstanceFromDBSnapshot":
        _bring(cloud, source, "available")
        _take(cloud, {"DBInstanceIdentifier": "the-source", "Status": "available"}, "the-snapshot")
        names = {"DBInstanceIdentifier": instance["DBInstanceIdentifier"], "DBSnapshotIdentifier": "the-snapshot"}
        return cloud.rds.restore_db_instance_from_db_snapshot(**names, **same)
    # Nothing is restored from an instance without backups.
    _bring(cloud, {**source, "BackupRetentionPeriod": source.get("BackupRetentionPeriod") or 1}, "available")
    pair = {"SourceDBInstanceIdentifier": "the-source", "TargetDBInstanceIdentifier": instance["DBInstanceIdentifier"]}
    return cloud.rds.restore_db_instance_to_point_in_time(**pair, **same, UseLatestRestorableTime=True)


def _take(cloud: Cloud, snapshot: Reply, name: str) -> Any:
    """Take a snapshot of an instance that is there; return the reply."""
    source = snapshot["DBInstanceIdentifier"]
    tags = [{"Key": "a", "Value": "b"}] if snapshot.get("TagList") else []
    names = {"DBInstanceIdentifier": source, "DBSnapshotIdentifier": name}
    reply = cloud.rds.create_db_snapshot(**names, Tags=tags)
    if snapshot["Status"] != "creating":
        cloud.advance(61)
        cloud.rest(source)
    return reply


def _snapshots(cloud: Cloud, snapshots: list[Reply]) -> Any:
    for index, snapshot in enumerate(snapshots):
        if all(snapshot["DBInstanceIdentifier"] != other["DBInstanceIdentifier"] for other in snapshots[:index]):
            _bring(cloud, snapshot, "available")
        name = snapshot["DBSnapshotIdentifier"].replace("rds:", "was-")
        if "SourceDBSnapshotIdentifier" not in snapshot:
            _take(cloud, snapshot, name)
            continue
        _take(cloud, {**snapshot, "Status": "available"}, "the-first")
        _copy(cloud, snapshot, "the-first", name)
        cloud.rds.delete_db_snapshot(DBSnapshotIdentifier="the-first")
    return cloud.rds.describe_db_snapshots(SnapshotType="manual")


def _copy(cloud: Cloud, snapshot: Reply, source: str, target: str) -> Any:
    names = {"SourceDBSnapshotIdentifier": source, "TargetDBSnapshotIdentifier": target}
    return cloud.rds.copy_db_snapshot(**names, CopyTags=bool(snapshot.get("TagList")))


def _on_snapshot(cloud: Cloud, operation: str, snapshot: Reply) -> Any:
    between = {
        snapshot.get(key, "").partition(":snapshot:")[0] for key in ("SourceDBSnapshotIdentifier", "DBSnapshotArn")
    }
    assert operation != "CopyDBSnapshot" or len(between - {""}) < 2, "a copy between regions is not replayed"
    _bring(cloud, snapshot, "available")
    name = snapshot["DBSnapshotIdentifier"].replace("rds:", "was-")
    if operation == "CreateDBSnapshot":
        return _take(cloud, snapshot, name)
    _take(cloud, {**snapshot, "Status": "available"}, "the-first" if operation == "CopyDBSnapshot" else name)
    match operation:
        case "CopyDBSnapshot":
            return _copy(cloud, snapshot, "the-first", name)
        case "DeleteDBSnapshot":
            return cloud.rds.delete_db_snapshot(DBSnapshotIdentifier=name)
        case "ModifyDBSnapshot":
            return cloud.rds.modify_db_snapshot(DBSnapshotIdentifier=name, EngineVersion=_NEWER_VERSION)
        case _:
            raise AssertionError(f"{operation} is not replayed")


def _again(cloud: Cloud, recording: Recording) -> Any:
    """Make a recorded call with the simulated service; return the reply."""
    data, operation = recording.data, recording.operation
    match operation:
        case "DescribeDBInstances":
            # What is being created needs the time that the others take.
            for instance in sorted(data["DBInstances"], key=lambda shown: shown["DBInstanceStatus"] != "creating"):
                _bring(cloud, instance, instance["DBInstanceStatus"])
            return cloud.rds.describe_db_instances()
        case "DescribeDBSnapshots":
            return _snapshots(cloud, data["DBSnapshots"])
        case "DescribeDBEngineVersions" | "DescribeDBParameters":
            return _on_offers(cloud, operation)
        case "AddTagsToResource" | "RemoveTagsFromResource" | "ListTagsForResource":
            return _on_tags(cloud, operation, data)
        case _:
            assert {"DBInstance", "DBSnapshot"} & set(data), f"{operation} is not replayed"
            of_instance = "DBInstance" in data
            call, resource = (_on_instance, "DBInstance") if of_instance else (_on_snapshot, "DBSnapshot")
            return call(cloud, operation, data[resource])


def _on_offers(cloud: Cloud, operation: str) -> Any:
    if operation == "DescribeDBEngineVersions":
        return cloud.rds.describe_db_engine_versions()
    return cloud.rds.describe_db_parameters(DBParameterGroupName="default.postgres16")


def _on_tags(cloud: Cloud, operation: str, data: Reply) -> Any:
    tags = [{"Key": key, "Value": value} for key, value in _tags(data)]
    resource = {"ResourceName": cloud.create(Tags=tags)["DBInstanceArn"]}
    match operation:
        case "AddTagsToResource":
            return cloud.rds.add_tags_to_resource(**resource, Tags=[{"Key": "a", "Value": "b"}])
        case "RemoveTagsFromResource":
            return cloud.rds.remove_tags_from_resource(**resource, TagKeys=["a"])
        case _:
            return cloud.rds.list_tags_for_resource(**resource)
