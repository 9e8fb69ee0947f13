"""The actions that show what stands beside instances and snapshots, as far as PostgreSQL alone has it.

There are no clusters, the service's own option groups are the only ones, no snapshot is shared, and no log file is kept
(RDS API Reference, the pages named after the actions).
"""

from devcloud.aws.api.calls import Action, Call, filters, page
from devcloud.aws.api.snapshots import found_snapshot
from devcloud.aws.api.wire import Tree
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.state import catalog
from devcloud.simulator.messages import Refusal


def describe_clusters(call: Call) -> Tree:
    """DescribeDBClusters."""
    name = call.get("DBClusterIdentifier")
    if name:
        raise Refusal("DBClusterNotFoundFault", f"DBCluster {name} not found.")
    return {"DBClusters": []}


def describe_option_groups(call: Call) -> Tree:
    """DescribeOptionGroups."""
    name, engine, major = (call.get(key) for key in ("OptionGroupName", "EngineName", "MajorEngineVersion"))
    if major is not None and engine is None:
        raise invalid_combination("EngineName must be specified with MajorEngineVersion.")
    majors = (
        sorted({catalog.major(version) for version in catalog.VERSIONS}) if engine in {None, catalog.ENGINE} else []
    )
    groups = [_option_group(call, version) for version in majors if major in {None, version}]
    if name is not None:
        groups = [group for group in groups if group["OptionGroupName"] == name]
        if not groups:
            raise Refusal("OptionGroupNotFoundFault", f"Specified OptionGroupName: {name} not found.")
    listed, marker = page(call, groups, lambda group: str(group["OptionGroupName"]))
    return {"OptionGroupsList": listed, **marker}


def _option_group(call: Call, major: str) -> Tree:
    name = catalog.option_group(major)
    return {
        "OptionGroupName": name,
        "OptionGroupDescription": f"Default option group for {catalog.ENGINE} {major}",
        "EngineName": catalog.ENGINE,
        "MajorEngineVersion": major,
        "Options": [],
        "AllowsVpcAndNonVpcInstanceMemberships": True,
        "OptionGroupArn": call.region.arn("og", name),
    }


def describe_log_files(call: Call) -> Tree:
    """DescribeDBLogFiles."""
    call.region.instance(call.text("DBInstanceIdentifier"))
    filters(call, {})
    return {"DescribeDBLogFiles": []}


def describe_snapshot_attributes(call: Call) -> Tree:
    """DescribeDBSnapshotAttributes."""
    snapshot = found_snapshot(call, call.text("DBSnapshotIdentifier"))
    return {
        "DBSnapshotAttributesResult": {
            "DBSnapshotIdentifier": snapshot.db_snapshot_identifier,
            "DBSnapshotAttributes": [{"AttributeName": "restore", "AttributeValues": []}],
        }
    }


ACTIONS: dict[str, Action] = {
    "DescribeDBClusters": describe_clusters,
    "DescribeDBLogFiles": describe_log_files,
    "DescribeDBSnapshotAttributes": describe_snapshot_attributes,
    "DescribeOptionGroups": describe_option_groups,
}
