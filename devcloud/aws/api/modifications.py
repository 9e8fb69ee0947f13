"""ModifyDBInstance, and the growth that storage autoscaling brings."""

import secrets

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, converted
from devcloud.aws.api.instances import offered_version, refuse_storage_quota, refuse_windows
from devcloud.aws.api.lookups import (
    found_parameter_group,
    found_security_groups,
    found_subnet_group,
    refuse_exposure,
    refuse_option_group,
)
from devcloud.aws.api.views import instance_tree
from devcloud.aws.api.wire import Tree
from devcloud.aws.lifecycle import changes
from devcloud.aws.lifecycle.master_password import secret_after
from devcloud.aws.lifecycle.pending import port_of
from devcloud.aws.lifecycle.states import refuse_modify
from devcloud.aws.lifecycle.steps import Became, Optimizing, Record, Step
from devcloud.aws.refusals import Refusal, invalid_combination
from devcloud.aws.state import catalog
from devcloud.aws.state.model import Instance
from devcloud.aws.state.requests import Asked


def modify(call: Call) -> Tree:
    """ModifyDBInstance."""
    region = call.region
    asked = converted(call.parameters, Asked)
    record = region.instance(asked.db_instance_identifier)
    flags = {"DBInstanceIdentifier", "ApplyImmediately", "AllowMajorVersionUpgrade"}
    if not set(call.parameters) - flags and not asked.apply_immediately:
        # With ApplyImmediately RDS takes it (crossplane-contrib/provider-aws pull request 2146).
        raise invalid_combination("No modifications were requested")
    rules.refuse_values(asked)
    asked = _settled(call, record.shown, msgspec.structs.replace(asked, db_port_number=_other_port(record, asked)))
    refuse_modify(record, asked)
    group = None if asked.db_subnet_group_name is None else found_subnet_group(region, asked.db_subnet_group_name)
    groups = None
    if asked.vpc_security_group_ids is not None:
        groups = found_security_groups(asked.vpc_security_group_ids, group or record.shown.db_subnet_group)
    if asked.db_parameter_group_name is not None:
        version = asked.engine_version or record.shown.engine_version
        found_parameter_group(region, asked.db_parameter_group_name, f"{catalog.ENGINE}{catalog.major(version)}")
    refuse_windows(
        asked.preferred_backup_window or record.shown.preferred_backup_window,
        asked.preferred_maintenance_window or record.shown.preferred_maintenance_window,
    )
    if asked.option_group_name is not None:
        refuse_option_group(asked.option_group_name, asked.engine_version or record.shown.engine_version)
    if asked.publicly_accessible:
        refuse_exposure(group or record.shown.db_subnet_group)
    secret = secret_after(asked, record.shown.master_user_secret, record.shown.db_instance_arn)
    record = msgspec.structs.replace(record, shown=msgspec.structs.replace(record.shown, master_user_secret=secret))
    record = changes.rescheduled(record, asked, region.now())
    changed, reply = changes.modified(
        record, asked, groups=groups, subnet_group=group, password_after_s=call.behaviour.password_after_s
    )
    status = record.status
    region.put(changed)
    return {"DBInstance": instance_tree(msgspec.structs.replace(reply, db_instance_status=status), region.now())}


def _other_port(record: Record, asked: Asked) -> int | None:
    """Return the port asked for, None where the instance has it, or is born with it."""
    present = port_of(record.shown) or record.port
    return None if asked.db_port_number == present else asked.db_port_number


def _settled(call: Call, shown: Instance, asked: Asked) -> Asked:
    """Return the request with versions and sizes that are offered, or refuse it."""
    found: dict[str, object] = {}
    if asked.engine_version is not None:
        found["engine_version"] = _upgrade(call, shown, asked)
    if asked.allocated_storage is not None:
        found["allocated_storage"] = rules.grown(shown.allocated_storage, asked.allocated_storage)
    if asked.db_instance_class not in {None, shown.db_instance_class}:
        catalog.refuse_class(asked.db_instance_class or "", shown.engine_version)
        if asked.db_instance_class in call.behaviour.no_capacity:
            raise Refusal(
                "InsufficientDBInstanceCapacity", "The specified DB instance class isn't available in the zone."
            )
    if asked.new_db_instance_identifier is not None:
        renamed = rules.identifier(asked.new_db_instance_identifier, "NewDBInstanceIdentifier")
        if renamed in call.region.instances and renamed != shown.db_instance_identifier:
            raise Refusal("DBInstanceAlreadyExists", "DB instance already exists")
        found["new_db_instance_identifier"] = renamed
    if asked.rotate_master_user_password or (asked.manage_master_user_password and shown.master_user_secret is None):
        found["master_user_password"] = secrets.token_urlsafe(24)
    settled = msgspec.structs.replace(asked, **found)
    _refuse_storage_change(call, shown, settled)
    _refuse_secret_change(shown, asked)
    return settled


def _upgrade(call: Call, shown: Instance, asked: Asked) -> str:
    wanted = asked.engine_version or ""
    if wanted in {shown.engine_version, catalog.major(shown.engine_version)}:
        return shown.engine_version
    target = offered_version(call, wanted)
    catalog.refuse_upgrade(shown.engine_version, target, major_allowed=bool(asked.allow_major_version_upgrade))
    joined = shown.db_parameter_groups[0].db_parameter_group_name
    crosses = catalog.major(target) != catalog.major(shown.engine_version)
    if crosses and not joined.startswith("default.") and asked.db_parameter_group_name is None:
        raise invalid_combination(
            f"The current DB instance parameter group {joined} is custom. You must explicitly specify a new DB "
            "parameter group, either default or custom, for the engine version upgrade."
        )
    return target


def _refuse_storage_change(call: Call, shown: Instance, asked: Asked) -> None:
    gib = asked.allocated_storage or shown.allocated_storage
    kind = asked.storage_type or shown.storage_type
    _refuse_half(shown, asked)
    iops = asked.iops if asked.iops is not None or kind not in {"io1", "io2"} else shown.iops
    rates = (asked.allocated_storage, asked.storage_type, asked.iops, asked.storage_throughput)
    if any(value is not None for value in rates):
        catalog.refuse_storage(kind, gib, iops=iops, throughput=asked.storage_throughput)
        refuse_storage_quota(call, gib - shown.allocated_storage)
    if asked.max_allocated_storage != gib:
        rules.refuse_autoscaling(asked.max_allocated_storage, gib)
    if asked.max_allocated_storage is None and gib > (shown.max_allocated_storage or gib):
        raise invalid_combination("Max storage size must be greater than storage size")


def _refuse_half(shown: Instance, asked: Asked) -> None:
    """Refuse a size without IOPS, or the other way, where IOPS are provisioned (ModifyDBInstance, Iops)."""
    provisioned = shown.storage_type in {"io1", "io2"} or (
        shown.storage_type == "gp3" and shown.allocated_storage >= catalog.GP3_LARGE_GIB
    )
    grows = asked.allocated_storage not in {None, shown.allocated_storage}
    speeds = asked.iops not in {None, shown.iops}
    if provisioned and ((grows and asked.iops is None) or (speeds and asked.allocated_storage is None)):
        raise invalid_combination(
            "You must specify both the storage size and iops when modifying the storage size or iops on a DB instance "
            "that has iops."
        )


def _refuse_secret_change(shown: Instance, asked: Asked) -> None:
    managed = shown.master_user_secret is not None
    if asked.rotate_master_user_password and not managed:
        raise invalid_combination("You can't rotate the master user password: it is not managed in Secrets Manager.")
    if asked.rotate_master_user_password and not asked.apply_immediately:
        raise invalid_combination("You must apply the change immediately when rotating the master user password.")
    if managed and asked.manage_master_user_password is False and asked.master_user_password is None:
        raise invalid_combination("You must specify MasterUserPassword when you turn off ManageMasterUserPassword.")
    if asked.master_user_password is not None and managed and asked.manage_master_user_password is not False:
        raise invalid_combination("You can't specify MasterUserPassword for an instance with ManageMasterUserPassword.")


def autoscaled(record: Record) -> Record | None:
    """Return the record with a growth by storage autoscaling under way; None where MaxAllocatedStorage allows none.

    After "Managing capacity automatically with Amazon RDS storage autoscaling": 10 GiB or 10%, whichever is more.
    """
    shown = record.shown
    gib = min(shown.allocated_storage + max(10, -(-shown.allocated_storage // 10)), shown.max_allocated_storage or 0)
    if gib <= shown.allocated_storage or record.under is not None or record.optimizing_until is not None:
        return None
    grown: dict[str, object] = {"allocated_storage": gib}
    became = Became(shown=grown, hidden={"resting": "available", "resting_until": None})
    step = Step(status="modifying", seconds=90, ends=(became, Optimizing()), began=(217,), ended=(218,))
    return msgspec.structs.replace(record, agenda=(*record.agenda, step))


ACTIONS: dict[str, Action] = {"ModifyDBInstance": modify}
