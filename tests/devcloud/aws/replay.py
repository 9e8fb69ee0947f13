"""Recorded exchanges with the real RDS, made again with the simulated one: `make replay RECORDINGS=folder`.

A recording is a file `rds.<Operation>_<n>.json` with `status_code` and `data`, the parsed reply, as placebo writes it;
times are objects of class `datetime`; requests are not part of it, so each is derived from its reply. For every one a
simulator is brought where the reply shows the real service was, the call is made, and the two replies are compared:
HTTP status, error code, states, pending values, and every field by name and type.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devcloud.aws import catalog, wire
from devcloud.aws.refusals import Refusal
from tests.devcloud.aws.conftest import PASSWORD, QUICK, Cloud

_FILE = re.compile(r"rds\.(\w+?)_\d+\.json")
# Whether they are shown tells that an instance is not born yet.
TELLING = ("Endpoint", "AvailabilityZone", "InstanceCreateTime", "LatestRestorableTime", "AutomaticRestartTime")


class Recording(msgspec.Struct, frozen=True):
    """An exchange: which operation, how it was answered, in which file."""

    operation: str
    status: int
    data: dict[str, Any]
    name: str


def recordings(folder: Path) -> Iterator[Recording]:
    """Yield the exchanges below a folder."""
    for path in sorted(folder.rglob("rds.*.json")):
        found = _FILE.fullmatch(path.name)
        if found:
            content = json.loads(path.read_text(encoding="utf-8"), object_hook=_times)
            name = f"{path.parent.name}/{path.name}"
            yield Recording(found[1], content["status_code"], content["data"], name)


def _times(value: dict[str, Any]) -> Any:
    if value.get("__class__") != "datetime":
        return value
    return datetime(value["year"], value["month"], value["day"], tzinfo=UTC)


def shape(value: Any) -> Any:
    """Return a reply's names and types; of a list, those of all its members together."""
    match value:
        case dict():
            return {name: shape(inner) for name, inner in value.items()}
        case list():
            merged: dict[str, Any] = {}
            for each in value:
                inner = shape(each)
                merged |= inner if isinstance(inner, dict) else {"": inner}
            return [merged]
        case bool():
            return "boolean"
        case _:
            return type(value).__name__


def lacks(recorded: Any, simulated: Any, path: str = "") -> Iterator[str]:
    """Name what a recorded reply has that the simulated one lacks or has otherwise."""
    match recorded, simulated:
        case dict(), dict():
            for name, inner in recorded.items():
                if name not in simulated:
                    yield f"{path}.{name} is missing"
                else:
                    yield from lacks(inner, simulated[name], f"{path}.{name}")
        case [one], [other]:
            # An empty list says nothing of its members.
            if one and other:
                yield from lacks(one, other, f"{path}[]")
        case _ if recorded != simulated:
            yield f"{path} is {simulated}, was {recorded}"


def _wanted(instance: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an instance like a recorded one; other engines become PostgreSQL."""
    kind = instance["StorageType"]
    gib = max({"standard": 5, "io1": 100, "io2": 100}.get(kind, 20), instance["AllocatedStorage"])
    known = instance.get("DBInstanceClass") in catalog.CLASSES
    monitored, insights = instance.get("MonitoringInterval"), instance.get("PerformanceInsightsEnabled")
    given = {
        "DBInstanceIdentifier": instance["DBInstanceIdentifier"],
        "DBInstanceClass": instance["DBInstanceClass"] if known else "db.m5.large",
        "Engine": "postgres",
        "MasterUsername": "app_admin",
        "MasterUserPassword": PASSWORD,
        "AllocatedStorage": gib,
        "StorageType": kind,
        "Iops": 1000 if kind in {"io1", "io2"} else None,
        "MaxAllocatedStorage": 2 * gib if "MaxAllocatedStorage" in instance else None,
        "BackupRetentionPeriod": instance.get("BackupRetentionPeriod", 1),
        "StorageEncrypted": instance.get("StorageEncrypted", instance.get("Encrypted")),
        "DBName": "shop" if "DBName" in instance else None,
        "MultiAZ": "SecondaryAvailabilityZone" in instance,
        "MonitoringInterval": monitored,
        "MonitoringRoleArn": "arn:aws:iam::123456789012:role/monitor" if monitored else None,
        "EnablePerformanceInsights": insights,
        "EnableCloudwatchLogsExports": ["postgresql"] if "EnabledCloudwatchLogsExports" in instance else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def bring(cloud: Cloud, instance: dict[str, Any], status: str) -> None:
    """Make an instance like a recorded one, in a state that lasts."""
    name = instance["DBInstanceIdentifier"].lower()
    cloud.control("POST", "clock", {"durations": QUICK if status != "creating" else 1.0})
    cloud.rds.create_db_instance(**_wanted(instance))
    if status == "creating":
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


def _modification(instance: dict[str, Any]) -> dict[str, Any]:
    pending = instance.get("PendingModifiedValues", {})
    given = {name: value for name, value in pending.items() if value != "****"}
    if "AllocatedStorage" in given:
        given["AllocatedStorage"] = max(30, given["AllocatedStorage"])
    if "MasterUserPassword" in pending:
        given["MasterUserPassword"] = PASSWORD
    return {**given, "CopyTagsToSnapshot": instance.get("CopyTagsToSnapshot", False)}


def _on_instance(cloud: Cloud, operation: str, instance: dict[str, Any]) -> Any:
    name = {"DBInstanceIdentifier": instance["DBInstanceIdentifier"]}
    if operation == "CreateDBInstance":
        return cloud.rds.create_db_instance(**_wanted(instance))
    bring(cloud, instance, "stopped" if operation == "StartDBInstance" else "available")
    match operation:
        case "ModifyDBInstance":
            return cloud.rds.modify_db_instance(**name, **_modification(instance))
        case "DeleteDBInstance":
            return cloud.rds.delete_db_instance(**name, SkipFinalSnapshot=True)
        case "StopDBInstance":
            return cloud.rds.stop_db_instance(**name)
        case "StartDBInstance":
            return cloud.rds.start_db_instance(**name)
        case "RebootDBInstance":
            return cloud.rds.reboot_db_instance(**name)
        case _:
            raise AssertionError(f"{operation} on an instance is not replayed")


def _snapshots(cloud: Cloud, recorded: list[dict[str, Any]]) -> Any:
    for each in recorded:
        bring(cloud, each, "available")
        name = each["DBSnapshotIdentifier"].replace("rds:", "was-")
        tags = [{"Key": "a", "Value": "b"}] if each.get("TagList") else []
        cloud.rds.create_db_snapshot(
            DBInstanceIdentifier=each["DBInstanceIdentifier"], DBSnapshotIdentifier=name, Tags=tags
        )
        if each["Status"] == "available":
            cloud.advance(61)
            cloud.rest(each["DBInstanceIdentifier"])
    return cloud.rds.describe_db_snapshots(SnapshotType="manual")


def again(cloud: Cloud, recording: Recording) -> Any:
    """Make a recorded call with the simulated service; return the reply."""
    data = recording.data
    match recording.operation:
        case "DescribeDBInstances":
            for each in data["DBInstances"]:
                bring(cloud, each, each["DBInstanceStatus"])
            return cloud.rds.describe_db_instances()
        case "DescribeDBSnapshots":
            return _snapshots(cloud, data["DBSnapshots"])
        case "AddTagsToResource":
            return cloud.rds.add_tags_to_resource(
                ResourceName=cloud.create()["DBInstanceArn"], Tags=[{"Key": "a", "Value": "b"}]
            )
        case "RemoveTagsFromResource":
            return cloud.rds.remove_tags_from_resource(ResourceName=cloud.create()["DBInstanceArn"], TagKeys=["a"])
        case operation:
            return _on_instance(cloud, operation, data["DBInstance"])


def told(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a reply tells of states: each resource's own, its pending values, whether it is born."""
    found = reply.get("DBInstances") or reply.get("DBSnapshots") or [reply["DBInstance"]] if len(reply) > 1 else []
    return [
        {
            "status": each.get("DBInstanceStatus", each.get("Status")),
            "pending": sorted(each.get("PendingModifiedValues", {})),
            "shows": sorted(set(TELLING) & set(each)) if each.get("DBInstanceStatus") == "creating" else "its own",
        }
        for each in sorted(found, key=lambda each: str(each["DBInstanceIdentifier"]))
    ]


RECORDED = list(recordings(Path(os.environ["RECORDINGS"])))
assert RECORDED, "RECORDINGS names a folder without a recording of RDS"


@pytest.mark.parametrize("recording", RECORDED, ids=lambda found: found.name)
def test_the_simulated_service_answers_as_the_recorded_one(recording: Recording, cloud: Cloud) -> None:
    if recording.status >= 400:
        error = recording.data["Error"]
        status, _ = wire.refusal(Refusal(error["Code"], error["Message"]), "", "")
        assert (error["Code"], status) == (error["Code"], recording.status)
        return
    reply = again(cloud, recording)

    assert reply["ResponseMetadata"]["HTTPStatusCode"] == recording.status
    recorded = {name: value for name, value in recording.data.items() if name != "ResponseMetadata"}
    assert list(lacks(shape(recorded), shape(reply))) == []
    assert told({"": None, **recorded}) == told(reply)
