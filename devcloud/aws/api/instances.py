"""The actions that make and change DB instances (RDS API Reference, the pages named after them)."""

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, converted
from devcloud.aws.api.lookups import (
    found_parameter_group,
    found_security_groups,
    found_subnet_group,
    refuse_exposure,
    refuse_option_group,
)
from devcloud.aws.api.snapshots import begin_snapshot
from devcloud.aws.api.views import instance_tree
from devcloud.aws.api.wire import Tree
from devcloud.aws.lifecycle import progress
from devcloud.aws.lifecycle.creation import Resolved, record_of, storage_type
from devcloud.aws.lifecycle.progress import STOPPED_AT_MOST
from devcloud.aws.lifecycle.states import (
    OPERABLE,
    refuse_delete,
    refuse_not_available,
    refuse_not_stopped,
)
from devcloud.aws.lifecycle.steps import Became, Gone, Record, SnapshotReady, Step
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.region import resource_id, visible
from devcloud.aws.state import catalog, windows
from devcloud.aws.state.network import DEFAULT_KEY_ID, OWN_KEYS, key_arn
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.messages import Refusal
from devcloud.simulator.work import Drop, Make, Reboot, Stop, TakeSnapshot
from runtime import randomness


def create(call: Call) -> Tree:
    """CreateDBInstance."""
    request = converted(call.parameters, InstanceRequest)
    rules.refuse_values(request)
    rules.refuse_creation(request)
    resolved = resolve(call, request, request.db_instance_identifier)
    call.region.put(record_of(request, resolved, Make()))
    return replied(call, call.region.instance(resolved.identifier))


def replied(call: Call, record: Record) -> Tree:
    """Return the reply that shows an instance."""
    return {"DBInstance": instance_tree(visible(record), call.region.now())}


def resolve(call: Call, request: InstanceRequest, name: str) -> Resolved:
    """Return what a request for a new instance means here.

    Raises:
        Refusal: A value, a combination, a name that is not there, a quota, no capacity.
    """
    region = call.region
    identifier = rules.identifier(name)
    if identifier in region.instances:
        raise Refusal("DBInstanceAlreadyExists", "DB instance already exists")
    version = offered_version(call, request.engine_version)
    refuse_offer(call, request, version)
    group = found_subnet_group(region, request.db_subnet_group_name or "default")
    zones = {subnet.subnet_availability_zone.name for subnet in group.subnets}
    rules.refuse_placement(
        multi_az=bool(request.multi_az), availability_zone=request.availability_zone, region=region.name
    )
    if request.availability_zone is not None and request.availability_zone not in zones:
        raise Refusal("InvalidVPCNetworkStateFault", f"No subnet of {group.db_subnet_group_name} is in that zone.")
    if request.db_parameter_group_name is not None:
        found_parameter_group(region, request.db_parameter_group_name, f"{catalog.ENGINE}{catalog.major(version)}")
    if request.option_group_name is not None:
        refuse_option_group(request.option_group_name, version)
    if request.publicly_accessible:
        refuse_exposure(group)
    refuse_windows(request.preferred_backup_window, request.preferred_maintenance_window)
    refuse_quota(call, request.allocated_storage or 0)
    return Resolved(
        identifier=identifier,
        arn=region.arn("db", identifier),
        resource_id=resource_id(),
        version=version,
        subnet_group=group,
        security_groups=found_security_groups(request.vpc_security_group_ids, group),
        kms_key_id=_kms_key(call, request),
        password=request.master_user_password or randomness.token_hex(16),
        now=region.now(),
    )


def offered_version(call: Call, wanted: str | None) -> str:
    """Return the version that a request means among those that are offered now.

    Raises:
        Refusal: `InvalidParameterCombination`.
    """
    version = catalog.version(wanted)
    if version in call.behaviour.hidden_versions:
        raise invalid_combination(f"Cannot find version {version} for {catalog.ENGINE}")
    return version


def refuse_offer(call: Call, request: InstanceRequest, version: str) -> None:
    """Refuse a class, a storage, a capacity that a new instance cannot have.

    Raises:
        Refusal: `InvalidParameterValue`, `InvalidParameterCombination`, `InsufficientDBInstanceCapacity`.
    """
    instance_class = request.db_instance_class or ""
    catalog.refuse_class(instance_class, version)
    gib = request.allocated_storage or 0
    catalog.refuse_storage(storage_type(request), gib, iops=request.iops, throughput=request.storage_throughput)
    rules.refuse_autoscaling(request.max_allocated_storage, gib)
    if instance_class in call.behaviour.no_capacity:
        raise Refusal(
            "InsufficientDBInstanceCapacity",
            f"The requested DB instance class {instance_class} is not available in the specified Availability Zone.",
        )


def refuse_windows(backup: str | None, maintenance: str | None) -> None:
    """Refuse windows that overlap; one alone leaves the other to the service.

    Raises:
        Refusal: `InvalidParameterCombination`.
    """
    if backup is not None and maintenance is not None:
        windows.refuse_overlap(backup, maintenance)


def refuse_quota(call: Call, more_gib: int) -> None:
    """Refuse an instance more than there may be.

    Raises:
        Refusal: `InstanceQuotaExceeded` or `StorageQuotaExceeded`.
    """
    present = call.region.instances.values()
    if len(present) >= call.behaviour.quotas.instances:
        raise Refusal("InstanceQuotaExceeded", "Cannot create more DB instances: the quota of DB instances is reached.")
    refuse_storage_quota(call, more_gib)


def refuse_storage_quota(call: Call, more_gib: int) -> None:
    """Refuse storage beyond the quota.

    Raises:
        Refusal: `StorageQuotaExceeded`.
    """
    total = sum(record.shown.allocated_storage for record in call.region.instances.values())
    if total + more_gib > call.behaviour.quotas.storage_gib:
        raise Refusal("StorageQuotaExceeded", "The request would exceed the allowed amount of storage available.")


def _kms_key(call: Call, request: InstanceRequest) -> str | None:
    if request.kms_key_id is None:
        return default_key(call) if request.storage_encrypted else None
    return found_key(call, request.kms_key_id)


def default_key(call: Call) -> str:
    """Return the ARN of the account's key for RDS, `aws/rds`."""
    return f"arn:aws:kms:{call.region.name}:{call.region.account}:key/{DEFAULT_KEY_ID}"


def found_key(call: Call, name: str) -> str:
    """Return the ARN of a key that was named by id, alias or ARN.

    Raises:
        Refusal: `KMSKeyNotAccessibleFault`, it is another region's.
    """
    if name in OWN_KEYS:
        return default_key(call)
    if not name.startswith("arn:"):
        return key_arn(call.region.account, call.region.name, name)
    if name.split(":")[3] != call.region.name:
        raise Refusal("KMSKeyNotAccessibleFault", f"The specified KMS key [{name}] does not exist or is not enabled.")
    return name


def delete(call: Call) -> Tree:
    """DeleteDBInstance."""
    region = call.region
    record = region.instance(call.text("DBInstanceIdentifier"))
    skips = bool(call.get("SkipFinalSnapshot"))
    name = call.get("FinalDBSnapshotIdentifier")
    if skips and name is not None:
        raise invalid_combination(
            "FinalDBSnapshotIdentifier can not be specified when deleting with SkipFinalSnapshot."
        )
    if not skips and name is None:
        raise invalid_combination("FinalDBSnapshotIdentifier is required unless SkipFinalSnapshot is specified.")
    refuse_delete(record, with_snapshot=not skips)
    keeps = call.get("DeleteAutomatedBackups") is False and record.shown.backup_retention_period > 0
    steps = [Step(status="deleting", seconds=90, work=Drop(keeps=keeps), ends=(Gone(),), ended=(3,))]
    if name is not None:
        key = begin_snapshot(call, record, str(name), "FinalDBSnapshotIdentifier")
        final = Step(status="deleting", seconds=60, work=TakeSnapshot(key), ends=(SnapshotReady(key),))
        steps.insert(0, final)
    region.put(msgspec.structs.replace(record, under=None, agenda=tuple(steps), optimizing_until=None))
    return replied(call, region.instance(record.shown.db_instance_identifier))


def stop(call: Call) -> Tree:
    """StopDBInstance."""
    record = call.region.instance(call.text("DBInstanceIdentifier"))
    refuse_not_available(record, OPERABLE)
    steps = []
    if call.get("DBSnapshotIdentifier") is not None:
        key = begin_snapshot(call, record, call.text("DBSnapshotIdentifier"), "DBSnapshotIdentifier")
        steps.append(Step(status="stopping", seconds=60, work=TakeSnapshot(key), ends=(SnapshotReady(key),)))
    restart = call.region.now() + STOPPED_AT_MOST
    became = Became(shown={"automatic_restart_time": restart}, hidden={"resting": "stopped"})
    steps.append(Step(status="stopping", seconds=60, work=Stop(), ends=(became,), ended=(87,)))
    return _moved(call, record, tuple(steps))


def start(call: Call) -> Tree:
    """StartDBInstance."""
    record = call.region.instance(call.text("DBInstanceIdentifier"))
    refuse_not_stopped(record)
    return _moved(call, record, progress.starting())


def reboot(call: Call) -> Tree:
    """RebootDBInstance."""
    record = call.region.instance(call.text("DBInstanceIdentifier"))
    refuse_not_available(record, OPERABLE | {"incompatible-parameters"})
    shown = record.shown
    fails_over = bool(call.get("ForceFailover"))
    if fails_over and not shown.multi_az:
        raise invalid_combination(
            "Force failover cannot be specified since the instance is not configured for multi AZ."
        )
    after: dict[str, object] = {}
    began, ended = (4,), (6,)
    if fails_over:
        zones = shown.availability_zone, shown.secondary_availability_zone
        after = {"availability_zone": zones[1], "secondary_availability_zone": zones[0]}
        began, ended = (13,), (49,)
    became = Became(shown=after, hidden={"resting": "available", "resting_until": None})
    step = Step(status="rebooting", seconds=30, work=Reboot(), ends=(became,), began=began, ended=ended)
    return _moved(call, record, (step,))


def _moved(call: Call, record: Record, steps: tuple[Step, ...]) -> Tree:
    call.region.put(msgspec.structs.replace(record, agenda=(*record.agenda, *steps)))
    return replied(call, call.region.instance(record.shown.db_instance_identifier))


ACTIONS: dict[str, Action] = {
    "CreateDBInstance": create,
    "DeleteDBInstance": delete,
    "StopDBInstance": stop,
    "StartDBInstance": start,
    "RebootDBInstance": reboot,
}
