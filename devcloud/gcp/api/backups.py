"""The methods of backups: as runs of an instance, and by themselves, where they may outlive it."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from devcloud.gcp.api.calls import Call, Cloud, page
from devcloud.gcp.api.instances import BACKUP_FAILED, backed_up
from devcloud.gcp.api.starting import Kind, started
from devcloud.gcp.api.views import backup_view, run_view
from devcloud.gcp.refusals import in_progress, invalid, not_running
from devcloud.gcp.state.model import Backup
from devcloud.gcp.state.settings import Json
from devcloud.simulator.messages import Refusal

BACKUP_S, DELETE_S = 60.0, 10.0
_MOST_RUNS, _MOST = 500, 2000


def insert_run(cloud: Cloud, call: Call) -> Json:
    """Take a backup on demand."""
    return _taken(cloud, call, call.instance, str(call.body.get("description", "")))


def create(cloud: Cloud, call: Call) -> Json:
    """Take a backup on demand, as a resource by itself."""
    name = str(call.body.get("instance", "")).rpartition("/")[2]
    return _taken(cloud, call, name, str(call.body.get("description", "")))


def _taken(cloud: Cloud, call: Call, name: str, description: str) -> Json:
    instance = cloud.world.instance(call.project, name)
    if cloud.operations.open_of(instance.key) is not None:
        raise in_progress(cloud.behaviour.in_progress_status)
    instance = cloud.world.changeable(call.project, name)
    if instance.is_stopped:
        raise not_running()
    backup = Backup(
        id=cloud.world.new_backup_id(),
        project=call.project,
        instance=name,
        kind="ON_DEMAND",
        description=description,
        region=instance.shown["region"],
        version=instance.shown["databaseVersion"],
        at=cloud.world.clock.now(),
        settings=backed_up(instance),
        users=instance.users,
        databases=instance.databases,
    )
    fails = any(fnmatchcase(name, pattern) for pattern in cloud.behaviour.failing_backups)
    error = BACKUP_FAILED if fails else None
    answer = started(cloud, call, name, Kind("BACKUP_VOLUME", BACKUP_S), error=error, backup=backup.key)
    cloud.world.put_backup(backup)
    return answer


def list_runs(cloud: Cloud, call: Call) -> Json:
    """Return the runs of an instance, newest first; of all instances for `-`."""
    if call.instance != "-":
        cloud.world.instance(call.project, call.instance)
    runs = [
        backup
        for backup in _newest(cloud, call.project)
        if backup.kind != "FINAL" and call.instance in {"-", backup.instance} and not backup.is_gone
    ]
    items, token = page(runs, call, size=_MOST_RUNS)
    return _listed("sql#backupRunsList", "items", [run_view(run, call.version) for run in items], token)


def get_run(cloud: Cloud, call: Call) -> Json:
    """Return a run."""
    return run_view(_run(cloud, call), call.version)


def delete_run(cloud: Cloud, call: Call) -> Json:
    """Delete the backup of a run."""
    return _deleted(cloud, call, _run(cloud, call))


def _run(cloud: Cloud, call: Call) -> Backup:
    cloud.world.instance(call.project, call.instance)
    backup = cloud.world.backup(call.project, call.parameters["id"])
    if backup.instance != call.instance or backup.kind == "FINAL" or backup.is_gone:
        raise Refusal("notFound", "The requested backup does not exist.")
    return backup


def list_backups(cloud: Cloud, call: Call) -> Json:
    """Return the backups of a project, those of deleted instances too; `instance:` and `type:` filter them."""
    matching = [item for item in _newest(cloud, call.project) if _matches(item, call.parameters.get("filter", ""))]
    items, token = page(matching, call, size=_MOST, parameter="pageSize")
    return _listed("", "backups", [backup_view(backup, call.version) for backup in items], token)


def _matches(backup: Backup, expression: str) -> bool:
    shown = {"instance": backup.instance, "type": backup.kind, "location": backup.region}
    for term in expression.replace(" AND ", " ").split():
        name, colon, value = term.partition(":" if ":" in term else "=")
        if not colon or name not in shown:
            raise invalid(f"Invalid filter: {expression}.")
        if shown[name] != value.strip('"'):
            return False
    return True


def get_backup(cloud: Cloud, call: Call) -> Json:
    """Return a backup."""
    return backup_view(cloud.world.backup(call.project, call.parameters["backup"]), call.version)


def delete_backup(cloud: Cloud, call: Call) -> Json:
    """Delete a backup."""
    return _deleted(cloud, call, cloud.world.backup(call.project, call.parameters["backup"]))


def _deleted(cloud: Cloud, call: Call, backup: Backup) -> Json:
    return started(cloud, call, backup.instance, Kind("DELETE_BACKUP", DELETE_S), backup=backup.key)


def _newest(cloud: Cloud, project: str) -> list[Backup]:
    ours = (backup for backup in cloud.world.backups.values() if backup.project == project)
    return sorted(ours, key=lambda backup: backup.id, reverse=True)


def _listed(kind: str, name: str, items: Sequence[Json], token: str) -> Json:
    answer: Json = {"kind": kind} if kind else {}
    if items:
        answer[name] = list(items)
    if token:
        answer["nextPageToken"] = token
    return answer
