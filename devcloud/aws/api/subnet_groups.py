"""The actions on DB subnet groups."""

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, page, tags_of
from devcloud.aws.api.lookups import found_subnet_group
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.refusals import invalid_value
from devcloud.aws.state.model import Subnet, SubnetGroup
from devcloud.aws.state.network import SUBNETS, subnet
from devcloud.simulator.messages import Refusal

_ZONES_AT_LEAST = 2
_SUBNETS_AT_MOST = 20


def create(call: Call) -> Tree:
    """CreateDBSubnetGroup."""
    region = call.region
    name = rules.subnet_group_name(call.text("DBSubnetGroupName"))
    tags = tags_of(call.get("Tags"))
    rules.refuse_tags(tags)
    if name in region.subnet_groups:
        raise Refusal("DBSubnetGroupAlreadyExists", f"The DB subnet group '{name}' already exists.")
    if len(region.subnet_groups) >= call.behaviour.quotas.subnet_groups:
        raise Refusal("DBSubnetGroupQuotaExceeded", "The request would exceed the allowed number of DB subnet groups.")
    vpc, subnets = _subnets(call)
    region.subnet_groups[name] = SubnetGroup(
        db_subnet_group_name=name,
        db_subnet_group_description=_description(call.text("DBSubnetGroupDescription")),
        vpc_id=vpc,
        subnets=subnets,
        db_subnet_group_arn=region.arn("subgrp", name),
        tags=tags,
    )
    return {"DBSubnetGroup": tree_of(region.subnet_groups[name])}


def _description(text: str) -> str:
    if not text.strip():
        raise invalid_value("The parameter DBSubnetGroupDescription must be provided and must not be blank.")
    return text


def _subnets(call: Call) -> tuple[str, tuple[Subnet, ...]]:
    names = tuple(dict.fromkeys(str(name) for name in call.get("SubnetIds") or ()))
    if len(names) > _SUBNETS_AT_MOST:
        raise Refusal(
            "DBSubnetQuotaExceededFault", "The request would exceed the allowed number of subnets in a group."
        )
    unknown = [name for name in names if name not in SUBNETS]
    if unknown:
        raise Refusal("InvalidSubnet", f"The subnet ID '{unknown[0]}' does not exist.")
    vpcs = {SUBNETS[name][0] for name in names}
    if len(vpcs) > 1:
        raise Refusal("InvalidSubnet", "All subnets of a DB subnet group must be in the same VPC.")
    if len({SUBNETS[name][1] for name in names}) < _ZONES_AT_LEAST:
        raise Refusal(
            "DBSubnetGroupDoesNotCoverEnoughAZs",
            "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. Current AZ coverage: "
            f"{', '.join(sorted(call.region.name + SUBNETS[name][1] for name in names))}. Add subnets to cover at "
            "least 2 AZs.",
        )
    return vpcs.pop(), tuple(subnet(call.region.name, name) for name in names)


def modify(call: Call) -> Tree:
    """ModifyDBSubnetGroup."""
    region = call.region
    group = found_subnet_group(region, call.text("DBSubnetGroupName"))
    vpc, subnets = _subnets(call)
    if vpc != group.vpc_id:
        raise Refusal("InvalidSubnet", "The subnets are not in the VPC of the DB subnet group.")
    kept = {member.subnet_identifier for member in subnets}
    users = _users(call, group.db_subnet_group_name)
    zones = {member.subnet_availability_zone.name for member in subnets}
    left = [member for member in group.subnets if member.subnet_identifier not in kept]
    if left and any(zone is not None and zone not in zones for zone in users.values()):
        raise Refusal("SubnetAlreadyInUse", f"Subnet {left[0].subnet_identifier} is in use and cannot be removed.")
    description = call.get("DBSubnetGroupDescription")
    changed = msgspec.structs.replace(
        group,
        subnets=subnets,
        db_subnet_group_description=group.db_subnet_group_description if description is None else str(description),
    )
    region.subnet_groups[group.db_subnet_group_name] = changed
    for name in users:
        record = region.instances[name]
        region.put(
            msgspec.structs.replace(record, shown=msgspec.structs.replace(record.shown, db_subnet_group=changed))
        )
    return {"DBSubnetGroup": tree_of(changed)}


def _users(call: Call, group: str) -> dict[str, str | None]:
    """Return the instances in a subnet group, with their zones."""
    return {
        name: record.shown.availability_zone
        for name, record in call.region.instances.items()
        if record.shown.db_subnet_group.db_subnet_group_name == group
    }


def describe(call: Call) -> Tree:
    """DescribeDBSubnetGroups."""
    name = call.get("DBSubnetGroupName")
    if name:
        return {"DBSubnetGroups": [tree_of(found_subnet_group(call.region, str(name)))]}
    groups = sorted(call.region.subnet_groups.values(), key=lambda group: group.db_subnet_group_name)
    listed, marker = page(call, groups, lambda group: group.db_subnet_group_name)
    return {"DBSubnetGroups": [tree_of(group) for group in listed], **marker}


def delete(call: Call) -> Tree:
    """DeleteDBSubnetGroup."""
    group = found_subnet_group(call.region, call.text("DBSubnetGroupName"))
    name = group.db_subnet_group_name
    if name == "default":
        raise Refusal("InvalidDBSubnetGroupStateFault", "The default DB subnet group cannot be deleted.")
    users = _users(call, name)
    if users:
        raise Refusal(
            "InvalidDBSubnetGroupStateFault",
            f"Cannot delete the subnet group '{name}' because at least one database instance: {min(users)} is still "
            "using it.",
        )
    del call.region.subnet_groups[name]
    return {}


ACTIONS: dict[str, Action] = {
    "CreateDBSubnetGroup": create,
    "ModifyDBSubnetGroup": modify,
    "DescribeDBSubnetGroups": describe,
    "DeleteDBSubnetGroup": delete,
}
