"""Which permissions a call needs: on every resource that it names, and to tag what it makes with tags.

After "Actions, resources, and condition keys for Amazon RDS" of the Service Authorization Reference.
"""

from collections.abc import Iterator

from devcloud.aws.api import tagging
from devcloud.aws.api.calls import tags_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.iam.policies import Ask
from devcloud.aws.region import Region
from devcloud.simulator.messages import Refusal

_KINDS = {
    "DBInstanceIdentifier": "db",
    "TargetDBInstanceIdentifier": "db",
    "SourceDBInstanceIdentifier": "db",
    "DBSnapshotIdentifier": "snapshot",
    "SourceDBSnapshotIdentifier": "snapshot",
    "TargetDBSnapshotIdentifier": "snapshot",
    "DBSubnetGroupName": "subgrp",
    "DBParameterGroupName": "pg",
    "OptionGroupName": "og",
}
# What a call makes, which is what its tags are for.
_MADE = {
    "CreateDBInstance": "DBInstanceIdentifier",
    "RestoreDBInstanceFromDBSnapshot": "DBInstanceIdentifier",
    "RestoreDBInstanceToPointInTime": "TargetDBInstanceIdentifier",
    "CreateDBSnapshot": "DBSnapshotIdentifier",
    "CopyDBSnapshot": "TargetDBSnapshotIdentifier",
    "CreateDBSubnetGroup": "DBSubnetGroupName",
    "CreateDBParameterGroup": "DBParameterGroupName",
}


def asks(region: Region, action: str, parameters: Tree) -> Iterator[Ask]:
    """Yield the permissions that a call needs, each of them."""
    added = {tag.key: tag.value for tag in tags_of(parameters.get("Tags"))}
    removed = dict.fromkeys((str(key) for key in parameters.get("TagKeys") or ()), "")
    named = {name: _arn(region, kind, parameters[name]) for name, kind in _KINDS.items() if parameters.get(name)}
    if parameters.get("ResourceName"):
        named["ResourceName"] = str(parameters["ResourceName"])
    for resource in named.values() or ("*",):
        yield Ask(
            action=f"rds:{action}",
            resource=resource,
            resource_tags=_tags_of(region, resource),
            request_tags=added or removed,
        )
    if added and action in _MADE:
        yield Ask(action="rds:AddTagsToResource", resource=named[_MADE[action]], request_tags=added)


def _arn(region: Region, kind: str, name: object) -> str:
    text = str(name)
    return text if text.startswith("arn:") else region.arn(kind, text.lower())


def _tags_of(region: Region, arn: str) -> dict[str, str]:
    try:
        present, _ = tagging.tags_by_arn(region, arn)
    except Refusal:
        return {}
    return {tag.key: tag.value for tag in present}
