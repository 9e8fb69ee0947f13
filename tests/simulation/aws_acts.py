"""What others do in RDS, and what happens there behind the API."""

from __future__ import annotations

from typing import Final

from devcloud.aws.platform import SUBNETS
from fairlead.simulation.rds import Rds
from providers.aws import PROVIDER
from runtime.objects import Object, Resource
from tests.simulation.cast import Cast
from tests.simulation.cloud_acts import CloudActs

_INSTANCES, _SUBNET_GROUPS, _PARAMETER_GROUPS = (kind.resource for kind in PROVIDER.kinds)


def _cloud(cast: Cast) -> Rds:
    cloud = cast.platform.cloud
    assert isinstance(cloud, Rds)
    return cloud


async def edits(cast: Cast) -> str:
    """Change a setting or the password of an instance."""
    change = cast.draw({"BackupRetentionPeriod": 12}, {"DBInstanceClass": "db.m7g.large"}, {"AllocatedStorage": 200},
                       {"MasterUserPassword": "Strangers-1"}, {"DeletionProtection": True})  # fmt: skip
    said = _cloud(cast).ask(
        "ModifyDBInstance", DBInstanceIdentifier=cast.server(), ApplyImmediately=cast.happens(1 / 2), **change
    )
    return f"{said} {sorted(change)}"


async def tags(cast: Cast) -> str:
    """Take the tags by which an instance is known, or write one more."""
    cloud, server = _cloud(cast), cast.server()
    record = cloud.region.instances.get(server)
    if record is None:
        return "no instance"
    arn = record.shown.db_instance_arn
    if cast.happens(1 / 2):
        return cloud.ask("AddTagsToResource", ResourceName=arn, Tags=[{"Key": "costs", "Value": "77"}])
    return cloud.ask("RemoveTagsFromResource", ResourceName=arn, TagKeys=[tag.key for tag in record.shown.tag_list])


async def switches(cast: Cast) -> str:
    """Stop, start or reboot an instance."""
    action = cast.draw("StopDBInstance", "StartDBInstance", "StartDBInstance", "RebootDBInstance")
    return _cloud(cast).ask(action, DBInstanceIdentifier=cast.server())


async def deletes(cast: Cast) -> str:
    return _cloud(cast).ask("DeleteDBInstance", DBInstanceIdentifier=cast.server(), SkipFinalSnapshot=True)


async def deletes_backup(cast: Cast) -> str:
    snapshots = _cloud(cast).backups()
    if not snapshots:
        return "no snapshot"
    return _cloud(cast).ask("DeleteDBSnapshot", DBSnapshotIdentifier=cast.draw(*snapshots))


async def edits_group(cast: Cast) -> str:
    """Set a parameter of a group, or delete a group that nobody uses."""
    cloud = _cloud(cast)
    names = sorted(cloud.region.parameter_groups)
    if not names:
        return "no group"
    name = cast.draw(*names)
    if cast.happens(1 / 3):
        return cloud.ask("DeleteDBParameterGroup", DBParameterGroupName=name)
    value = {"ParameterName": "work_mem", "ParameterValue": "4096", "ApplyMethod": "immediate"}
    return cloud.ask("ModifyDBParameterGroup", DBParameterGroupName=name, Parameters=[value])


def _was_stopped(cast: Cast, server: str) -> bool:
    """Return whether an instance was stopped, which ends by a start alone."""
    record = _cloud(cast).region.instances.get(server)
    return record is not None and record.status in {"stopping", "stopped"}


async def cloud_changes(cast: Cast) -> str:
    """Have something happen to an instance."""
    server = cast.server()
    change = cast.draw({"status": "failed"}, {"status": "storage-full"}, {"status": "available"},
                       {"status": "incompatible-network"}, {"status": "available"}, {"vanish": True},
                       {"vanish": True}, {"autoscale": True}, {"replace": True})  # fmt: skip
    if server and not (change.get("status") == "available" and _was_stopped(cast, server)):
        _cloud(cast).steer(server, **change)
    return f"{server} {change}"


STRANGERS: Final = (
    (edits, 3),
    (tags, 1),
    (switches, 2),
    (deletes, 1),
    (deletes_backup, 1),
    (edits_group, 2),
    (cloud_changes, 4),
)


_SHARED: Final[Object] = {
    "dbInstanceClass": "db.t4g.medium",
    "engineVersion": "16",
    "allocatedStorage": 20,
    "masterUsername": "shared_app",
    "dbName": "shared",
    "backupRetentionPeriod": 7,
}


def _inside(resource: Resource, name: str) -> Object:
    """Return a group of its own: nothing is inside of an instance."""
    if resource == _SUBNET_GROUPS:
        return {"subnetIds": list(SUBNETS[:2] if name == "app" else SUBNETS)}
    return {"dbParameterGroupFamily": "postgres16", "parameters": {"work_mem": "8192" if name == "app" else "16384"}}


ACTS: Final = CloudActs(
    policies=(
        ("Delete", "Delete", "Snapshot", "Orphan"),
        ("Delete", "Orphan", "Snapshot"),
        ("Delete", "Orphan"),
    ),
    shared=_SHARED,
    inside=_inside,
    storage=(20, 25, 30),
    database_fields=lambda _has_one: {},
    strangers=STRANGERS,
    size="dbInstanceClass",
    sizes={"small": "db.t4g.medium", "medium": "db.m7g.large", "large": "db.m7g.xlarge"},
)
