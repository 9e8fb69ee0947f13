"""The actions on DB snapshots."""

from fnmatch import fnmatchcase

import msgspec

from devcloud.aws.api import rules
from devcloud.aws.api.calls import Action, Call, filters, page, tags_of
from devcloud.aws.api.lookups import refuse_option_group
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.lifecycle.states import refuse_snapshot
from devcloud.aws.lifecycle.steps import Record, SnapshotReady, Step
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.state import catalog
from devcloud.aws.state.backups import snapshot_of
from devcloud.aws.state.model import Snapshot, Tag
from devcloud.simulator.messages import Refusal
from devcloud.simulator.work import TakeSnapshot

_LONGEST_NAME = 255


def begin_snapshot(call: Call, record: Record, name: str, parameter: str, tags: tuple[Tag, ...] = ()) -> str:
    """Write down a manual snapshot that begins; return its identifier.

    Raises:
        Refusal: `InvalidParameterValue`, `DBSnapshotAlreadyExists` or `SnapshotQuotaExceeded`.
    """
    region = call.region
    identifier = rules.identifier(name, parameter, longest=_LONGEST_NAME)
    refuse_new(call, identifier)
    arn = region.arn("snapshot", identifier)
    fails = any(fnmatchcase(identifier, failing_snapshot) for failing_snapshot in call.behaviour.failing_snapshots)
    begun = snapshot_of(record.shown, identifier, arn, "manual", tags)
    region.add_snapshot(msgspec.structs.replace(begun, fails=fails))
    region.emit(40, ("db-snapshot", identifier, arn), region.now())
    return identifier


def refuse_new(call: Call, identifier: str) -> None:
    """Refuse a manual snapshot whose name is taken, or that is one too many.

    Raises:
        Refusal: `DBSnapshotAlreadyExists` or `SnapshotQuotaExceeded`.
    """
    if identifier in call.region.snapshots:
        raise Refusal(
            "DBSnapshotAlreadyExists",
            f"Cannot create the snapshot because a snapshot with the identifier {identifier} already exists.",
        )
    manual = sum(snapshot.snapshot_type == "manual" for snapshot in call.region.snapshots.values())
    if manual >= call.behaviour.quotas.snapshots:
        raise Refusal("SnapshotQuotaExceeded", "Cannot create more manual snapshots: the quota is reached.")


def found_snapshot(call: Call, name: str) -> Snapshot:
    """Return a snapshot by identifier, in any letter case, or by ARN.

    Raises:
        Refusal: `DBSnapshotNotFound`, also for one of another region or account: none is shared or copied from there.
    """
    here = call.region.arn("snapshot", "")
    snapshot = None
    if not name.startswith("arn:") or name.startswith(here):
        snapshot = call.region.snapshots.get(name.removeprefix(here).lower())
    if snapshot is None:
        raise Refusal("DBSnapshotNotFound", f"DBSnapshot {name} not found.")
    return snapshot


def create(call: Call) -> Tree:
    """CreateDBSnapshot."""
    record = call.region.instance(call.text("DBInstanceIdentifier"))
    tags = tags_of(call.get("Tags"))
    rules.refuse_tags(tags)
    refuse_snapshot(record)
    key = begin_snapshot(call, record, call.text("DBSnapshotIdentifier"), "DBSnapshotIdentifier", tags)
    step = Step(
        status="backing-up", seconds=60, work=TakeSnapshot(key), ends=(SnapshotReady(key),), began=(1,), ended=(2,)
    )
    call.region.put(msgspec.structs.replace(record, agenda=(*record.agenda, step)))
    return {"DBSnapshot": tree_of(call.region.snapshots[key])}


def copy(call: Call) -> Tree:
    """CopyDBSnapshot, within a region; the copy is there at once, although the reply says `creating` as RDS's does."""
    region = call.region
    source = found_snapshot(call, call.text("SourceDBSnapshotIdentifier"))
    if source.status != "available":
        raise Refusal("InvalidDBSnapshotState", f"The snapshot {source.db_snapshot_identifier} is not available.")
    name = call.text("TargetDBSnapshotIdentifier")
    identifier = rules.identifier(name, "TargetDBSnapshotIdentifier", longest=_LONGEST_NAME)
    tags = tags_of(call.get("Tags"))
    rules.refuse_tags(tags)
    refuse_new(call, identifier)
    copied = msgspec.structs.replace(
        source,
        db_snapshot_identifier=identifier,
        db_snapshot_arn=region.arn("snapshot", identifier),
        snapshot_type="manual",
        snapshot_create_time=region.now(),
        source_region=region.name,
        source_db_snapshot_identifier=source.db_snapshot_arn,
        tag_list=tags or (source.tag_list if call.get("CopyTags") else ()),
    )
    region.add_snapshot(copied)
    region.copy_data(source.db_snapshot_identifier, identifier)
    reply = msgspec.structs.replace(copied, status="creating", percent_progress=0, snapshot_create_time=None)
    return {"DBSnapshot": tree_of(reply)}


def modify(call: Call) -> Tree:
    """ModifyDBSnapshot: another engine version, at once; its data are as they were."""
    source = found_snapshot(call, call.text("DBSnapshotIdentifier"))
    if source.snapshot_type != "manual" or source.status != "available":
        raise Refusal(
            "InvalidDBSnapshotState",
            f"The snapshot {source.db_snapshot_identifier} is not a manual snapshot in state available.",
        )
    wanted = call.get("EngineVersion")
    version = source.engine_version if wanted is None else catalog.version(str(wanted))
    if version != source.engine_version:
        catalog.refuse_upgrade(source.engine_version, version, major_allowed=True)
    group = call.get("OptionGroupName") or catalog.option_group(version)
    refuse_option_group(str(group), version)
    changed = msgspec.structs.replace(source, engine_version=version, option_group_name=str(group))
    call.region.snapshots[source.db_snapshot_identifier] = changed
    return {"DBSnapshot": tree_of(changed)}


_FILTERS = {
    "db-instance-id": lambda snapshot: snapshot.db_instance_identifier,
    "db-snapshot-id": lambda snapshot: snapshot.db_snapshot_identifier,
    "dbi-resource-id": lambda snapshot: snapshot.dbi_resource_id,
    "snapshot-type": lambda snapshot: snapshot.snapshot_type,
    "engine": lambda snapshot: snapshot.engine,
}


def describe(call: Call) -> Tree:
    """DescribeDBSnapshots."""
    name, kind = call.get("DBSnapshotIdentifier"), call.get("SnapshotType")
    if kind not in {None, "manual", "automated", "shared", "public", "awsbackup"}:
        raise invalid_combination(f"Invalid snapshot type: {kind}")
    named = [found_snapshot(call, str(name))] if name else list(call.region.snapshots.values())
    instance, resource = call.get("DBInstanceIdentifier"), call.get("DbiResourceId")
    passes = filters(call, _FILTERS)
    snapshots = [
        snapshot
        for snapshot in named
        if kind in {None, snapshot.snapshot_type}
        and (instance is None or snapshot.db_instance_identifier == str(instance).lower())
        and resource in {None, snapshot.dbi_resource_id}
        and passes(snapshot)
    ]
    snapshots.sort(key=lambda snapshot: snapshot.db_snapshot_identifier)
    listed, marker = page(call, snapshots, lambda snapshot: snapshot.db_snapshot_identifier)
    return {"DBSnapshots": [tree_of(snapshot) for snapshot in listed], **marker}


def delete(call: Call) -> Tree:
    """DeleteDBSnapshot."""
    snapshot = found_snapshot(call, call.text("DBSnapshotIdentifier"))
    if snapshot.snapshot_type != "manual":
        raise Refusal("InvalidDBSnapshotState", "Only manual snapshots may be deleted.")
    if snapshot.status not in {"available", "failed"}:
        raise Refusal(
            "InvalidDBSnapshotState",
            f"Cannot delete the snapshot {snapshot.db_snapshot_identifier} in state {snapshot.status}.",
        )
    call.region.drop_snapshot(snapshot.db_snapshot_identifier)
    call.region.emit(41, ("db-snapshot", snapshot.db_snapshot_identifier, snapshot.db_snapshot_arn), call.region.now())
    # It is answered as it was (recorded).
    return {"DBSnapshot": tree_of(snapshot)}


ACTIONS: dict[str, Action] = {
    "CreateDBSnapshot": create,
    "CopyDBSnapshot": copy,
    "ModifyDBSnapshot": modify,
    "DescribeDBSnapshots": describe,
    "DeleteDBSnapshot": delete,
}
