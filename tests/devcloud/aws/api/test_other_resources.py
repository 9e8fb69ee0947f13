"""What stands beside instances and snapshots, over the wire: clusters, option groups, log files, shared snapshots."""

from __future__ import annotations

import pytest

from tests.devcloud.aws.conftest import Cloud, refusal


def test_there_are_option_groups_of_the_versions_no_clusters_no_log_files_and_no_shared_snapshots(cloud: Cloud) -> None:
    assert cloud.rds.describe_db_clusters()["DBClusters"] == []
    named = {"DBClusterIdentifier": "none"}
    assert refusal(lambda: cloud.rds.describe_db_clusters(**named)) == ("DBClusterNotFoundFault", 404)

    groups = cloud.rds.describe_option_groups(EngineName="postgres", MajorEngineVersion="16")["OptionGroupsList"]

    assert [(group["OptionGroupName"], group["Options"]) for group in groups] == [("default:postgres-16", [])]
    assert groups == cloud.rds.describe_option_groups(OptionGroupName="default:postgres-16")["OptionGroupsList"]
    assert cloud.rds.describe_option_groups(EngineName="mysql")["OptionGroupsList"] == []
    assert cloud.created()["OptionGroupMemberships"][0]["OptionGroupName"] == groups[0]["OptionGroupName"]

    cloud.rds.create_db_snapshot(DBInstanceIdentifier="db-1", DBSnapshotIdentifier="kept")

    assert cloud.rds.describe_db_log_files(DBInstanceIdentifier="db-1")["DescribeDBLogFiles"] == []
    shown = cloud.rds.describe_db_snapshot_attributes(DBSnapshotIdentifier="kept")["DBSnapshotAttributesResult"]
    assert shown["DBSnapshotAttributes"] == [{"AttributeName": "restore", "AttributeValues": []}]


@pytest.mark.parametrize(
    ("operation", "name", "code"),
    [
        ("describe_option_groups", {"OptionGroupName": "none"}, "OptionGroupNotFoundFault"),
        ("describe_option_groups", {"MajorEngineVersion": "16"}, "InvalidParameterCombination"),
        ("describe_db_log_files", {"DBInstanceIdentifier": "none"}, "DBInstanceNotFound"),
        ("describe_db_snapshot_attributes", {"DBSnapshotIdentifier": "none"}, "DBSnapshotNotFound"),
    ],
)
def test_an_object_that_is_not_there_is_refused(operation: str, name: dict[str, str], code: str, cloud: Cloud) -> None:
    assert refusal(lambda: getattr(cloud.rds, operation)(**name))[0] == code
