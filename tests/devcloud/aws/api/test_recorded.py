"""What recordings of the real RDS, and reports of its answers, prove of it: a row for each fact, with its source.

`c7n` are cloud-custodian's recordings (tests/data/placebo at df800e9), by folder; `make replay` makes them again whole.
`API` is the RDS API Reference, `CLI` the AWS CLI Command Reference, `UG` the RDS User Guide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.devcloud.aws.conftest import Cloud, refusal

RESTORE = "c7n test_rds_restore"
UPGRADE = "c7n test_rds_minor_upgrade_do"
EMPTY = "crossplane-contrib/provider-aws pull request 2146"
WINDOWS = {"PreferredBackupWindow": "04:35-05:05", "PreferredMaintenanceWindow": "mon:09:26-mon:09:56"}
KEPT: dict[str, Any] = {"DBName": "shop", "BackupRetentionPeriod": 7, **WINDOWS}
ACCOUNT = "123456789012"


class Fact(msgspec.Struct, frozen=True):
    """A fact: in words, who says so, how it is seen here, and what is seen then."""

    says: str
    source: str
    see: Callable[[Cloud], object]
    seen: object


def _shown(instance: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: instance[name] for name in names if name in instance}


def _taken(cloud: Cloud, **created: Any) -> None:
    cloud.created(**created)
    cloud.rds.create_db_snapshot(DBInstanceIdentifier="db-1", DBSnapshotIdentifier="kept")
    cloud.rest()


def _restored(cloud: Cloud, **parameters: Any) -> dict[str, Any]:
    """Restore a snapshot; return the reply."""
    _taken(cloud, **KEPT, DBInstanceClass="db.m6g.large")
    cloud.at_real_length()
    names = {"DBInstanceIdentifier": "db-2", "DBSnapshotIdentifier": "kept"}
    reply: dict[str, Any] = cloud.rds.restore_db_instance_from_db_snapshot(**names, **parameters)["DBInstance"]
    return reply


def _to_point_in_time(cloud: Cloud) -> dict[str, Any]:
    cloud.created(**KEPT)
    names = {"SourceDBInstanceIdentifier": "db-1", "TargetDBInstanceIdentifier": "db-2"}
    reply = cloud.rds.restore_db_instance_to_point_in_time(**names, UseLatestRestorableTime=True)
    instance: dict[str, Any] = reply["DBInstance"]
    return instance


def _from_retained(cloud: Cloud) -> dict[str, Any]:
    source = cloud.created(**KEPT)
    gone = {"DBInstanceIdentifier": "db-1", "SkipFinalSnapshot": True, "DeleteAutomatedBackups": False}
    cloud.rds.delete_db_instance(**gone)
    cloud.gone()
    reply = cloud.rds.restore_db_instance_to_point_in_time(
        SourceDbiResourceId=source["DbiResourceId"], TargetDBInstanceIdentifier="db-2", UseLatestRestorableTime=True
    )
    instance: dict[str, Any] = reply["DBInstance"]
    return instance


def _created_after_a_restore(cloud: Cloud) -> dict[str, Any]:
    _restored(cloud)
    cloud.advance(301)
    return cloud.until(lambda shown: "Endpoint" in shown, "db-2")


def _while_creating(cloud: Cloud, **created: Any) -> list[list[str]]:
    cloud.at_real_length()
    cloud.create(**created)
    names = ("AvailabilityZone", "SecondaryAvailabilityZone", "Endpoint", "EnhancedMonitoringResourceArn")
    statuses = []
    for seconds in (1, 60, 180):
        cloud.advance(seconds)
        if seconds == 180:  # the databases answer when they like
            cloud.until(lambda shown: "Endpoint" in shown)
        statuses.append(list(_shown(cloud.look(), *names)))
    return statuses


def _changed_while_creating(cloud: Cloud, **change: Any) -> dict[str, Any]:
    cloud.at_real_length()
    cloud.create(AutoMinorVersionUpgrade=False)
    reply: dict[str, Any] = cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", **change)["DBInstance"]
    return reply


def _after_creation(cloud: Cloud, **change: Any) -> dict[str, Any]:
    _changed_while_creating(cloud, **change)
    cloud.advance(301)
    return cloud.until(lambda shown: shown["DBInstanceStatus"] in {"backing-up", "available"})


def _modified(cloud: Cloud, **change: Any) -> dict[str, Any]:
    cloud.created()
    reply: dict[str, Any] = cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", **change)["DBInstance"]
    return reply


def _flushed_by_an_empty_change(cloud: Cloud) -> object:
    _modified(cloud, MultiAZ=True)
    cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", ApplyImmediately=True)
    return cloud.until(lambda shown: shown["PendingModifiedValues"] == {}).get("SecondaryAvailabilityZone")


FACTS = (
    Fact("a restored instance has the source's database, windows and retention", RESTORE,
         lambda cloud: _shown(_restored(cloud), *KEPT), KEPT),
    Fact("a restore to a point in time has them too", RESTORE,
         lambda cloud: _shown(_to_point_in_time(cloud), *KEPT), KEPT),
    Fact("and one from the backups of an instance that is gone", RESTORE,
         lambda cloud: _shown(_from_retained(cloud), *KEPT), KEPT),
    Fact("a restored instance's option group is pending-apply at first, its parameter group in-sync", RESTORE,
         lambda cloud: [(reply := _restored(cloud))["OptionGroupMemberships"][0]["Status"],
                        reply["DBParameterGroups"][0]["ParameterApplyStatus"], reply["PendingModifiedValues"]],
         ["pending-apply", "in-sync", {}]),
    Fact("and in-sync with its endpoint", RESTORE,
         lambda cloud: _created_after_a_restore(cloud)["OptionGroupMemberships"],
         [{"OptionGroupName": "default:postgres-16", "Status": "in-sync"}]),
    Fact("an instance shows its zone before its endpoint, its standby's zone and log stream with it", UPGRADE,
         lambda cloud: _while_creating(cloud, MultiAZ=True, MonitoringInterval=60,
                                       MonitoringRoleArn=f"arn:aws:iam::{ACCOUNT}:role/monitor"),
         [[], ["AvailabilityZone"],
          ["AvailabilityZone", "SecondaryAvailabilityZone", "Endpoint", "EnhancedMonitoringResourceArn"]]),
    Fact("a change while creating is taken: the reply is creating, both values are pending", UPGRADE,
         lambda cloud: _shown(_changed_while_creating(cloud, EngineVersion="16.6"),
                              "DBInstanceStatus", "EngineVersion", "PendingModifiedValues"),
         {"DBInstanceStatus": "creating", "EngineVersion": "16.4",
          "PendingModifiedValues": {"MasterUserPassword": "****", "EngineVersion": "16.6"}}),
    Fact("what was asked while creating waits for the window after creation", UPGRADE,
         lambda cloud: _after_creation(cloud, EngineVersion="16.6")["PendingModifiedValues"],
         {"EngineVersion": "16.6"}),
    Fact("a password given while creating is pending until its own reset", "API ModifyDBInstance",
         lambda cloud: _after_creation(cloud, MasterUserPassword="Another-word-1")["PendingModifiedValues"],
         {"MasterUserPassword": "****"}),
    Fact("while creating nothing is applied immediately", "hashicorp/terraform-provider-aws issue 31594",
         lambda cloud: refusal(lambda: _changed_while_creating(cloud, EngineVersion="16.6", ApplyImmediately=True)),
         ("InvalidDBInstanceState", 400)),
    Fact("an empty change is taken with ApplyImmediately", EMPTY,
         lambda cloud: _modified(cloud, ApplyImmediately=True)["DBInstanceStatus"], "available"),
    Fact("and applies what waits, as ApplyImmediately does", "UG Modifying an Amazon RDS DB instance",
         _flushed_by_an_empty_change, "eu-west-1b"),
    Fact("an empty change without it is refused", EMPTY,
         lambda cloud: refusal(lambda: _modified(cloud)), ("InvalidParameterCombination", 400)),
)  # fmt: skip


@pytest.mark.parametrize("fact", FACTS, ids=[fact.says for fact in FACTS])
def test_the_service_does_as_was_recorded(fact: Fact, cloud: Cloud) -> None:
    assert fact.see(cloud) == fact.seen
