"""The actions on tags, by ARN."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, tags_of
from devcloud.aws.api.lookups import found_subnet_group
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.refusals import invalid_value
from devcloud.aws.region import Region
from devcloud.aws.state.model import ParameterGroup, SubnetGroup, Tag
from devcloud.simulator.messages import Refusal

Tags = tuple[Tag, ...]
TaggedT = TypeVar("TaggedT", SubnetGroup, ParameterGroup)


def tags_by_arn(region: Region, arn: str) -> tuple[Tags, Callable[[Tags], None]]:
    """Return the tags of a resource, and what gives it others.

    Raises:
        Refusal: `InvalidParameterValue`, or the code of what is not there.
    """
    prefix, _, rest = arn.partition(f"arn:aws:rds:{region.name}:{region.account}:")
    kind, _, name = rest.partition(":")
    if prefix or not name:
        raise invalid_value(f"The specified resource name does not match an RDS resource in this region: {arn}")
    match kind:
        case "db":
            return _of_instance(region, name)
        case "snapshot":
            return _of_snapshot(region, name)
        case "subgrp":
            found_subnet_group(region, name)
            return _of_group(region.subnet_groups, name)
        case "pg" if name in region.parameter_groups:
            return _of_group(region.parameter_groups, name)
        case "pg":
            raise Refusal("DBParameterGroupNotFound", f"DBParameterGroup not found: {name}")
        case _:
            raise invalid_value(f"The specified resource name does not match an RDS resource in this region: {arn}")


def _of_instance(region: Region, name: str) -> tuple[Tags, Callable[[Tags], None]]:
    record = region.instance(name)

    def give(tags: Tags) -> None:
        region.put(msgspec.structs.replace(record, shown=msgspec.structs.replace(record.shown, tag_list=tags)))

    return record.shown.tag_list, give


def _of_group(groups: dict[str, TaggedT], name: str) -> tuple[Tags, Callable[[Tags], None]]:
    group = groups[name]

    def give(tags: Tags) -> None:
        groups[name] = msgspec.structs.replace(group, tags=tags)

    return group.tags, give


def _of_snapshot(region: Region, name: str) -> tuple[Tags, Callable[[Tags], None]]:
    snapshot = region.snapshots.get(name)
    if snapshot is None:
        raise Refusal("DBSnapshotNotFound", f"DBSnapshot {name} not found.")

    def give(tags: Tags) -> None:
        region.snapshots[name] = msgspec.structs.replace(snapshot, tag_list=tags)

    return snapshot.tag_list, give


def add(call: Call) -> Tree:
    """AddTagsToResource."""
    present, give = tags_by_arn(call.region, call.text("ResourceName"))
    added = tags_of(call.get("Tags"))
    rules.refuse_tags(added)
    keys = {tag.key for tag in added}
    after = (*(tag for tag in present if tag.key not in keys), *added)
    rules.refuse_tags(after)
    give(after)
    return {}


def remove(call: Call) -> Tree:
    """RemoveTagsFromResource."""
    present, give = tags_by_arn(call.region, call.text("ResourceName"))
    keys = set(call.get("TagKeys") or ())
    give(tuple(tag for tag in present if tag.key not in keys))
    return {}


def listed(call: Call) -> Tree:
    """ListTagsForResource."""
    present, _ = tags_by_arn(call.region, call.text("ResourceName"))
    return {"TagList": [tree_of(tag) for tag in present]}


ACTIONS: dict[str, Action] = {
    "AddTagsToResource": add,
    "RemoveTagsFromResource": remove,
    "ListTagsForResource": listed,
}
