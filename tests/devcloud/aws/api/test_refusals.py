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
    says: str
    source: str
    call: str
    request: dict[str, Any]
    code: str
    status: int = 400


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
TWO = ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"]
SUBNETS = {"DBSubnetGroupName": "fresh", "DBSubnetGroupDescription": "d"}
PARAMETER = {"ParameterName": "work_mem", "ParameterValue": "4096", "ApplyMethod": "immediate"}


def create(says: str, source: str, code: str, /, **request: Any) -> Case:
    return Case(says, source, "create_db_instance", {**COMPLETE, **request}, code)


def modify(says: str, source: str, code: str, /, **request: Any) -> Case:
    return Case(says, source, "modify_db_instance", {**PRESENT, **request}, code)


CASES = (
    # Values of CreateDBInstance.
    create("an identifier begins with a letter", "API CreateDBInstance", VALUE, DBInstanceIdentifier="1db"),
    create("an identifier has no two hyphens together", "API CreateDBInstance", VALUE, DBInstanceIdentifier="a--b"),
    create("an identifier ends with no hyphen", "API CreateDBInstance", VALUE, DBInstanceIdentifier="a-"),
    create("an identifier has 63 characters at most", "API CreateDBInstance", VALUE, DBInstanceIdentifier="a" * 64),
    create("an identifier is unique in any letter case", "API CreateDBInstance", "DBInstanceAlreadyExists",
           DBInstanceIdentifier="PRESENT"),
    create("a password has 8 characters at least", "API CreateDBInstance", VALUE, MasterUserPassword="Short-1"),
    create("a password has 128 characters at most", "API CreateDBInstance", VALUE, MasterUserPassword="p" * 129),
    *(
        create(f"a password lacks {sign!r}", "API CreateDBInstance", VALUE, MasterUserPassword=f"Password{sign}1")
        for sign in ("/", '"', "@", " ")
    ),
    create("a password is printable ASCII", "API CreateDBInstance", VALUE, MasterUserPassword="Passwörter-1"),
    create("a password is given or managed", "API CreateDBInstance", COMBINATION, ManageMasterUserPassword=True),
    create("a master user is no reserved word", "API CreateDBInstance", VALUE, MasterUsername="admin"),
    create("a master user has no prefix of the system's", "API CreateDBInstance", VALUE, MasterUsername="pg_me"),
    create("a master user begins with a letter", "API CreateDBInstance", VALUE, MasterUsername="1admin"),
    create("a database's name is no reserved word", "API CreateDBInstance", VALUE, DBName="select"),
    create("a database's name begins with a letter", "API CreateDBInstance", VALUE, DBName="1shop"),
    create("an engine exists", "API CreateDBInstance", VALUE, Engine="postgresql"),
    create("a version is offered", "API CreateDBInstance", COMBINATION, EngineVersion="16.99"),
    create("a class exists", "API CreateDBInstance", VALUE, DBInstanceClass="db.t9.micro"),
    create("a class is offered for the version", "UG Supported DB engines", COMBINATION, DBInstanceClass="db.t2.micro"),
    create("gp3 begins at 20 GiB", "API CreateDBInstance", VALUE, AllocatedStorage=19),
    create("io1 begins at 100 GiB", "API CreateDBInstance", VALUE, StorageType="io1", AllocatedStorage=99, Iops=1000),
    create("io1 needs IOPS", "API CreateDBInstance", COMBINATION, StorageType="io1", AllocatedStorage=100),
    create("io1 has 50 IOPS for a GiB at most", "UG Provisioned IOPS storage", COMBINATION, StorageType="io1",
           AllocatedStorage=100, Iops=5001),
    create("gp2 takes no IOPS", "UG General Purpose SSD storage", COMBINATION, StorageType="gp2", Iops=3000),
    create("small gp3 takes no IOPS", TERRAFORM, COMBINATION, StorageType="gp3", Iops=4000),
    create("small gp3 takes no throughput", TERRAFORM, COMBINATION, StorageType="gp3", StorageThroughput=500),
    create("large gp3 has 12000 IOPS at least", "UG gp3 storage", COMBINATION, StorageType="gp3", AllocatedStorage=400,
           Iops=3000),
    create("large gp3 has 500 MiB/s at least", "UG gp3 storage", COMBINATION, StorageType="gp3", AllocatedStorage=400,
           StorageThroughput=400),
    create("gp2 takes no throughput", "UG General Purpose SSD storage", COMBINATION, StorageType="gp2",
           StorageThroughput=500),
    create("a storage type exists", "API CreateDBInstance", VALUE, StorageType="gp9"),
    create("the most storage is above the storage", JUSTICE, COMBINATION, MaxAllocatedStorage=20),
    create("the most storage is 10% above the storage", JUSTICE, COMBINATION, AllocatedStorage=100,
           MaxAllocatedStorage=105),
    create("backups are kept 35 days at most", "API CreateDBInstance", VALUE, BackupRetentionPeriod=36),
    create("a port is 1150 at least", "API CreateDBInstance", VALUE, Port=1149),
    create("a backup window has a format", "API CreateDBInstance", VALUE, PreferredBackupWindow="2-3"),
    create("a backup window has 30 minutes", "API CreateDBInstance", VALUE, PreferredBackupWindow="02:00-02:29"),
    create("a maintenance window has a format", "API CreateDBInstance", VALUE,
           PreferredMaintenanceWindow="02:00-03:00"),
    create("windows do not overlap", "API CreateDBInstance", COMBINATION, PreferredBackupWindow="02:00-03:00",
           PreferredMaintenanceWindow="sun:02:30-sun:03:30"),
    create("a Multi-AZ instance names no zone", "API CreateDBInstance", COMBINATION, MultiAZ=True,
           AvailabilityZone="eu-west-1a"),
    create("a zone is one of the region's", "API CreateDBInstance", "InvalidVPCNetworkStateFault",
           AvailabilityZone="eu-west-1z"),
    create("a zone is one of the subnet group's", "API CreateDBInstance", "InvalidVPCNetworkStateFault",
           AvailabilityZone="eu-west-1c", DBSubnetGroupName="in-use"),
    create("a window is made of times of day", "API CreateDBInstance", VALUE, PreferredBackupWindow="25:00-26:00"),
    create("a subnet group exists", "API CreateDBInstance", "DBSubnetGroupNotFoundFault", DBSubnetGroupName="none"),
    create("a parameter group exists", "API CreateDBInstance", "DBParameterGroupNotFound", DBParameterGroupName="none"),
    create("a parameter group is of the version's family", "API CreateDBInstance", COMBINATION, EngineVersion="17.4",
           DBParameterGroupName="own-16"),
    create("a security group exists", "API CreateDBInstance", VALUE, VpcSecurityGroupIds=["sg-none"]),
    create("a security group is of the subnets' VPC", "API CreateDBInstance", "InvalidVPCNetworkStateFault",
           VpcSecurityGroupIds=["sg-0a1b2c3d4e5f60001"], DBSubnetGroupName="elsewhere"),
    create("a certificate authority exists", "API CreateDBInstance", "CertificateNotFound",
           CACertificateIdentifier="ca-1"),
    create("a key is of the region", "API CreateDBInstance", "KMSKeyNotAccessibleFault",
           KmsKeyId="arn:aws:kms:us-east-1:123456789012:key/k"),
    create("a key is for what is encrypted", "API CreateDBInstance", COMBINATION, KmsKeyId="k", StorageEncrypted=False),
    create("monitoring needs a role", "API CreateDBInstance", COMBINATION, MonitoringInterval=60),
    create("a monitoring interval is one of a list", "API CreateDBInstance", VALUE, MonitoringInterval=7),
    create("insights are kept for months", "API CreateDBInstance", VALUE, PerformanceInsightsRetentionPeriod=30),
    create("a log is one of the engine's", "API CreateDBInstance", COMBINATION,
           EnableCloudwatchLogsExports=["slowquery"]),
    create("a tag's key is not Amazon's", "UG Tagging Amazon RDS resources", VALUE, Tags=[{"Key": "aws:x",
           "Value": ""}]),
    create("there are 50 tags at most", "UG Tagging Amazon RDS resources", VALUE,
           Tags=[{"Key": f"k{number}", "Value": ""} for number in range(51)]),
    create("a tag's value has few characters", "UG Tagging Amazon RDS resources", VALUE, Tags=[{"Key": "k",
           "Value": "a;b"}]),
    create("an option group exists", "API CreateDBInstance", "OptionGroupNotFoundFault", OptionGroupName="none"),
    create("a public address needs an internet gateway", "API CreateDBInstance", "InvalidVPCNetworkStateFault",
           PubliclyAccessible=True, DBSubnetGroupName="elsewhere"),
    create("DB security groups are of the time before VPCs", "API CreateDBInstance", COMBINATION,
           DBSecurityGroups=["default"]),
    create("tags have a key each", "UG Tagging Amazon RDS resources", VALUE, Tags=[{"Key": "k", "Value": "v"}] * 2),
    create("a network type exists", "API CreateDBInstance", VALUE, NetworkType="IPV5"),
    create("the network is IPv4 here", "API CreateDBInstance", "NetworkTypeNotSupported", NetworkType="DUAL"),
    # Changes.
    modify("a change changes something", CROSSPLANE, COMBINATION),
    modify("a change that changes something is no flag alone", CROSSPLANE, COMBINATION, ApplyImmediately=False),
    modify("an instance exists", "API ModifyDBInstance", "DBInstanceNotFound", DBInstanceIdentifier="none"),
    modify("storage never shrinks", "API ModifyDBInstance", COMBINATION, AllocatedStorage=20),
    modify("a version is never lowered", "UG Upgrading the PostgreSQL DB engine", COMBINATION, EngineVersion="16.3"),
    modify("a major upgrade is allowed by a flag", "API ModifyDBInstance", COMBINATION, EngineVersion="17.4"),
    modify("a change keeps passwords' rules", "API ModifyDBInstance", VALUE, MasterUserPassword="short"),
    modify("a rotation is of a managed password", "API ModifyDBInstance", COMBINATION, RotateMasterUserPassword=True,
           ApplyImmediately=True),
    modify("a rename finds a free name", "API ModifyDBInstance", "DBInstanceAlreadyExists",
           NewDBInstanceIdentifier="protected"),
    modify("a window does not overlap the present other one", "API ModifyDBInstance", COMBINATION,
           PreferredBackupWindow="02:00-03:00"),
    modify("storage stays below the most storage", "UG Managing capacity automatically", COMBINATION,
           AllocatedStorage=60),
    Case("a major upgrade names a group in place of an own one", "UG Upgrading the PostgreSQL DB engine",
         "modify_db_instance", {**LARGE, "EngineVersion": "17.4", "AllowMajorVersionUpgrade": True}, COMBINATION),
    Case("IOPS come with a size", TERRAFORM, "modify_db_instance",
         {**LARGE, "AllocatedStorage": 600}, COMBINATION),
    Case("a size comes with IOPS", TERRAFORM, "modify_db_instance",
         {**LARGE, "Iops": 13_000}, COMBINATION),
    # Deletion.
    Case("a deletion says what of a snapshot", "API DeleteDBInstance", "delete_db_instance", PRESENT, COMBINATION),
    Case("a deletion skips the snapshot that it does not name", "API DeleteDBInstance", "delete_db_instance",
         {**PRESENT, "SkipFinalSnapshot": True, "FinalDBSnapshotIdentifier": "last"}, COMBINATION),
    Case("a final snapshot has a new name", TERRAFORM, "delete_db_instance",
         {**PRESENT, "FinalDBSnapshotIdentifier": "kept"}, "DBSnapshotAlreadyExists"),
    Case("a protected instance stays", "UG Deleting a DB instance", "delete_db_instance",
         {"DBInstanceIdentifier": "protected", "SkipFinalSnapshot": True}, COMBINATION),
    # Snapshots and restores.
    Case("a snapshot has a new name", "API CreateDBSnapshot", "create_db_snapshot",
         {**PRESENT, "DBSnapshotIdentifier": "Kept"}, "DBSnapshotAlreadyExists"),
    Case("a snapshot's name begins with a letter", "API CreateDBSnapshot", "create_db_snapshot",
         {**PRESENT, "DBSnapshotIdentifier": "rds:x"}, VALUE),
    Case("a snapshot is of a type", "API DescribeDBSnapshots", "describe_db_snapshots", {"SnapshotType": "weekly"},
         COMBINATION),
    Case("a snapshot is there to be shown", "API DescribeDBSnapshots", "describe_db_snapshots",
         {"DBSnapshotIdentifier": "none"}, "DBSnapshotNotFound", 404),
    Case("a snapshot is there to be restored", "API RestoreDBInstanceFromDBSnapshot",
         "restore_db_instance_from_db_snapshot", {**RESTORED, "DBSnapshotIdentifier": "none"}, "DBSnapshotNotFound",
         404),
    Case("no snapshot is of another region", "API", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBSnapshotIdentifier": f"{ELSEWHERE}:snapshot:kept"}, "DBSnapshotNotFound", 404),
    Case("a restore has a new name", "API RestoreDBInstanceFromDBSnapshot", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "DBInstanceIdentifier": "present"}, "DBInstanceAlreadyExists"),
    Case("a restore does not shrink", "API RestoreDBInstanceFromDBSnapshot", "restore_db_instance_from_db_snapshot",
         {**RESTORED, "AllocatedStorage": 20}, COMBINATION),
    Case("a point in time needs backups", "API RestoreDBInstanceToPointInTime", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "protected", "TargetDBInstanceIdentifier": "fresh",
          "UseLatestRestorableTime": True}, "PointInTimeRestoreNotEnabled"),
    Case("a restore names its snapshot", "API RestoreDBInstanceFromDBSnapshot", "restore_db_instance_from_db_snapshot",
         {"DBInstanceIdentifier": "fresh"}, VALUE),
    Case("a point in time is a time or the latest", "API RestoreDBInstanceToPointInTime",
         "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "present", "TargetDBInstanceIdentifier": "fresh"}, COMBINATION),
    Case("a point in time has a source", "API RestoreDBInstanceToPointInTime", "restore_db_instance_to_point_in_time",
         {"SourceDbiResourceId": "db-NONE", "TargetDBInstanceIdentifier": "fresh", "UseLatestRestorableTime": True},
         "DBInstanceAutomatedBackupNotFound", 404),
    Case("a point in time is in the past", "API RestoreDBInstanceToPointInTime", "restore_db_instance_to_point_in_time",
         {"SourceDBInstanceIdentifier": "present", "TargetDBInstanceIdentifier": "fresh",
          "RestoreTime": "2126-01-01T00:00:00Z"}, "InvalidRestoreFault"),
    # Groups.
    Case("a subnet group covers two zones", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "SubnetIds": ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000d"]},
         "DBSubnetGroupDoesNotCoverEnoughAZs"),
    Case("a subnet exists", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "SubnetIds": ["subnet-none", "subnet-0a1b2c3d4e5f6000a"]}, "InvalidSubnet"),
    Case("a subnet group is of one VPC", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "SubnetIds": ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6001b"]}, "InvalidSubnet"),
    Case("a subnet group is not called default", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "DBSubnetGroupName": "Default", "SubnetIds": ["subnet-0a1b2c3d4e5f6000a"]}, VALUE),
    Case("a subnet group has a new name", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "DBSubnetGroupName": "Elsewhere",
          "SubnetIds": ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"]}, "DBSubnetGroupAlreadyExists"),
    Case("a subnet group is described", "API CreateDBSubnetGroup", "create_db_subnet_group",
         {**SUBNETS, "DBSubnetGroupDescription": " ", "SubnetIds": TWO}, VALUE),
    Case("a subnet group has 20 subnets at most", "UG Quotas and constraints", "create_db_subnet_group",
         {**SUBNETS, "SubnetIds": [f"subnet-{number}" for number in range(21)]}, "DBSubnetQuotaExceededFault"),
    Case("a subnet group stays in its VPC", "API ModifyDBSubnetGroup", "modify_db_subnet_group",
         {"DBSubnetGroupName": "elsewhere", "SubnetIds": TWO}, "InvalidSubnet"),
    Case("the default subnet group stays", "API DeleteDBSubnetGroup", "delete_db_subnet_group",
         {"DBSubnetGroupName": "default"}, "InvalidDBSubnetGroupStateFault"),
    Case("a subnet group in use stays", "API DeleteDBSubnetGroup", "delete_db_subnet_group",
         {"DBSubnetGroupName": "in-use"}, "InvalidDBSubnetGroupStateFault"),
    Case("a subnet with an instance stays in its group", "API ModifyDBSubnetGroup", "modify_db_subnet_group",
         {"DBSubnetGroupName": "in-use", "SubnetIds": ["subnet-0a1b2c3d4e5f6000b", "subnet-0a1b2c3d4e5f6000c"]},
         "SubnetAlreadyInUse"),
    Case("a parameter group in use stays", "API DeleteDBParameterGroup", "delete_db_parameter_group",
         {"DBParameterGroupName": "own-16"}, "InvalidDBParameterGroupState"),
    Case("a default parameter group stays as it is", "UG Working with parameter groups", "modify_db_parameter_group",
         {"DBParameterGroupName": "default.postgres16", "Parameters": [PARAMETER]}, "InvalidDBParameterGroupState"),
    Case("a parameter group has a family", "API CreateDBParameterGroup", "create_db_parameter_group",
         {"DBParameterGroupName": "p", "DBParameterGroupFamily": "postgres9", "Description": "d"}, VALUE),
    Case("a parameter group has a new name", "API CreateDBParameterGroup", "create_db_parameter_group",
         {"DBParameterGroupName": "Own-16", "DBParameterGroupFamily": "postgres16", "Description": "d"},
         "DBParameterGroupAlreadyExists"),
    Case("a change of parameters names some", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": []}, "MissingParameter"),
    Case("a parameter is applied in one of two ways", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ApplyMethod": "soon"}]}, VALUE),
    Case("a parameter says how it is applied", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{"ParameterName": "jit", "ParameterValue": "1"}]},
         "MissingParameter"),
    Case("a reset is of all or of some", "API ResetDBParameterGroup", "reset_db_parameter_group",
         {"DBParameterGroupName": "own-16"}, COMBINATION),
    Case("a static parameter is not reset at once", "API ResetDBParameterGroup", "reset_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ParameterName": "max_connections"}]},
         COMBINATION),
    Case("a static parameter is not applied at once", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ParameterName": "max_connections"}]},
         COMBINATION),
    Case("a parameter exists", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ParameterName": "work_memory"}]}, VALUE),
    Case("a parameter keeps its range", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ParameterValue": "1"}]}, VALUE),
    Case("a parameter may be the service's own", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [{**PARAMETER, "ParameterName": "wal_level"}]}, VALUE),
    Case("20 parameters are changed at once at most", "API ModifyDBParameterGroup", "modify_db_parameter_group",
         {"DBParameterGroupName": "own-16", "Parameters": [PARAMETER] * 21}, VALUE),
    # Others.
    Case("tags are of a resource that exists", "API AddTagsToResource", "add_tags_to_resource",
         {"ResourceName": "arn:aws:rds:eu-west-1:123456789012:db:none", "Tags": [{"Key": "a", "Value": "b"}]},
         "DBInstanceNotFound", 404),
    Case("tags are of a resource of this region", "API AddTagsToResource", "add_tags_to_resource",
         {"ResourceName": "arn:aws:rds:us-east-1:123456789012:db:present", "Tags": [{"Key": "a", "Value": "b"}]},
         VALUE),
    Case("tags are of a kind of resource", "API AddTagsToResource", "add_tags_to_resource",
         {"ResourceName": "arn:aws:rds:eu-west-1:123456789012:proxy:p", "Tags": [{"Key": "a", "Value": "b"}]}, VALUE),
    Case("tags are of a snapshot that exists", "API ListTagsForResource", "list_tags_for_resource",
         {"ResourceName": "arn:aws:rds:eu-west-1:123456789012:snapshot:none"}, "DBSnapshotNotFound", 404),
    Case("tags are of a subnet group that exists", "API ListTagsForResource", "list_tags_for_resource",
         {"ResourceName": "arn:aws:rds:eu-west-1:123456789012:subgrp:none"}, "DBSubnetGroupNotFoundFault"),
    Case("tags are of a parameter group that exists", "API ListTagsForResource", "list_tags_for_resource",
         {"ResourceName": "arn:aws:rds:eu-west-1:123456789012:pg:none"}, "DBParameterGroupNotFound"),
    Case("a marker is the service's", "API DescribeDBInstances", "describe_db_instances", {"Marker": "x"}, VALUE),
    Case("a certificate is there to be shown", "API DescribeCertificates", "describe_certificates",
         {"CertificateIdentifier": "none"}, "CertificateNotFound"),
    Case("a page has 20 records at least", "API DescribeDBInstances", "describe_db_instances", {"MaxRecords": 19},
         VALUE),
    Case("a page has 100 records at most", "API DescribeDBInstances", "describe_db_instances", {"MaxRecords": 101},
         VALUE),
    Case("a filter is known", "API DescribeDBInstances", "describe_db_instances",
         {"Filters": [{"Name": "tag", "Values": ["x"]}]}, VALUE),
    Case("events of a source name its type", "API DescribeEvents", "describe_events", {"SourceIdentifier": "present"},
         COMBINATION),
    Case("a failover needs a standby", "API RebootDBInstance", "reboot_db_instance", {**PRESENT, "ForceFailover": True},
         COMBINATION),
    Case("only what is stopped is started", "API StartDBInstance", "start_db_instance", PRESENT,
         "InvalidDBInstanceState"),
)  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Iterator[Cloud]:
    with running(Options(durations=QUICK)) as served:
        cloud = Cloud(served, Cloud(served, None).client(config={"parameter_validation": False}))
        rds = cloud.rds
        rds.create_db_subnet_group(
            DBSubnetGroupName="elsewhere",
            DBSubnetGroupDescription="d",
            SubnetIds=["subnet-0a1b2c3d4e5f6001a", "subnet-0a1b2c3d4e5f6001b"],
        )
        rds.create_db_subnet_group(
            DBSubnetGroupName="in-use",
            DBSubnetGroupDescription="d",
            SubnetIds=["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"],
        )
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
    "OptionGroupNotFoundFault",
    "DBSubnetGroupNotFoundFault",
    "DBParameterGroupNotFound",
    "CertificateNotFound",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_service_refuses(case: Case, world: Cloud) -> None:
    status = 404 if case.code in NOT_FOUND else case.status
    before = world.control("GET", "instances"), world.control("GET", "snapshots")

    assert refusal(lambda: getattr(world.rds, case.call)(**case.request)) == (case.code, status)
    assert (world.control("GET", "instances"), world.control("GET", "snapshots")) == before


REQUIRED = (
    "DBInstanceIdentifier",
    "DBInstanceClass",
    "Engine",
    "MasterUsername",
    "MasterUserPassword",
    "AllocatedStorage",
)


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
