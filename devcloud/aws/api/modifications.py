"""ModifyDBInstance, and the growth that storage autoscaling brings."""

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
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.state import catalog
from devcloud.aws.state.model import Instance
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.messages import Refusal
from runtime import randomness


def modify(call: Call) -> Tree:
    """ModifyDBInstance."""
    region = call.region
    request = converted(call.parameters, InstanceRequest)
    record = region.instance(request.db_instance_identifier)
    flags = {"DBInstanceIdentifier", "ApplyImmediately", "AllowMajorVersionUpgrade"}
    if not set(call.parameters) - flags and not request.apply_immediately:
        # With ApplyImmediately RDS takes it (crossplane-contrib/provider-aws pull request 2146).
        raise invalid_combination("No modifications were requested")
    rules.refuse_values(request)
    request = _settled(
        call, record.shown, msgspec.structs.replace(request, db_port_number=_other_port(record, request))
    )
    refuse_modify(record, request)
    group = None if request.db_subnet_group_name is None else found_subnet_group(region, request.db_subnet_group_name)
    groups = None
    if request.vpc_security_group_ids is not None:
        groups = found_security_groups(request.vpc_security_group_ids, group or record.shown.db_subnet_group)
    if request.db_parameter_group_name is not None:
        version = request.engine_version or record.shown.engine_version
        found_parameter_group(region, request.db_parameter_group_name, f"{catalog.ENGINE}{catalog.major(version)}")
    refuse_windows(
        request.preferred_backup_window or record.shown.preferred_backup_window,
        request.preferred_maintenance_window or record.shown.preferred_maintenance_window,
    )
    if request.option_group_name is not None:
        refuse_option_group(request.option_group_name, request.engine_version or record.shown.engine_version)
    if request.publicly_accessible:
        refuse_exposure(group or record.shown.db_subnet_group)
    secret = secret_after(request, record.shown.master_user_secret, record.shown.db_instance_arn)
    record = msgspec.structs.replace(record, shown=msgspec.structs.replace(record.shown, master_user_secret=secret))
    record = changes.rescheduled(record, request, region.now())
    changed, reply = changes.modified(
        record, request, groups=groups, subnet_group=group, password_after_s=call.behaviour.password_after_s
    )
    status = record.status
    region.put(changed)
    return {"DBInstance": instance_tree(msgspec.structs.replace(reply, db_instance_status=status), region.now())}


def _other_port(record: Record, request: InstanceRequest) -> int | None:
    """Return the port asked for, None where the instance has it, or is created with it."""
    present = port_of(record.shown) or record.port
    return None if request.db_port_number == present else request.db_port_number


def _settled(call: Call, shown: Instance, request: InstanceRequest) -> InstanceRequest:
    """Return the request with versions and sizes that are offered, or refuse it."""
    settings: dict[str, object] = {}
    if request.engine_version is not None:
        settings["engine_version"] = _upgrade(call, shown, request)
    if request.allocated_storage is not None:
        settings["allocated_storage"] = rules.grown(shown.allocated_storage, request.allocated_storage)
    if request.db_instance_class not in {None, shown.db_instance_class}:
        catalog.refuse_class(request.db_instance_class or "", shown.engine_version)
        if request.db_instance_class in call.behaviour.no_capacity:
            raise Refusal(
                "InsufficientDBInstanceCapacity", "The specified DB instance class isn't available in the zone."
            )
    if request.new_db_instance_identifier is not None:
        renamed = rules.identifier(request.new_db_instance_identifier, "NewDBInstanceIdentifier")
        if renamed in call.region.instances and renamed != shown.db_instance_identifier:
            raise Refusal("DBInstanceAlreadyExists", "DB instance already exists")
        settings["new_db_instance_identifier"] = renamed
    if request.rotate_master_user_password or (
        request.manage_master_user_password and shown.master_user_secret is None
    ):
        settings["master_user_password"] = randomness.token_hex(16)
    settled = msgspec.structs.replace(request, **settings)
    _refuse_storage_change(call, shown, settled)
    _refuse_secret_change(shown, request)
    return settled


def _upgrade(call: Call, shown: Instance, request: InstanceRequest) -> str:
    wanted = request.engine_version or ""
    if wanted in {shown.engine_version, catalog.major(shown.engine_version)}:
        return shown.engine_version
    target = offered_version(call, wanted)
    catalog.refuse_upgrade(shown.engine_version, target, major_allowed=bool(request.allow_major_version_upgrade))
    joined = shown.db_parameter_groups[0].db_parameter_group_name
    crosses = catalog.major(target) != catalog.major(shown.engine_version)
    if crosses and not joined.startswith("default.") and request.db_parameter_group_name is None:
        raise invalid_combination(
            f"The current DB instance parameter group {joined} is custom. You must explicitly specify a new DB "
            "parameter group, either default or custom, for the engine version upgrade."
        )
    return target


def _refuse_storage_change(call: Call, shown: Instance, request: InstanceRequest) -> None:
    gib = request.allocated_storage or shown.allocated_storage
    kind = request.storage_type or shown.storage_type
    _refuse_half(shown, request)
    iops = request.iops if request.iops is not None or kind not in {"io1", "io2"} else shown.iops
    rates = (request.allocated_storage, request.storage_type, request.iops, request.storage_throughput)
    if any(value is not None for value in rates):
        catalog.refuse_storage(kind, gib, iops=iops, throughput=request.storage_throughput)
        refuse_storage_quota(call, gib - shown.allocated_storage)
    if request.max_allocated_storage != gib:
        rules.refuse_autoscaling(request.max_allocated_storage, gib)
    if request.max_allocated_storage is None and gib > (shown.max_allocated_storage or gib):
        raise invalid_combination("Max storage size must be greater than storage size")


def _refuse_half(shown: Instance, request: InstanceRequest) -> None:
    """Refuse a size without IOPS, or the other way, where IOPS are provisioned (ModifyDBInstance, Iops)."""
    provisioned = shown.storage_type in {"io1", "io2"} or (
        shown.storage_type == "gp3" and shown.allocated_storage >= catalog.GP3_LARGE_GIB
    )
    grows = request.allocated_storage not in {None, shown.allocated_storage}
    speeds = request.iops not in {None, shown.iops}
    if provisioned and ((grows and request.iops is None) or (speeds and request.allocated_storage is None)):
        raise invalid_combination(
            "You must specify both the storage size and iops when modifying the storage size or iops on a DB instance "
            "that has iops."
        )


def _refuse_secret_change(shown: Instance, request: InstanceRequest) -> None:
    managed = shown.master_user_secret is not None
    if request.rotate_master_user_password and not managed:
        raise invalid_combination("You can't rotate the master user password: it is not managed in Secrets Manager.")
    if request.rotate_master_user_password and not request.apply_immediately:
        raise invalid_combination("You must apply the change immediately when rotating the master user password.")
    if managed and request.manage_master_user_password is False and request.master_user_password is None:
        raise invalid_combination("You must specify MasterUserPassword when you turn off ManageMasterUserPassword.")
    if request.master_user_password is not None and managed and request.manage_master_user_password is not False:
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
