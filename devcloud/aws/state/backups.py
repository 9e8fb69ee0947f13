"""Which snapshot and which automated backup an instance has, and until when it can be restored. Pure."""

from datetime import datetime, timedelta

from devcloud.aws.state.model import AutomatedBackup, Instance, RestoreWindow, Snapshot, SourceSettings, Tag

_RESTORABLE_STEP = timedelta(minutes=5)


def latest_restorable(shown: Instance, now: datetime) -> datetime | None:
    """Return the LatestRestorableTime: typically within the last five minutes, while there are backups."""
    created = shown.instance_create_time
    if created is None or not shown.backup_retention_period:
        return None
    floored = now - timedelta(seconds=now.timestamp() % _RESTORABLE_STEP.total_seconds())
    return max(floored, created)


def settings_of(shown: Instance) -> SourceSettings:
    """Return what an instance's snapshots and backups keep of it for a restore."""
    return SourceSettings(
        db_name=shown.db_name,
        db_instance_class=shown.db_instance_class,
        preferred_backup_window=shown.preferred_backup_window,
        preferred_maintenance_window=shown.preferred_maintenance_window,
        backup_retention_period=shown.backup_retention_period,
    )


def snapshot_of(shown: Instance, name: str, arn: str, kind: str, tags: tuple[Tag, ...] = ()) -> Snapshot:
    """Return a snapshot of an instance at its beginning: `creating`."""
    copied = shown.tag_list if shown.copy_tags_to_snapshot else ()
    own = {tag.key for tag in tags}
    return Snapshot(
        db_snapshot_identifier=name,
        db_instance_identifier=shown.db_instance_identifier,
        engine=shown.engine,
        allocated_storage=shown.allocated_storage,
        status="creating",
        port=shown.endpoint.port if shown.endpoint else 0,
        availability_zone=shown.availability_zone,
        vpc_id=shown.db_subnet_group.vpc_id,
        instance_create_time=shown.instance_create_time,
        master_username=shown.master_username,
        engine_version=shown.engine_version,
        snapshot_type=kind,
        iops=shown.iops,
        storage_throughput=shown.storage_throughput,
        option_group_name=shown.option_group_memberships[0].option_group_name,
        storage_type=shown.storage_type,
        encrypted=shown.storage_encrypted,
        kms_key_id=shown.kms_key_id,
        db_snapshot_arn=arn,
        iam_database_authentication_enabled=shown.iam_database_authentication_enabled,
        dbi_resource_id=shown.dbi_resource_id,
        tag_list=(*tags, *(tag for tag in copied if tag.key not in own)),
        dedicated_log_volume=shown.dedicated_log_volume,
        source_settings=settings_of(shown),
    )


def automated_backup_of(shown: Instance, *, status: str, arn: str, until: datetime) -> AutomatedBackup:
    """Return an instance's automated backups; status `active` while it lives, `retained` after."""
    began = shown.instance_create_time or until
    return AutomatedBackup(
        db_instance_arn=shown.db_instance_arn,
        dbi_resource_id=shown.dbi_resource_id,
        region=shown.db_instance_arn.split(":")[3],
        db_instance_identifier=shown.db_instance_identifier,
        restore_window=RestoreWindow(earliest_time=began, latest_time=until),
        allocated_storage=shown.allocated_storage,
        status=status,
        port=shown.endpoint.port if shown.endpoint else 0,
        availability_zone=shown.availability_zone,
        vpc_id=shown.db_subnet_group.vpc_id,
        instance_create_time=shown.instance_create_time,
        master_username=shown.master_username,
        engine=shown.engine,
        engine_version=shown.engine_version,
        option_group_name=shown.option_group_memberships[0].option_group_name,
        encrypted=shown.storage_encrypted,
        storage_type=shown.storage_type,
        kms_key_id=shown.kms_key_id,
        iam_database_authentication_enabled=shown.iam_database_authentication_enabled,
        backup_retention_period=shown.backup_retention_period,
        preferred_backup_window=shown.preferred_backup_window,
        db_instance_automated_backups_arn=arn,
        tag_list=shown.tag_list,
        source_settings=settings_of(shown),
    )
