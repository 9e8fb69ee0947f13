"""The actions that list DB instances and their automated backups."""

from datetime import timedelta
from fnmatch import fnmatchcase

import msgspec

from devcloud.aws.api.calls import Action, Call, filters, page
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.region import visible
from devcloud.aws.state.backups import automated_backup_of, latest_restorable
from devcloud.aws.state.model import AutomatedBackup, Instance
from devcloud.simulator.messages import Refusal

_FILTERS = {
    "db-instance-id": lambda shown: shown.db_instance_identifier,
    "dbi-resource-id": lambda shown: shown.dbi_resource_id,
    "engine": lambda shown: shown.engine,
    "db-cluster-id": lambda _: "",
    "domain": lambda _: "",
}


def describe(call: Call) -> Tree:
    """DescribeDBInstances."""
    name = call.get("DBInstanceIdentifier")
    if name:
        instances = [_instance(call, str(name))]
        marker: dict[str, str] = {}
    else:
        instances, marker = page(call, _all(call), lambda shown: shown.db_instance_identifier)
    passes = filters(call, _FILTERS)
    now = call.region.now()
    tagless = () if name else call.behaviour.list_without_tags
    listed = [
        call.xml.of(
            shown, now, with_tags=not any(fnmatchcase(shown.db_instance_identifier, pattern) for pattern in tagless)
        )
        for shown in instances
        if passes(shown)
    ]
    return {"DBInstances": listed, **marker}


def _instance(call: Call, name: str) -> Instance:
    region, lag = call.region, call.behaviour.get_lag_s
    if not lag:
        return visible(region.instance(name))
    identifier = name.rsplit(":", 1)[-1].lower()
    shown = region.as_of(identifier, region.now() - timedelta(seconds=lag))
    if shown is None:
        raise Refusal("DBInstanceNotFound", f"DBInstance {name} not found.")
    return shown


def _all(call: Call) -> list[Instance]:
    region, lag = call.region, call.behaviour.list_lag_s
    if not lag:
        return [visible(region.instances[name]) for name in sorted(region.instances)]
    moment = region.now() - timedelta(seconds=lag)
    versions = (region.as_of(name, moment) for name in region.identifiers())
    return [shown for shown in versions if shown is not None]


_BACKUP_FILTERS = {
    "status": lambda backup: backup.status,
    "db-instance-id": lambda backup: backup.db_instance_identifier,
    "dbi-resource-id": lambda backup: backup.dbi_resource_id,
}


def describe_automated_backups(call: Call) -> Tree:
    """DescribeDBInstanceAutomatedBackups."""
    wanted = {
        "db_instance_identifier": call.get("DBInstanceIdentifier"),
        "dbi_resource_id": call.get("DbiResourceId"),
        "db_instance_automated_backups_arn": call.get("DBInstanceAutomatedBackupsArn"),
    }
    backups = [
        backup
        for backup in (*_living_backups(call), *call.region.retained.values())
        if all(value is None or getattr(backup, name) == value for name, value in wanted.items())
    ]
    passes = filters(call, _BACKUP_FILTERS)
    backups.sort(key=lambda backup: backup.dbi_resource_id)
    listed, marker = page(call, [backup for backup in backups if passes(backup)], lambda backup: backup.dbi_resource_id)
    return {"DBInstanceAutomatedBackups": [tree_of(backup) for backup in listed], **marker}


def _living_backups(call: Call) -> list[AutomatedBackup]:
    region = call.region
    backups = []
    for record in region.instances.values():
        until = latest_restorable(record.shown, region.now())
        if until is not None:
            arn = region.arn("auto-backup", f"ab-{record.shown.dbi_resource_id[3:].lower()}")
            backups.append(automated_backup_of(record.shown, status="active", arn=arn, until=until))
    return backups


def delete_automated_backup(call: Call) -> Tree:
    """DeleteDBInstanceAutomatedBackup, of an instance that is gone."""
    resource = call.get("DbiResourceId")
    arn = call.get("DBInstanceAutomatedBackupsArn")
    for key, backup in call.region.retained.items():
        if resource == key or arn == backup.db_instance_automated_backups_arn:
            call.region.drop_retained(key)
            return {"DBInstanceAutomatedBackup": tree_of(msgspec.structs.replace(backup, status="deleting"))}
    if any(record.shown.dbi_resource_id == resource for record in call.region.instances.values()):
        raise Refusal("InvalidDBInstanceAutomatedBackupState", "Only retained automated backups can be deleted.")
    raise Refusal("DBInstanceAutomatedBackupNotFound", "The automated backup of that resource was not found.")


ACTIONS: dict[str, Action] = {
    "DeleteDBInstanceAutomatedBackup": delete_automated_backup,
    "DescribeDBInstances": describe,
    "DescribeDBInstanceAutomatedBackups": describe_automated_backups,
}
