"""Which permissions a call needs: on every resource that it names, to tag what it makes, and on roles and keys.

After "Actions, resources, and condition keys for Amazon RDS" of the Service Authorization Reference; of roles and keys
"Setting up and enabling Enhanced Monitoring" and "AWS KMS key management" of the RDS User Guide.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from devcloud.aws.api import tagging
from devcloud.aws.api.calls import tags_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.iam.policies import Ask, refuse_denied
from devcloud.aws.region import Region
from devcloud.aws.state.network import OWN_KEYS, key_arn
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


def _linked(region: Region, parameters: Tree) -> Iterator[Ask]:
    """Yield the permissions on what belongs to another service: a role that RDS is given, keys that it is to use."""
    role = parameters.get("MonitoringRoleArn")
    if role:
        context = {"iam:passedtoservice": "monitoring.rds.amazonaws.com"}
        yield Ask(action="iam:PassRole", resource=str(role), context=context)
    keys = {str(parameters[name]) for name in ("KmsKeyId", "PerformanceInsightsKMSKeyId") if parameters.get(name)}
    for key in sorted(keys - OWN_KEYS):
        arn = key_arn(region.account, region.name, key)
        yield Ask(action="kms:DescribeKey", resource=arn)
        yield Ask(action="kms:CreateGrant", resource=arn, context={"kms:grantisforawsresource": "true"})


def refuse_caller(policy: Mapping[str, Any], call: tuple[Region, str, Tree], principal_arn: str) -> None:
    """Refuse a call that a policy does not allow; `call` is its region, action and parameters.

    Raises:
        Refusal: `AccessDenied`; `KMSKeyNotAccessibleFault` where a key may not be used.
    """
    region, action, parameters = call
    for ask in (*asks(region, action, parameters), *_linked(region, parameters)):
        try:
            refuse_denied(policy, ask, principal_arn)
        except Refusal:
            if not ask.action.startswith("kms:"):
                raise
            text = f"The specified KMS key [{ask.resource}] does not exist, is not enabled or you may not access it."
            raise Refusal("KMSKeyNotAccessibleFault", text) from None


def _arn(region: Region, kind: str, name: object) -> str:
    text = str(name)
    return text if text.startswith("arn:") else region.arn(kind, text.lower())


def _tags_of(region: Region, arn: str) -> dict[str, str]:
    try:
        present, _ = tagging.tags_by_arn(region, arn)
    except Refusal:
        return {}
    return {tag.key: tag.value for tag in present}
