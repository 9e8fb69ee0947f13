"""The actions on DB parameter groups, and what a changed parameter does to the instances that use them."""

import re
from typing import Any

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, page, tags_of
from devcloud.aws.api.lookups import default_groups, found_parameter_group
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.lifecycle.steps import Became, Record, Step
from devcloud.aws.refusals import invalid_combination, invalid_value, missing
from devcloud.aws.state import catalog
from devcloud.aws.state.model import ParameterGroup, ParameterStatus
from devcloud.aws.state.parameters import PARAMETERS, Parameter, in_version, parameter, refuse_value
from devcloud.simulator.messages import Refusal

_FAMILY = re.compile(rf"{catalog.ENGINE}(\d+)")
_AT_ONCE_AT_MOST = 20
# AWS answers several hundred by a hundred; of this cut of them a page is smaller.
_PAGE = 40


def create(call: Call) -> Tree:
    """CreateDBParameterGroup."""
    region = call.region
    name = rules.group_name(call.text("DBParameterGroupName"))
    family = call.text("DBParameterGroupFamily")
    refuse_family(family)
    tags = tags_of(call.get("Tags"))
    rules.refuse_tags(tags)
    if name in region.parameter_groups:
        raise Refusal("DBParameterGroupAlreadyExists", f"Parameter group {name} already exists")
    if len(region.parameter_groups) >= call.behaviour.quotas.parameter_groups:
        raise Refusal("DBParameterGroupQuotaExceeded", "The quota of DB parameter groups is reached.")
    region.parameter_groups[name] = ParameterGroup(
        db_parameter_group_name=name,
        db_parameter_group_family=family,
        description=call.text("Description"),
        db_parameter_group_arn=region.arn("pg", name),
        tags=tags,
    )
    return {"DBParameterGroup": tree_of(region.parameter_groups[name])}


def refuse_family(family: str) -> None:
    """Refuse a family that is none.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    match = _FAMILY.fullmatch(family)
    if match is None or match[1] not in {catalog.major(version) for version in catalog.VERSIONS}:
        raise invalid_value(f"ParameterGroupFamily {family} is not a valid parameter group family")


def _own(call: Call) -> ParameterGroup:
    name = call.text("DBParameterGroupName")
    group = found_parameter_group(call.region, name)
    if group.db_parameter_group_name not in call.region.parameter_groups:
        raise Refusal("InvalidDBParameterGroupState", f"Default DBParameterGroup cannot be modified or deleted: {name}")
    return group


def modify(call: Call) -> Tree:
    """ModifyDBParameterGroup: all of the parameters or none."""
    group = _own(call)
    changes: list[dict[str, Any]] = call.get("Parameters") or []
    if not changes:
        raise missing("Parameters")
    if len(changes) > _AT_ONCE_AT_MOST:
        raise invalid_value(f"No more than {_AT_ONCE_AT_MOST} parameters can be modified in a single request.")
    values, methods = dict(group.values), dict(group.methods)
    changed = []
    for change in changes:
        definition = in_version(parameter(str(change.get("ParameterName", ""))), _version_of(group))
        if "ParameterValue" not in change or "ApplyMethod" not in change:
            raise missing("ParameterValue" if "ParameterValue" not in change else "ApplyMethod")
        value, method = str(change["ParameterValue"]), str(change["ApplyMethod"])
        refuse_value(definition, value, method)
        if values.get(definition.name) != value:
            changed.append((definition, method))
        values[definition.name], methods[definition.name] = value, method
    _keep(call, msgspec.structs.replace(group, values=values, methods=methods), changed)
    return {"DBParameterGroupName": group.db_parameter_group_name}


def reset(call: Call) -> Tree:
    """ResetDBParameterGroup."""
    group = _own(call)
    listed: list[dict[str, Any]] = call.get("Parameters") or []
    if bool(call.get("ResetAllParameters")) == bool(listed):
        raise invalid_combination("Specify either ResetAllParameters or Parameters.")
    # Without a list, dynamic parameters are reset at once and static ones at the next restart.
    wanted = [(parameter(str(reset.get("ParameterName", ""))), str(reset.get("ApplyMethod", ""))) for reset in listed]
    for definition, method in wanted:
        if definition.static and method == "immediate":
            raise invalid_combination(f"cannot use immediate apply method for static parameter: {definition.name}")
    everything = [
        (PARAMETERS[name], "pending-reboot" if PARAMETERS[name].static else "immediate") for name in group.values
    ]
    changed = [(definition, method) for definition, method in wanted or everything if definition.name in group.values]
    gone = {definition.name for definition, _ in changed}
    values = {name: value for name, value in group.values.items() if name not in gone}
    methods = {name: value for name, value in group.methods.items() if name not in gone}
    _keep(call, msgspec.structs.replace(group, values=values, methods=methods), changed)
    return {"DBParameterGroupName": group.db_parameter_group_name}


def _keep(call: Call, group: ParameterGroup, changed: list[tuple[Parameter, str]]) -> None:
    region = call.region
    name = group.db_parameter_group_name
    region.parameter_groups[name] = group
    if not changed:
        return
    region.emit(37, ("db-parameter-group", name, group.db_parameter_group_arn), region.now())
    waits = any(method == "pending-reboot" for _, method in changed)
    for record in list(region.instances.values()):
        if record.shown.db_parameter_groups[0].db_parameter_group_name == name:
            region.put(_applying(record, name, waits=waits))


def _applying(record: Record, group: str, *, waits: bool) -> Record:
    present = record.shown.db_parameter_groups[0].parameter_apply_status
    after = "pending-reboot" if waits or present == "pending-reboot" else "in-sync"
    joined = ParameterStatus(db_parameter_group_name=group, parameter_apply_status=after)
    now = joined if after == "pending-reboot" else msgspec.structs.replace(joined, parameter_apply_status="applying")
    step = Step(status=None, seconds=20, ends=(Became(shown={"db_parameter_groups": (joined,)}),), ended=(92,))
    return msgspec.structs.replace(
        record,
        shown=msgspec.structs.replace(record.shown, db_parameter_groups=(now,)),
        agenda=record.agenda if after == "pending-reboot" else (*record.agenda, step),
    )


def describe(call: Call) -> Tree:
    """DescribeDBParameterGroups."""
    name = call.get("DBParameterGroupName")
    if name:
        return {"DBParameterGroups": [tree_of(found_parameter_group(call.region, str(name)))]}
    groups = {**default_groups(call.region), **call.region.parameter_groups}
    listed, marker = page(
        call, [groups[group] for group in sorted(groups)], lambda group: group.db_parameter_group_name
    )
    return {"DBParameterGroups": [tree_of(group) for group in listed], **marker}


def describe_parameters(call: Call) -> Tree:
    """DescribeDBParameters."""
    group = found_parameter_group(call.region, call.text("DBParameterGroupName"))
    source = call.get("Source")
    shown = [_shown(definition, group) for _, definition in sorted(PARAMETERS.items())]
    rows = [row for row in shown if source in {None, row["Source"]}]
    listed, marker = page(call, rows, lambda row: str(row["ParameterName"]), usual=_PAGE)
    return {"Parameters": listed, **marker}


def describe_defaults(call: Call) -> Tree:
    """DescribeEngineDefaultParameters."""
    family = call.text("DBParameterGroupFamily")
    refuse_family(family)
    group = default_groups(call.region)[f"default.{family}"]
    shown = [_shown(definition, group) for _, definition in sorted(PARAMETERS.items())]
    listed, marker = page(call, shown, lambda row: str(row["ParameterName"]))
    return {"EngineDefaults": {"DBParameterGroupFamily": family, "Parameters": listed, **marker}}


def _version_of(group: ParameterGroup) -> str:
    return group.db_parameter_group_family.removeprefix(catalog.ENGINE)


def _shown(listed: Parameter, group: ParameterGroup) -> Tree:
    family = _version_of(group)
    definition = in_version(listed, family)
    value = group.values.get(definition.name)
    default = definition.default
    if definition.name == "rds.force_ssl" and int(family) < 15:  # noqa: PLR2004 - on by default since PostgreSQL 15
        default = "0"
    static = "static" if definition.static else "dynamic"
    return {
        "ParameterName": definition.name,
        "ParameterValue": default if value is None else value,
        "Description": f"Sets {definition.name.replace('_', ' ')}.",
        "Source": "user" if value is not None else "system" if default is not None else "engine-default",
        "ApplyType": static,
        "DataType": definition.data_type,
        "AllowedValues": definition.allowed,
        "IsModifiable": definition.modifiable,
        "MinimumEngineVersion": next(version for version in catalog.VERSIONS if catalog.major(version) == family),
        "ApplyMethod": group.methods.get(definition.name, "pending-reboot"),
    }


def delete(call: Call) -> Tree:
    """DeleteDBParameterGroup."""
    name = _own(call).db_parameter_group_name
    users = [
        identifier
        for identifier, record in call.region.instances.items()
        if record.shown.db_parameter_groups[0].db_parameter_group_name == name
    ]
    if users:
        raise Refusal(
            "InvalidDBParameterGroupState",
            f"One or more database instances are still members of this parameter group {name}, so the group cannot be "
            "deleted",
        )
    del call.region.parameter_groups[name]
    return {}


ACTIONS: dict[str, Action] = {
    "CreateDBParameterGroup": create,
    "ModifyDBParameterGroup": modify,
    "ResetDBParameterGroup": reset,
    "DescribeDBParameterGroups": describe,
    "DescribeDBParameters": describe_parameters,
    "DescribeEngineDefaultParameters": describe_defaults,
    "DeleteDBParameterGroup": delete,
}
