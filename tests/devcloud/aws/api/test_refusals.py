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
ELSEWHERE = "arn:aws:rds:us-east-2:123456789012"
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
    create("an identifier begins with a letter", VALUE, DBInstanceIdentifier="1db"),
    create("an identifier has no two hyphens together", VALUE, DBInstanceIdentifier="a--b"),
    create("an identifier ends with no hyphen", VALUE, DBInstanceIdentifier="a-"),
    create("an identifier has 63 characters at most", VALUE, DBInstanceIdentifier="a" * 64),
    create("an identifier is unique in any letter case", "DBInstanceAlreadyExists", DBInstanceIdentifier="PRESENT"),
    create("a password has 8 characters at least", VALUE, MasterUserPassword="Short-1"),
    create("a password has 128 characters at most", VALUE, MasterUserPassword="p" * 129),
    *(create(f"a password lacks {sign!r}", VALUE, MasterUserPassword=f"Password{sign}1") for sign in '/"@ '),
    create("a password is printable ASCII", VALUE, MasterUserPassword="Passwörter-1"),
    create("a password is given or managed", COMBINATION, ManageMasterUserPassword=True),
    create("a master user is no reserved word", VALUE, MasterUsername="admin"),
    create("a master user has no prefix of the system's", VALUE, MasterUsername="pg_me"),
    create("a master user begins with a letter", VALUE, MasterUsername="1admin"),
    create("a database's name is no reserved word", VALUE, DBName="select"),
    create("a database's name begins with a letter", VALUE, DBName="1shop"),
    create("an engine exists", VALUE, Engine="postgresql"),
    create("a version is offered", COMBINATION, EngineVersion="16.99"),
    create("a class exists", VALUE, DBInstanceClass="db.t9.micro"),
    create("a class is offered for the version", COMBINATION, "UG Supported DB engines", DBInstanceClass="db.t2.micro"),
    create("gp3 begins at 20 GiB", VALUE, AllocatedStorage=19),
    create("io1 begins at 100 GiB", VALUE, StorageType="io1", AllocatedStorage=99, Iops=1000),
    create("io1 needs IOPS", COMBINATION, StorageType="io1", AllocatedStorage=100),
    create("io1 has 50 IOPS for a GiB at most", COMBINATION, "UG Provisioned IOPS storage", StorageType="io1",
           AllocatedStorage=100, Iops=5001),
    create("gp2 takes no IOPS", COMBINATION, "UG General Purpose SSD storage", StorageType="gp2", Iops=3000),
    create("small gp3 takes no IOPS", COMBINATION, TERRAFORM, StorageType="gp3", Iops=4000),
    create("small gp3 takes no throughput", COMBINATION, TERRAFORM, StorageType="gp3", StorageThroughput=500),
    create("large gp3 has 12000 IOPS at least", COMBINATION, "UG gp3 storage", StorageType="gp3",
           AllocatedStorage=400, Iops=3000),
    create("large gp3 has 500 MiB/s at least", COMBINATION, "UG gp3 storage", StorageType="gp3", AllocatedStorage=400,
           StorageThroughput=400),
    create("gp2 takes no throughput", COMBINATION, "UG General Purpose SSD storage", StorageType="gp2",
           StorageThroughput=500),
    create("a storage type exists", VALUE, StorageType="gp9"),
    create("the most storage is above the storage", COMBINATION, JUSTICE, MaxAllocatedStorage=20),
    create("the most storage is 10% above the storage", COMBINATION, JUSTICE, AllocatedStorage=100,
           MaxAllocatedStorage=105),
    create("backups are kept 35 days at most", VALUE, BackupRetentionPeriod=36),
    create("a port is 1150 at least", VALUE, Port=1149),
    create("a backup window has a format", VALUE, PreferredBackupWindow="2-3"),
    create("a backup window has 30 minutes", VALUE, PreferredBackupWindow="02:00-02:29"),
    create("a maintenance window has a format", VALUE, PreferredMaintenanceWindow="02:00-03:00"),
    create("windows do not overlap", COMBINATION, PreferredBackupWindow="02:00-03:00",
           PreferredMaintenanceWindow="sun:02:30-sun:03:30"),
    create("a Multi-AZ instance names no zone", COMBINATION, MultiAZ=True, AvailabilityZone="eu-west-1a"),
    create("a zone is one of the region's", "InvalidVPCNetworkStateFault", AvailabilityZone="eu-west-1z"),
    create("a zone is one of the subnet group's", "InvalidVPCNetworkStateFault", AvailabilityZone="eu-west-1c",
           DBSubnetGroupName="in-use"),
    create("a window is made of times of day", VALUE, PreferredBackupWindow="25:00-26:00"),
    create("a subnet group exists", "DBSubnetGroupNotFoundFault", DBSubnetGroupName="none"),
    create("a parameter group exists", "DBParameterGroupNotFound", DBParameterGroupName="none"),
    create("a parameter group is of the version's family", COMBINATION, EngineVersion="17.4",
           DBParameterGroupName="own-16"),
    create("a security group exists", VALUE, VpcSecurityGroupIds=["sg-none"]),
    create("a security group is of the subnets' VPC", "InvalidVPCNetworkStateFault",
           VpcSecurityGroupIds=["sg-0a1b2c3d4e5f60001"], DBSubnetGroupName="elsewhere"),
    create("a certificate authority exists", "CertificateNotFound", CACertificateIdentifier="ca-1"),
    create("a key is of the region", "KMSKeyNotAccessibleFault", KmsKeyId="arn:aws:kms:us-east-1:123456789012:key/k"),
    create("a key is for what is encrypted", COMBINATION, KmsKeyId="k", StorageEncrypted=False),
    create("monitoring needs a role", COMBINATION, MonitoringInterval=60),
    create("a monitoring interval is one of a list", VALUE, MonitoringInterval=7),
    create("insights are kept for months", VALUE, PerformanceInsightsRetentionPeriod=30),
    create("a log is one of the engine's", COMBINATION, EnableCloudwatchLogsExports=["slowquery"]),
    create("a tag's key is not Amazon's", VALUE, "UG Tagging Amazon RDS resources",
           Tags=[{"Key": "aws:x", "Value": ""}]),
    create("there are 50 tags at most", VALUE, "UG Tagging Amazon RDS resources",
           Tags=[{"Key": f"k{number}", "Value": ""} for number in range(51)]),
    create("a tag's value has few characters", VALUE, "UG Tagging Amazon RDS resources",
           Tags=[{"Key": "k", "Value": "a;b"}]),
    create("an option group exists", "OptionGroupNotFoundFault", OptionGroupName="none"),
    create("a public address needs an internet gateway", "InvalidVPCNetworkStateFault", PubliclyAccessible=True,
           DBSubnetGroupName="elsewhere"),
    create("DB security groups are of the time before VPCs", COMBINATION, DBSecurityGroups=["default"]),
    create("tags have a key each", VALUE, "UG Tagging Amazon RDS resources", Tags=[{"Key": "k", "Value": "v"}] * 2),
    create("a network type exists", VALUE, NetworkType="IPV5"),
    create("the network is IPv4 here", "NetworkTypeNotSupported", NetworkType="DUAL"),
    # Changes.
    modify("a change changes something", COMBINATION, CROSSPLANE),
    modify("a change that changes something is no flag alone", COMBINATION, CROSSPLANE, ApplyImmediately=False),
    modify("an instance exists", "DBInstanceNotFound", DBInstanceIdentifier="none"),
    modify("storage never shrinks", COMBINATION, AllocatedStorage=20),
    modify("a version is never lowered", COMBINATION, "UG Upgrading the PostgreSQL DB engine", EngineVersion="16.3"),
    modify("a major upgrade is allowed by a flag", COMBINATION, EngineVersion="17.4"),
    modify("a change keeps passwords' rules", VALUE, MasterUserPassword="short"),
    modify("a rotation is of a managed password", COMBINATION, RotateMasterUserPassword=True, ApplyImmediately=True),
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
    Case("a snapshot's name begins with a letter", "create_db_snapshot", {**PRESENT, "DBSnapshotIdentifier": "rds:x"},
         VALUE),
    Case("a snapshot is of a type", "describe_db_snapshots", {"SnapshotType": "weekly"}, COMBINATION),
    Case("a snapshot is there to be shown", "describe_db_snapshots", {"DBSnapshotIdentifier": "none"},
         "DBSnapshotNotFound"),
    Case("a snapshot is there to be restored", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBSnapshotIdentifier": "none"}, "DBSnapshotNotFound"),
    Case("no snapshot is of another region", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBSnapshotIdentifier": f"{ELSEWHERE}:snapshot:kept"}, "DBSnapshotNotFound"),
    Case("a restore has a new name", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBInstanceIdentifier": "present"}, "DBInstanceAlreadyExists"),
    Case("a restore does not shrink", "restore_db_instance_from_db_snapshot", {**RESTORED, "AllocatedStorage": 20},
         COMBINATION),
    Case("a point in time needs backups", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "protected", "TargetDBInstanceIdentifier": "fresh",
         "UseLatestRestorableTime": True}, "PointInTimeRestoreNotEnabled"),
    Case("a restore names its snapshot", "restore_db_instance_from_db_snapshot", {"DBInstanceIdentifier": "fresh"},
         VALUE),
    Case("a point in time is a time or the latest", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "present", "TargetDBInstanceIdentifier": "fresh"}, COMBINATION),
    Case("a point in time has a source", "restore_db_instance_to_point_in_time",
         {"SourceDbiResourceId": "db-NONE", "TargetDBInstanceIdentifier": "fresh", "UseLatestRestorableTime": True},
         "DBInstanceAutomatedBackupNotFound"),
    Case("a point in time is in the past", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "present", "TargetDBInstanceIdentifier": "fresh",
         "RestoreTime": "2126-01-01T00:00:00Z"}, "InvalidRestoreFault"),
    # Groups.
    cover("a subnet group covers two zones", "DBSubnetGroupDoesNotCoverEnoughAZs", SubnetIds=[A, D]),
    cover("a subnet exists", "InvalidSubnet", SubnetIds=["subnet-none", A]),
    cover("a subnet group is of one VPC", "InvalidSubnet", SubnetIds=[A, OTHER_B]),
    cover("a subnet group is not called default", VALUE, DBSubnetGroupName="Default", SubnetIds=[A]),
    cover("a subnet group has a new name", "DBSubnetGroupAlreadyExists", DBSubnetGroupName="Elsewhere",
          SubnetIds=[A, B]),
    cover("a subnet group is described", VALUE, DBSubnetGroupDescription=" ", SubnetIds=[A, B]),
    cover("a subnet group has 20 subnets at most", "DBSubnetQuotaExceededFault", "UG Quotas and constraints",
          SubnetIds=[f"subnet-{number}" for number in range(21)]),
    Case("a subnet group stays in its VPC", "modify_db_subnet_group",
         {"DBSubnetGroupName": "elsewhere", "SubnetIds": [A, B]}, "InvalidSubnet"),
    Case("the default subnet group stays", "delete_db_subnet_group", {"DBSubnetGroupName": "default"},
         "InvalidDBSubnetGroupStateFault"),
    Case("a subnet group in use stays", "delete_db_subnet_group", {"DBSubnetGroupName": "in-use"},
         "InvalidDBSubnetGroupStateFault"),
    Case("a subnet with an instance stays in its group", "modify_db_subnet_group",
         {"DBSubnetGroupName": "in-use", "SubnetIds": [B, C]}, "SubnetAlreadyInUse"),
    of_own_group("a parameter group in use stays", "InvalidDBParameterGroupState", "delete_db_parameter_group"),
    Case("a default parameter group stays as it is", "modify_db_parameter_group",
         {"DBParameterGroupName": "default.postgres16", "Parameters": [PARAMETER]}, "InvalidDBParameterGroupState",
         source="UG Working with parameter groups"),
    Case("a parameter group has a family", "create_db_parameter_group",
         {"DBParameterGroupName": "p", "DBParameterGroupFamily": "postgres9", "Description": "d"}, VALUE),
    Case("a parameter group has a new name", "create_db_parameter_group",
         {"DBParameterGroupName": "Own-16", "DBParameterGroupFamily": "postgres16", "Description": "d"},
         "DBParameterGroupAlreadyExists"),
    of_own_group("a change of parameters names some", "MissingParameter", Parameters=[]),
    tune("a parameter is applied in one of two ways", VALUE, ApplyMethod="soon"),
    of_own_group("a parameter says how it is applied", "MissingParameter",
                 Parameters=[{"ParameterName": "jit", "ParameterValue": "1"}]),
    of_own_group("a reset is of all or of some", COMBINATION, "reset_db_parameter_group"),
    of_own_group("a static parameter is not reset at once", COMBINATION, "reset_db_parameter_group",
                 Parameters=[{**PARAMETER, "ParameterName": "max_connections"}]),
    tune("a static parameter is not applied at once", COMBINATION, ParameterName="max_connections"),
    tune("a parameter exists", VALUE, ParameterName="work_memory"),
    tune("a parameter keeps its range", VALUE, ParameterValue="1"),
    tune("a parameter may be the service's own", VALUE, ParameterName="wal_level"),
    of_own_group("20 parameters are changed at once at most", VALUE, Parameters=[PARAMETER] * 21),
    # Others.
    of_tags("tags are of a resource that exists", "DBInstanceNotFound", f"{HERE}:db:none", Tags=ONE_TAG),
    of_tags("tags are of a resource of this region", VALUE, "us-east-1:123456789012:db:present", Tags=ONE_TAG),
    of_tags("tags are of a kind of resource", VALUE, f"{HERE}:proxy:p", Tags=ONE_TAG),
    of_tags("tags are of a snapshot that exists", "DBSnapshotNotFound", f"{HERE}:snapshot:none"),
    of_tags("tags are of a subnet group that exists", "DBSubnetGroupNotFoundFault", f"{HERE}:subgrp:none"),
    of_tags("tags are of a parameter group that exists", "DBParameterGroupNotFound", f"{HERE}:pg:none"),
    Case("a marker is the service's", "describe_db_instances", {"Marker": "x"}, VALUE),
    Case("a certificate is there to be shown", "describe_certificates", {"CertificateIdentifier": "none"},
         "CertificateNotFound"),
    Case("a page has 20 records at least", "describe_db_instances", {"MaxRecords": 19}, VALUE),
    Case("a page has 100 records at most", "describe_db_instances", {"MaxRecords": 101}, VALUE),
    Case("a filter is known", "describe_db_instances", {"Filters": [{"Name": "tag", "Values": ["x"]}]}, VALUE),
    Case("events of a source name its type", "describe_events", {"SourceIdentifier": "present"}, COMBINATION),
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


REQUIRED = sorted(COMPLETE.keys() - {"EngineVersion"})


@pytest.mark.parametrize("name", REQUIRED)
def test_a_creation_names_all_that_it_needs(name: str, world: Cloud) -> None:
    request = {key: value for key, value in COMPLETE.items() if key != name}

    assert refusal(lambda: world.rds.create_db_instance(**request)) == ("MissingParameter", 400)


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
