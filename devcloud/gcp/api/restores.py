"""The methods that make an instance with the data of a backup, or of another instance."""

from datetime import datetime, timedelta

from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.instances import have, new_resource, refuse_name
from devcloud.gcp.api.starting import Kind, started
from devcloud.gcp.refusals import in_progress, invalid, no_backup_of_then, not_simulated, wrong_state
from devcloud.gcp.state.model import Instance
from devcloud.gcp.state.settings import Json, chosen, merged
from runtime import randomness

RESTORE_S, CLONE_S = 300.0, 300.0
_NOT_SIMULATED = frozenset({"destinationProject", "destinationNetwork", "binLogCoordinates", "databaseNames"})
# The API shows times to the millisecond.
_OF_A_TIME = timedelta(milliseconds=1)
_UNCLONABLE = frozenset({"PENDING_CREATE", "PENDING_DELETE"})


def restore_backup(cloud: Cloud, call: Call) -> Json:
    """Create an instance with the data of a backup; one that is there is not written over here."""
    backup = cloud.world.backup(*_named_backup(call))
    if f"{call.project}:{call.instance}" in cloud.world.instances:
        raise not_simulated("A restore into an instance that exists")
    if backup.state != "SUCCESSFUL":
        raise invalid("The backup is not successful.")
    refuse_name(cloud, call, call.instance)
    overrides = chosen(call.body.get("restoreInstanceSettings", {}))
    source = chosen(backup.settings)
    source["settings"] = {**source["settings"], "deletionProtectionEnabled": False}
    source.pop("maintenanceVersion", None)
    wanted = {**merged(source, overrides), "name": call.instance}
    if wanted["databaseVersion"] != backup.version:
        raise invalid("The database version cannot differ from the backup's.")
    if int(wanted["settings"]["dataDiskSizeGb"]) < int(backup.settings["settings"]["dataDiskSizeGb"]):
        raise invalid("Disk size can not be decreased.")
    shown = new_resource(cloud, call, wanted)
    have(cloud, shown, randomness.token_hex(24))
    return started(cloud, call, call.instance, Kind("RESTORE_VOLUME", RESTORE_S), backup=backup.key)


def _named_backup(call: Call) -> tuple[str, str]:
    context, name = call.body.get("restoreBackupContext", {}), str(call.body.get("backup", ""))
    if context:
        return str(context.get("project", call.project)), str(context.get("backupRunId", ""))
    parts = name.split("/")
    if len(parts) != 4 or parts[::2] != ["projects", "backups"]:  # noqa: PLR2004 - projects/P/backups/ID
        raise invalid(f"Invalid backup name: {name}.")
    return parts[1], parts[3]


def clone(cloud: Cloud, call: Call) -> Json:
    """Create an instance with the data and all settings of another one, its labels too; the operation is the new one's.

    Source: "Use point-in-time recovery" of Cloud SQL for PostgreSQL (request, answer, the refusal of a time), "About
    restoring an instance" (settings are those of the source).
    """
    context = call.body.get("cloneContext", {})
    name = str(context.get("destinationInstanceName", ""))
    for unknown in sorted(_NOT_SIMULATED & context.keys()):
        raise not_simulated(f"The field {unknown} of a clone")
    if "sourceInstanceDeletionTime" in context:
        return _clone_deleted(cloud, call, name, context)
    source = cloud.world.instance(call.project, call.instance)
    if source.state in _UNCLONABLE:
        raise wrong_state()
    if cloud.operations.open_of(source.key) is not None:
        raise in_progress(cloud.behaviour.in_progress_status)
    _refuse_time(cloud, source, str(context.get("pointInTime", "")))
    refuse_name(cloud, call, name)
    shown = new_resource(cloud, call, {**chosen(source.shown), "name": name})
    have(cloud, shown, randomness.token_hex(24), source)
    return started(cloud, call, name, Kind("CLONE", CLONE_S), source=source.uid)


def _clone_deleted(cloud: Cloud, call: Call, name: str, context: Json) -> Json:
    """Create an instance with the data of a deleted one that kept its backups, as of the last of them before a time.

    Source: "Use point-in-time recovery", "Perform PITR on an unavailable or deleted instance"; what came between that
    backup and the time is not kept here.
    """
    gone_at, moment = (datetime.fromisoformat(str(context[at])) for at in ("sourceInstanceDeletionTime", "pointInTime"))
    kept = [
        backup
        for backup in cloud.world.backups.values()
        if (backup.project, backup.instance) == (call.project, call.instance)
        and backup.gone_at is not None
        and abs(backup.gone_at - gone_at) < _OF_A_TIME
        and backup.kind != "FINAL"
        and backup.settings["settings"]["backupConfiguration"].get("pointInTimeRecoveryEnabled")
        and backup.ended_at is not None
        and backup.ended_at <= moment <= gone_at
    ]
    if not kept:
        raise no_backup_of_then()
    last = max(kept, key=lambda backup: backup.at)
    refuse_name(cloud, call, name)
    source = chosen(last.settings)
    source["settings"] = {**source["settings"], "deletionProtectionEnabled": False}
    have(cloud, new_resource(cloud, call, {**source, "name": name}), randomness.token_hex(24))
    return started(cloud, call, name, Kind("CLONE", CLONE_S), backup=last.key)


def _refuse_time(cloud: Cloud, source: Instance, text: str) -> None:
    """Refuse a time that an instance cannot be recovered to; none is the present state."""
    if not text:
        return
    moment = datetime.fromisoformat(text)
    if source.logged_from is None:
        raise invalid("Point-in-time recovery is not enabled for the source instance.")
    days = source.shown["settings"]["backupConfiguration"]["transactionLogRetentionDays"]
    now = cloud.world.clock.now()
    if not max(source.logged_from, now - timedelta(days=days)) <= moment <= now:
        raise no_backup_of_then()
