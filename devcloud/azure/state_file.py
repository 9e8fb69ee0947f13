"""What the simulated Azure keeps beyond its process, and how it goes on from there."""

from devcloud.azure.api.calls import Cloud
from devcloud.azure.entra.directory import Assignment, Principal
from devcloud.azure.state.model import Dropped, Group, Lock, Server
from devcloud.simulator.operations import Operation
from devcloud.simulator.rest import Grant
from devcloud.simulator.service import Saved


class AzureSaved(Saved, frozen=True, kw_only=True):
    """All of it. Tokens too: who holds one goes on with it over a restart, as at Azure."""

    groups: tuple[Group, ...]
    servers: tuple[Server, ...]
    dropped: tuple[Dropped, ...]
    locks: tuple[Lock, ...]
    operations: tuple[Operation, ...]
    principals: tuple[Principal, ...]
    assignments: tuple[Assignment, ...]
    subscriptions: dict[str, str]
    tokens: dict[str, Grant]


def saved(cloud: Cloud) -> AzureSaved:
    """Return what is kept."""
    resources, directory = cloud.resources, cloud.directory
    return AzureSaved(
        now=cloud.clock.now(),
        groups=tuple(resources.groups.values()),
        servers=tuple(resources.servers.values()),
        dropped=tuple(resources.dropped.values()),
        locks=tuple(resources.locks.values()),
        operations=resources.operations.saved(),
        principals=tuple(directory.principals.values()),
        assignments=tuple(directory.assignments),
        subscriptions=directory.subscriptions,
        tokens=cloud.tokens.grants,
    )


def restore(cloud: Cloud, kept: AzureSaved) -> None:
    """Have what a former process kept, and go on with its work."""
    resources, directory = cloud.resources, cloud.directory
    # The first application is as this process was started with.
    directory.principals = {**{entry.client_id: entry for entry in kept.principals}, **directory.principals}
    directory.tenants |= {entry.tenant for entry in kept.principals}
    directory.assignments = [*kept.assignments, *(new for new in directory.assignments if new not in kept.assignments)]
    directory.subscriptions.update(kept.subscriptions)
    cloud.tokens.grants = {**kept.tokens}
    for group in kept.groups:
        resources.keep_group(group)
    resources.dropped = {entry.server.resource_id: entry for entry in kept.dropped}
    resources.locks = {(lock.scope.lower(), lock.name.lower()): lock for lock in kept.locks}
    resources.restore(kept.servers, kept.operations)
