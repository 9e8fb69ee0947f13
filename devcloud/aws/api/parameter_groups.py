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
from devcloud.aws.refusals import Refusal, invalid_combination, invalid_value, missing
from devcloud.aws.state import catalog
from devcloud.aws.state.model import ParameterGroup, ParameterStatus
from devcloud.aws.state.parameters import PARAMETERS, Parameter, parameter, refuse_value

_FAMILY = re.compile(rf"{catalog.ENGINE}(\d+)")
_AT_ONCE_AT_MOST = 20


def create(call: Call) -> Tree:
    """CreateDBParameterGroup."""
    region = call.region
    name = rules.group_name(call.text("DBParameterGroupName"))
    family = call.text("DBParameterGroupFamily")
    refuse_family(family)
    tags = tags_of(call.given("Tags"))
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
    found = _FAMILY.fullmatch(family)
    if found is None or found[1] not in {catalog.major(each) for each in catalog.VERSIONS}:
        raise invalid_value(f"ParameterGroupFamily {family} is not a valid parameter group family")


def _own(call: Call) -> ParameterGroup:
    name = call.text("DBParameterGroupName")
    found = found_parameter_group(call.region, name)
    if found.db_parameter_group_name not in call.region.parameter_groups:
        raise Refusal("InvalidDBParameterGroupState", f"Default DBParameterGroup cannot be modified or deleted: {name}")
    return found


def modify(call: Call) -> Tree:
    """ModifyDBParameterGroup: all of the parameters or none."""
    found = _own(call)
    given: list[dict[str, Any]] = call.given("Parameters") or []
    if not given:
        raise missing("Parameters")
    if len(given) > _AT_ONCE_AT_MOST:
        raise invalid_value(f"No more than {_AT_ONCE_AT_MOST} parameters can be modified in a single request.")
    values, methods = dict(found.values), dict(found.methods)
    changed = []
    for each in given:
        known = parameter(str(each.get("ParameterName", "")))
        if "ParameterValue" not in each or "ApplyMethod" not in each:
            raise missing("ParameterValue" if "ParameterValue" not in each else "ApplyMethod")
        value, method = str(each["ParameterValue"]), str(each["ApplyMethod"])
        refuse_value(known, value, method)
        if values.get(known.name) != value:
            changed.append((known, method))
        values[known.name], methods[known.name] = value, method
    _keep(call, msgspec.structs.replace(found, values=values, methods=methods), changed)
    return {"DBParameterGroupName": found.db_parameter_group_name}


def reset(call: Call) -> Tree:
    """ResetDBParameterGroup."""
    found = _own(call)
    given: list[dict[str, Any]] = call.given("Parameters") or []
    if bool(call.given("ResetAllParameters")) == bool(given):
        raise invalid_combination("Specify either ResetAllParameters or Parameters.")
    # Without a list, dynamic parameters are reset at once and static ones at the next restart.
    asked = [(parameter(str(each.get("ParameterName", ""))), str(each.get("ApplyMethod", ""))) for each in given]
    for known, method in asked:
        if known.static and method == "immediate":
            raise invalid_combination(f"cannot use immediate apply method for static parameter: {known.name}")
    everything = [
        (PARAMETERS[name], "pending-reboot" if PARAMETERS[name].static else "immediate") for name in found.values
    ]
    changed = [(known, method) for known, method in asked or everything if known.name in found.values]
    gone = {known.name for known, _ in changed}
    values = {name: value for name, value in found.values.items() if name not in gone}
    methods = {name: value for name, value in found.methods.items() if name not in gone}
    _keep(call, msgspec.structs.replace(found, values=values, methods=methods), changed)
    return {"DBParameterGroupName": found.db_parameter_group_name}


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
    name = call.given("DBParameterGroupName")
    if name:
        return {"DBParameterGroups": [tree_of(found_parameter_group(call.region, str(name)))]}
    groups = {**default_groups(call.region), **call.region.parameter_groups}
    found, marker = page(call, [groups[each] for each in sorted(groups)], lambda each: each.db_parameter_group_name)
    return {"DBParameterGroups": [tree_of(each) for each in found], **marker}


def describe_parameters(call: Call) -> Tree:
    """DescribeDBParameters."""
    group = found_parameter_group(call.region, call.text("DBParameterGroupName"))
    source = call.given("Source")
    shown = [_shown(each, group) for _, each in sorted(PARAMETERS.items())]
    found, marker = page(
        call, [each for each in shown if source in {None, each["Source"]}], lambda each: str(each["ParameterName"])
    )
    return {"Parameters": found, **marker}


def describe_defaults(call: Call) -> Tree:
    """DescribeEngineDefaultParameters."""
    family = call.text("DBParameterGroupFamily")
    refuse_family(family)
    group = default_groups(call.region)[f"default.{family}"]
    shown = [_shown(each, group) for _, each in sorted(PARAMETERS.items())]
    found, marker = page(call, shown, lambda each: str(each["ParameterName"]))
    return {"EngineDefaults": {"DBParameterGroupFamily": family, "Parameters": found, **marker}}


def _shown(each: Parameter, group: ParameterGroup) -> Tree:
    value = group.values.get(each.name)
    default = each.default
    if each.name == "rds.force_ssl" and int(group.db_parameter_group_family.removeprefix(catalog.ENGINE)) < 15:  # noqa: PLR2004 - on by default since PostgreSQL 15
        default = "0"
    static = "static" if each.static else "dynamic"
    return {
        "ParameterName": each.name,
        "ParameterValue": default if value is None else value,
        "Description": each.description or None,
        "Source": "user" if value is not None else "system" if default is not None else "engine-default",
        "ApplyType": static,
        "DataType": each.data_type,
        "AllowedValues": each.allowed,
        "IsModifiable": each.modifiable,
        "ApplyMethod": group.methods.get(each.name, "pending-reboot"),
    }


def delete(call: Call) -> Tree:
    """DeleteDBParameterGroup."""
    name = _own(call).db_parameter_group_name
    users = [
        each
        for each, record in call.region.instances.items()
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
