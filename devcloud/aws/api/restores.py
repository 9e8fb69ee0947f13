"""The actions that make an instance from a snapshot or to a point in time."""

from datetime import datetime

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, converted
from devcloud.aws.api.instances import replied, resolve
from devcloud.aws.api.snapshots import found_snapshot
from devcloud.aws.api.wire import Tree
from devcloud.aws.lifecycle.creation import record_of, restored
from devcloud.aws.refusals import invalid_combination, invalid_value
from devcloud.aws.state.backups import latest_restorable, settings_of
from devcloud.aws.state.model import AutomatedBackup, Instance, Snapshot
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.messages import Refusal
from devcloud.simulator.work import Copy, Restore, Work


def from_snapshot(call: Call) -> Tree:
    """RestoreDBInstanceFromDBSnapshot."""
    own = ("DBSnapshotIdentifier",)
    request = converted({name: value for name, value in call.parameters.items() if name not in own}, InstanceRequest)
    if not call.get("DBSnapshotIdentifier"):
        raise invalid_value("The parameter DBSnapshotIdentifier must be provided and must not be blank.")
    snapshot = found_snapshot(call, call.text("DBSnapshotIdentifier"))
    if snapshot.status != "available":
        raise Refusal(
            "InvalidDBSnapshotState",
            f"Cannot restore from the snapshot {snapshot.db_snapshot_identifier} in state {snapshot.status}.",
        )
    key = call.region.data_keys[snapshot.db_snapshot_identifier]
    return _restored(call, request, snapshot, Restore(key), (43,))


def to_point_in_time(call: Call) -> Tree:
    """RestoreDBInstanceToPointInTime; the data are those of now whatever time is asked for."""
    own = (
        *("SourceDBInstanceIdentifier", "TargetDBInstanceIdentifier", "SourceDbiResourceId", "RestoreTime"),
        *("UseLatestRestorableTime", "SourceDBInstanceAutomatedBackupsArn"),
    )
    parameters = {name: value for name, value in call.parameters.items() if name not in own}
    parameters["DBInstanceIdentifier"] = call.text("TargetDBInstanceIdentifier")
    request = converted(parameters, InstanceRequest)
    source, latest = _source(call)
    moment = call.get("RestoreTime")
    if (moment is None) == (not call.get("UseLatestRestorableTime")):
        raise invalid_combination("Specify either RestoreTime or UseLatestRestorableTime.")
    if latest is None:
        raise Refusal("PointInTimeRestoreNotEnabled", "Automated backups are not enabled for the source instance.")
    if moment is not None and moment > latest:
        raise Refusal("InvalidRestoreFault", f"The time is later than the latest restorable time {latest.isoformat()}.")
    return _restored(call, request, source, Copy(source.dbi_resource_id), (19,))


def _source(call: Call) -> tuple[Instance | AutomatedBackup, datetime | None]:
    name, resource = call.get("SourceDBInstanceIdentifier"), call.get("SourceDbiResourceId")
    arn = call.get("SourceDBInstanceAutomatedBackupsArn")
    if name is not None:
        record = call.region.instance(str(name))
        return record.shown, latest_restorable(record.shown, call.region.now())
    for record in call.region.instances.values():
        if resource is not None and record.shown.dbi_resource_id == resource:
            return record.shown, latest_restorable(record.shown, call.region.now())
    for backup in call.region.retained.values():
        if resource == backup.dbi_resource_id or arn == backup.db_instance_automated_backups_arn:
            return backup, backup.restore_window.latest_time
    raise Refusal("DBInstanceAutomatedBackupNotFound", "The automated backup of that resource was not found.")


def _restored(
    call: Call,
    request: InstanceRequest,
    source: Snapshot | Instance | AutomatedBackup,
    work: Work,
    events: tuple[int, ...],
) -> Tree:
    whole = _inherited(request, source)
    if (whole.allocated_storage or 0) < source.allocated_storage:
        raise invalid_combination("The allocated storage cannot be less than that of the source.")
    rules.refuse_values(whole)
    resolved = resolve(call, whole, whole.db_instance_identifier)
    resolved = msgspec.structs.replace(resolved, kms_key_id=source.kms_key_id)
    record = record_of(whole, resolved, work, events=events)
    call.region.put(restored(record, initialization_s=call.behaviour.storage_initialization_s))
    return replied(call, call.region.instance(resolved.identifier))


def _inherited(request: InstanceRequest, source: Snapshot | Instance | AutomatedBackup) -> InstanceRequest:
    """Return the request with the source's values for what it does not name, and with its database's name always.

    DBName does not apply to PostgreSQL (RestoreDBInstanceFromDBSnapshot).
    """
    settings = settings_of(source) if isinstance(source, Instance) else source.source_settings
    same = ("allocated_storage", "storage_type", "iops", "storage_throughput", "master_username", "engine_version")
    taken = {name: getattr(source, name, None) for name in (*same, "engine", "copy_tags_to_snapshot", "port")}
    if settings is not None:
        taken.update(msgspec.structs.asdict(settings))
    # Types without a throughput show 0 and take none.
    taken["storage_throughput"] = taken["storage_throughput"] or None
    # A new size or type has rates of its own.
    if request.storage_type is not None or request.allocated_storage is not None:
        taken.update(iops=None, storage_throughput=None)
    if taken["storage_type"] == "gp3" and (taken["allocated_storage"] or 0) < 400:  # noqa: PLR2004 - below it, gp3 takes no rates
        taken.update(iops=None, storage_throughput=None)
    missing = {name: value for name, value in taken.items() if getattr(request, name) is None and value is not None}
    if "port" in missing and not missing["port"]:
        del missing["port"]
    inherited = msgspec.structs.replace(request, **{**missing, "db_name": taken.get("db_name")})
    if inherited.db_instance_class is None:
        return msgspec.structs.replace(inherited, db_instance_class="db.m5.large")
    return inherited


ACTIONS: dict[str, Action] = {
    "RestoreDBInstanceFromDBSnapshot": from_snapshot,
    "RestoreDBInstanceToPointInTime": to_point_in_time,
}
