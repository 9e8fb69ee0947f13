"""What a simulated Cloud SQL keeps beyond its process."""

from datetime import datetime

import msgspec

from devcloud.gcp.iam.identities import Identities, SavedIdentities
from devcloud.gcp.state.model import Backup, Instance, Project
from devcloud.gcp.state.world import World
from devcloud.simulator.operations import Operation
from devcloud.simulator.service import Saved
from devcloud.simulator.state_file import EncodedOnce


class GcpSaved(Saved, frozen=True, kw_only=True):
    """All of it.

    Attributes:
        projects: By id.
        instances: Each an `Instance`.
        backups: Of all projects.
        reserved: Names of deleted instances, and until when they stay taken.
        operations: Oldest first.
        identities: Who can call.
    """

    projects: tuple[Project, ...]
    instances: tuple[msgspec.Raw, ...]
    backups: tuple[Backup, ...]
    reserved: dict[str, datetime]
    operations: tuple[Operation, ...]
    identities: SavedIdentities


def saved(
    world: World, identities: Identities, operations: tuple[Operation, ...], encoded: EncodedOnce[Instance]
) -> GcpSaved:
    """Return what is kept."""
    return GcpSaved(
        now=world.clock.now(),
        projects=tuple(world.projects.values()),
        instances=tuple(encoded.encode(key, instance) for key, instance in world.instances.items()),
        backups=tuple(world.backups.values()),
        reserved=world.reserved,
        operations=operations,
        identities=identities.saved(),
    )


def restore(world: World, identities: Identities, kept: GcpSaved) -> None:
    """Have what a former process kept, but for its operations.

    Raises:
        msgspec.ValidationError: An instance is none; nothing was changed.
    """
    instances = [msgspec.json.decode(instance, type=Instance) for instance in kept.instances]
    world.projects = {project.id: project for project in kept.projects}
    for instance in instances:
        world.put(instance)
    for backup in kept.backups:
        world.put_backup(backup)
    world.reserved = dict(kept.reserved)
    identities.restore(kept.identities)
