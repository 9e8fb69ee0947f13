"""What RDS refuses, each with the place that says so; no refusal has an effect.

Sources: `API` is the RDS API Reference (and botocore's rds/2014-10-31, which carries its text), `UG` the RDS User
Guide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from devcloud.aws.server import Options, running
from tests.devcloud.aws.conftest import PASSWORD, QUICK, Cloud, refusal

COMBINATION = "InvalidParameterCombination"
VALUE = "InvalidParameterValue"
# Public reports of the service's own answers.
TERRAFORM = "hashicorp/terraform-provider-aws and its modules: issues on InvalidParameterCombination"
CROSSPLANE = "crossplane-contrib/provider-aws: No modifications were requested"
JUSTICE = "ministryofjustice/cloud-platform-environments: pull requests on max_allocated_storage"


class Case(msgspec.Struct, frozen=True):
    """A call that is refused; without a source its call's page of the API Reference says so."""

    says: str
    call: str
    request: dict[str, Any]
    code: str
    source: str = "API"


COMPLETE = {
    "DBInstanceIdentifier": "fresh",
    "DBInstanceClass": "db.t4g.micro",
    "Engine": "postgres",
    "EngineVersion": "16.4",
    "MasterUsername": "app_admin",
    "MasterUserPassword": PASSWORD,
    "AllocatedStorage": 20,
}
PRESENT = {"DBInstanceIdentifier": "present"}
LARGE = {"DBInstanceIdentifier": "large"}
RESTORED = {"DBInstanceIdentifier": "fresh", "DBSnapshotIdentifier": "kept"}
HERE, ONE_TAG = "eu-west-1:123456789012", [{"Key": "a", "Value": "b"}]
A, B, C, D = (f"subnet-0a1b2c3d4e5f6000{letter}" for letter in "abcd")
OTHER_A, OTHER_B = (f"subnet-0a1b2c3d4e5f6001{letter}" for letter in "ab")
SUBNETS = {"DBSubnetGroupName": "fresh", "DBSubnetGroupDescription": "d"}
PARAMETER = {"ParameterName": "work_mem", "ParameterValue": "4096", "ApplyMethod": "immediate"}


def create(says: str, code: str, source: str = "API", /, **request: Any) -> Case:
    return Case(says, "create_db_instance", {**COMPLETE, **request}, code, source)


def modify(says: str, code: str, source: str = "API", /, **request: Any) -> Case:
    return Case(says, "modify_db_instance", {**PRESENT, **request}, code, source)


def cover(says: str, code: str, source: str = "API", /, **request: Any) -> Case:
    return Case(says, "create_db_subnet_group", {**SUBNETS, **request}, code, source)


def tune(says: str, code: str, /, **parameter: str) -> Case:
    return of_own_group(says, code, Parameters=[{**PARAMETER, **parameter}])


def of_own_group(says: str, code: str, call: str = "modify_db_parameter_group", /, **request: Any) -> Case:
    return Case(says, call, {"DBParameterGroupName": "own-16", **request}, code)


def of_tags(says: str, code: str, arn: str, /, **tags: Any) -> Case:
    call = "add_tags_to_resource" if tags else "list_tags_for_resource"
    return Case(says, call, {"ResourceName": f"arn:aws:rds:{arn}", **tags}, code)


CASES = (
    # Values of CreateDBInstance.
    create("an identifier is unique in any letter case", "DBInstanceAlreadyExists", DBInstanceIdentifier="PRESENT"),
    create("a password has 8 characters at least", VALUE, MasterUserPassword="Short-1"),
    create("a password is given or managed", COMBINATION, ManageMasterUserPassword=True),
    create("a version is offered", COMBINATION, EngineVersion="16.99"),
    create("a class is offered for the version", COMBINATION, "UG Supported DB engines", DBInstanceClass="db.t2.micro"),
    create("io1 needs IOPS", COMBINATION, StorageType="io1", AllocatedStorage=100),
    create("small gp3 takes no IOPS", COMBINATION, TERRAFORM, StorageType="gp3", Iops=4000),
    create("small gp3 takes no throughput", COMBINATION, TERRAFORM, StorageType="gp3", StorageThroughput=500),
    create("the most storage is above the storage", COMBINATION, JUSTICE, MaxAllocatedStorage=20),
    create("the most storage is 10% above the storage", COMBINATION, JUSTICE, AllocatedStorage=100,
           MaxAllocatedStorage=105),
    create("windows do not overlap", COMBINATION, PreferredBackupWindow="02:00-03:00",
           PreferredMaintenanceWindow="sun:02:30-sun:03:30"),
    create("a Multi-AZ instance names no zone", COMBINATION, MultiAZ=True, AvailabilityZone="eu-west-1a"),
    create("a zone is one of the subnet group's", "InvalidVPCNetworkStateFault", AvailabilityZone="eu-west-1c",
           DBSubnetGroupName="in-use"),
    create("a subnet group exists", "DBSubnetGroupNotFoundFault", DBSubnetGroupName="none"),
    create("a parameter group exists", "DBParameterGroupNotFound", DBParameterGroupName="none"),
    create("a parameter group is of the version's family", COMBINATION, EngineVersion="17.4",
           DBParameterGroupName="own-16"),
    create("a security group is of the subnets' VPC", "InvalidVPCNetworkStateFault",
           VpcSecurityGroupIds=["sg-0a1b2c3d4e5f60001"], DBSubnetGroupName="elsewhere"),
    create("a key is for what is encrypted", COMBINATION, KmsKeyId="k", StorageEncrypted=False),
    create("monitoring needs a role", COMBINATION, MonitoringInterval=60),
    create("there are 50 tags at most", VALUE, "UG Tagging Amazon RDS resources",
           Tags=[{"Key": f"k{number}", "Value": ""} for number in range(51)]),
    create("a public address needs an internet gateway", "InvalidVPCNetworkStateFault", PubliclyAccessible=True,
           DBSubnetGroupName="elsewhere"),
    # Changes.
    modify("a change changes something", COMBINATION, CROSSPLANE),
    modify("a change that changes something is no flag alone", COMBINATION, CROSSPLANE, ApplyImmediately=False),
    modify("an instance exists", "DBInstanceNotFound", DBInstanceIdentifier="none"),
    modify("storage never shrinks", COMBINATION, AllocatedStorage=20),
    modify("a version is never lowered", COMBINATION, "UG Upgrading the PostgreSQL DB engine", EngineVersion="16.3"),
    modify("a major upgrade is allowed by a flag", COMBINATION, EngineVersion="17.4"),
    modify("a change keeps passwords' rules", VALUE, MasterUserPassword="short"),
    modify("a rename finds a free name", "DBInstanceAlreadyExists", NewDBInstanceIdentifier="protected"),
    modify("a window does not overlap the present other one", COMBINATION, PreferredBackupWindow="02:00-03:00"),
    modify("storage stays below the most storage", COMBINATION, "UG Managing capacity automatically",
           AllocatedStorage=60),
    Case("a major upgrade names a group in place of an own one", "modify_db_instance",
         {**LARGE, "EngineVersion": "17.4", "AllowMajorVersionUpgrade": True}, COMBINATION,
         source="UG Upgrading the PostgreSQL DB engine"),
    Case("IOPS come with a size", "modify_db_instance", {**LARGE, "AllocatedStorage": 600}, COMBINATION,
         source=TERRAFORM),
    Case("a size comes with IOPS", "modify_db_instance", {**LARGE, "Iops": 13_000}, COMBINATION, source=TERRAFORM),
    # Deletion.
    Case("a deletion says what of a snapshot", "delete_db_instance", PRESENT, COMBINATION),
    Case("a deletion skips the snapshot that it does not name", "delete_db_instance",
         {**PRESENT, "SkipFinalSnapshot": True, "FinalDBSnapshotIdentifier": "last"}, COMBINATION),
    Case("a final snapshot has a new name", "delete_db_instance", {**PRESENT, "FinalDBSnapshotIdentifier": "kept"},
         "DBSnapshotAlreadyExists", source=TERRAFORM),
    Case("a protected instance stays", "delete_db_instance",
         {"DBInstanceIdentifier": "protected", "SkipFinalSnapshot": True}, COMBINATION,
         source="UG Deleting a DB instance"),
    # Snapshots and restores.
    Case("a snapshot has a new name", "create_db_snapshot", {**PRESENT, "DBSnapshotIdentifier": "Kept"},
         "DBSnapshotAlreadyExists"),
    Case("a snapshot is there to be shown", "describe_db_snapshots", {"DBSnapshotIdentifier": "none"},
         "DBSnapshotNotFound"),
    Case("a snapshot is there to be restored", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBSnapshotIdentifier": "none"}, "DBSnapshotNotFound"),
    Case("a restore has a new name", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBInstanceIdentifier": "present"}, "DBInstanceAlreadyExists"),
    Case("a point in time needs backups", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "protected", "TargetDBInstanceIdentifier": "fresh",
         "UseLatestRestorableTime": True}, "PointInTimeRestoreNotEnabled"),
    Case("a point in time has a source", "restore_db_instance_to_point_in_time",
         {"SourceDbiResourceId": "db-NONE", "TargetDBInstanceIdentifier": "fresh", "UseLatestRestorableTime": True},
         "DBInstanceAutomatedBackupNotFound"),
    # Groups.
    cover("a subnet group covers two zones", "DBSubnetGroupDoesNotCoverEnoughAZs", SubnetIds=[A, D]),
    cover("a subnet exists", "InvalidSubnet", SubnetIds=["subnet-none", A]),
    cover("a subnet group is of one VPC", "InvalidSubnet", SubnetIds=[A, OTHER_B]),
    cover("a subnet group has a new name", "DBSubnetGroupAlreadyExists", DBSubnetGroupName="Elsewhere",
          SubnetIds=[A, B]),
    Case("a subnet group in use stays", "delete_db_subnet_group", {"DBSubnetGroupName": "in-use"},
         "InvalidDBSubnetGroupStateFault"),
    Case("a subnet with an instance stays in its group", "modify_db_subnet_group",
         {"DBSubnetGroupName": "in-use", "SubnetIds": [B, C]}, "SubnetAlreadyInUse"),
    of_own_group("a parameter group in use stays", "InvalidDBParameterGroupState", "delete_db_parameter_group"),
    Case("a default parameter group stays as it is", "modify_db_parameter_group",
         {"DBParameterGroupName": "default.postgres16", "Parameters": [PARAMETER]}, "InvalidDBParameterGroupState",
         source="UG Working with parameter groups"),
    Case("a parameter group has a new name", "create_db_parameter_group",
         {"DBParameterGroupName": "Own-16", "DBParameterGroupFamily": "postgres16", "Description": "d"},
         "DBParameterGroupAlreadyExists"),
    of_own_group("a static parameter is not reset at once", COMBINATION, "reset_db_parameter_group",
                 Parameters=[{**PARAMETER, "ParameterName": "max_connections"}]),
    tune("a static parameter is not applied at once", COMBINATION, ParameterName="max_connections"),
    tune("a parameter exists", VALUE, ParameterName="work_memory"),
    tune("a parameter keeps its range", VALUE, ParameterValue="1"),
    tune("an extension is on the list of the version", VALUE,
         ParameterName="rds.allowed_extensions", ParameterValue="pg_trgm,sslinfo"),
    of_own_group("20 parameters are changed at once at most", VALUE, Parameters=[PARAMETER] * 21),
    # Others.
    of_tags("tags are of a resource that exists", "DBInstanceNotFound", f"{HERE}:db:none", Tags=ONE_TAG),
    Case("a page has 100 records at most", "describe_db_instances", {"MaxRecords": 101}, VALUE),
    Case("a failover needs a standby", "reboot_db_instance", {**PRESENT, "ForceFailover": True}, COMBINATION),
    Case("only what is stopped is started", "start_db_instance", PRESENT, "InvalidDBInstanceState"),
)  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Iterator[Cloud]:
    with running(Options(durations=QUICK)) as served:
        cloud = Cloud(served, Cloud(served, None).client(config={"parameter_validation": False}))
        rds = cloud.rds
        for group, subnets in (("elsewhere", [OTHER_A, OTHER_B]), ("in-use", [A, B])):
            rds.create_db_subnet_group(**SUBNETS | {"DBSubnetGroupName": group}, SubnetIds=subnets)
        rds.create_db_parameter_group(
            DBParameterGroupName="own-16", DBParameterGroupFamily="postgres16", Description="d"
        )
        cloud.create(
            "present",
            AllocatedStorage=40,
            MaxAllocatedStorage=50,
            PreferredBackupWindow="04:00-05:00",
            PreferredMaintenanceWindow="sun:02:30-sun:03:30",
        )
        cloud.create("protected", DeletionProtection=True, BackupRetentionPeriod=0, DBSubnetGroupName="in-use")
        cloud.create("large", AllocatedStorage=500, DBParameterGroupName="own-16")
        for name in ("present", "protected", "large"):
            cloud.rest(name)
        rds.create_db_snapshot(DBInstanceIdentifier="present", DBSnapshotIdentifier="kept")
        rds.get_waiter("db_snapshot_completed").wait(
            DBSnapshotIdentifier="kept", WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000}
        )
        cloud.rest("present")
        # From here on nothing moves by itself.
        cloud.control("POST", "clock", {"speed": 0})
        yield cloud
        rds.close()


NOT_FOUND = {
    "DBInstanceNotFound",
    "DBInstanceAutomatedBackupNotFound",
    "DBSnapshotNotFound",
    "OptionGroupNotFoundFault",
    "DBSubnetGroupNotFoundFault",
    "DBParameterGroupNotFound",
    "CertificateNotFound",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_service_refuses(case: Case, world: Cloud) -> None:
    status = 404 if case.code in NOT_FOUND else 400
    before = world.control("GET", "instances"), world.control("GET", "snapshots")

    assert refusal(lambda: getattr(world.rds, case.call)(**case.request)) == (case.code, status)
    assert (world.control("GET", "instances"), world.control("GET", "snapshots")) == before


BUSY = (
    *("creating", "modifying", "backing-up", "rebooting", "stopping", "starting", "upgrading", "renaming"),
    *("resetting-master-credentials", "configuring-log-exports", "maintenance", "stopped", "failed"),
    *("incompatible-network", "incompatible-restore", "inaccessible-encryption-credentials"),
)


@pytest.mark.parametrize("status", BUSY)
def test_a_state_refuses_changes_snapshots_and_stops(status: str, world: Cloud) -> None:
    calls: dict[str, dict[str, Any]] = {
        "modify_db_instance": {"DBInstanceClass": "db.m6g.large", "ApplyImmediately": True},
        "create_db_snapshot": {"DBSnapshotIdentifier": "another"},
        "delete_db_instance": {"FinalDBSnapshotIdentifier": "last"},
        "stop_db_instance": {},
        "reboot_db_instance": {},
    }
    world.control("POST", "instances/present", {"status": status})
    try:
        codes = {name: refusal(lambda: getattr(world.rds, name)(**PRESENT, **extra)) for name, extra in calls.items()}  # noqa: B023 - called at once
    finally:
        world.control("POST", "instances/present", {"status": "available"})

    assert codes == dict.fromkeys(calls, ("InvalidDBInstanceState", 400))
