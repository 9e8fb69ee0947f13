"""All that there is in Azure: groups, servers, dropped servers, locks; and the operations that change them."""

import functools
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from devcloud.azure.firewall import access_of
from devcloud.azure.jobs import carry_out, database_of
from devcloud.azure.lifecycle import effects
from devcloud.azure.lifecycle.effects import ServerEffect, effect_from, server_after, state_during
from devcloud.azure.state.catalog import REVIVABLE_DAYS
from devcloud.azure.state.model import Dropped, Group, Lock, Server, group_id
from devcloud.errors import DevcloudError
from devcloud.simulator.clock import Clock
from devcloud.simulator.dataplane import NOWHERE, DataPlane
from devcloud.simulator.history import History
from devcloud.simulator.jobs import OrderedJobs
from devcloud.simulator.operations import InProgress, Operation, OperationError, Operations, OperationSpec

CHILDREN = ("databases", "firewallRules", "configurations")
_GROUP = "group:"


class Shown(msgspec.Struct, frozen=True):
    """A server and the state that it shows."""

    server: Server
    state: str


class Activity(NamedTuple):
    """A change that was accepted: when, for whom, under which id, by which right, of what, and its operation."""

    at: datetime
    caller: str
    correlation_id: str
    right: str
    resource: str
    operation: str


class Resources:
    """What there is: `devcloud.simulator.operations.Effects` of its operations.

    Attributes:
        groups: By subscription and name, in small letters.
        servers: By name, which is a DNS name: nobody else has it.
        dropped: Those that can be revived, by `resource_id`.
        locks: By scope and name, in small letters.
        operations: What is going on.
        activities: What was asked for; it is not kept beyond the process.
        changes: How often something changed.
    """

    def __init__(self, clock: Clock, databases: DataPlane) -> None:
        self.groups: dict[tuple[str, str], Group] = {}
        self.servers: dict[str, Server] = {}
        self.dropped: dict[str, Dropped] = {}
        self.locks: dict[tuple[str, str], Lock] = {}
        self.operations = Operations(clock, self)
        self.activities: list[Activity] = []
        self.changes = 0
        self._clock = clock
        self._databases = databases
        self._jobs = OrderedJobs("azure")
        self._history: History[Shown] = History()
        self._busy: set[str] = set()

    # What there is

    def group(self, subscription: str, name: str) -> Group | None:
        """Return a resource group, by its name in any letter case."""
        return self.groups.get((subscription.lower(), name.lower()))

    def server(self, subscription: str, group: str, name: str) -> Server | None:
        """Return a server of a group, by its name in any letter case."""
        server = self.servers.get(name.lower())
        is_there = server is not None and _place(server) == (subscription.lower(), group.lower())
        return server if is_there else None

    def servers_in(self, subscription: str, group: str | None = None) -> list[Server]:
        """Return the servers of a subscription, or of a group of it, by name."""
        wanted = subscription.lower(), (group or "").lower()
        servers = (self.servers[name] for name in sorted(self.servers))
        return [
            server
            for server in servers
            if _place(server) == wanted or (group is None and server.subscription.lower() == wanted[0])
        ]

    def by_arm_id(self, arm_id: str) -> Server | None:
        """Return a server by its id in ARM, in any letter case."""
        return next((server for server in self.servers.values() if server.arm_id.lower() == arm_id.lower()), None)

    def dropped_of(self, arm_id: str) -> Dropped | None:
        """Return the server of an id that was dropped last and can be revived."""
        matching = [entry for entry in self.dropped.values() if entry.server.arm_id.lower() == arm_id.lower()]
        return max(matching, key=lambda entry: entry.until, default=None)

    def state_of(self, server: Server) -> str:
        """Return the state that a server shows now."""
        operation = next(self.open_operations(server.name), None)
        if operation is not None:
            return state_during(effect_from(operation.effect))
        return server.properties.state if server.is_created else "Provisioning"

    def shown(self, server: Server, lag_s: float) -> Shown | None:
        """Return what a read shows that is some simulated seconds behind; None for nothing yet."""
        if lag_s <= 0:
            return Shown(server, self.state_of(server))
        return self._history.as_of(server.name, self._clock.now() - timedelta(seconds=lag_s))

    def shown_names(self, lag_s: float) -> list[str]:
        """Return the names of servers that a list may show that is behind."""
        return self._history.names() if lag_s > 0 else sorted(self.servers)

    def shown_as(self, name: str, lag_s: float) -> Shown | None:
        """Return what a list shows of a server; also of one that is gone since."""
        server = self.servers.get(name)
        if lag_s <= 0:
            return None if server is None else Shown(server, self.state_of(server))
        return self._history.as_of(name, self._clock.now() - timedelta(seconds=lag_s))

    def locks_above(self, scope: str, levels: Iterable[str]) -> list[str]:
        """Return the scopes of the locks of some levels that hold for a scope: its own, and those above."""
        return sorted(
            lock.scope
            for lock in self.locks.values()
            if lock.level in levels and f"{scope.lower()}/".startswith(f"{lock.scope.lower()}/")
        )

    def locks_below(self, scope: str) -> list[str]:
        """Return the scopes of the locks below a scope: what they hold cannot be deleted with it."""
        return sorted(lock.scope for lock in self.locks.values() if lock.scope.lower().startswith(f"{scope.lower()}/"))

    # What changes it

    def keep(self, server: Server) -> None:
        """Keep a server as it is now."""
        self.changes += 1
        self.servers[server.name] = server
        self._remember(server.name)

    def keep_group(self, group: Group) -> None:
        """Keep a resource group."""
        self.changes += 1
        self.groups[group.subscription.lower(), group.name.lower()] = group

    def open_operations(self, name: str) -> Iterator[Operation]:
        """Yield the open operations of a server, then of what is in it."""
        for target in _targets(name):
            operation = self.operations.open_of(target)
            if operation is not None:
                yield operation

    def start(self, server: Server, spec: OperationSpec, *, child: str = "", overlap: bool = False) -> Operation:
        """Start an operation on a server, or on what is in it.

        Args:
            server: Whose turn it takes.
            spec: What it does, and how long.
            child: What kind of thing in the server it changes (one of CHILDREN), empty for the server itself.
            overlap: Whether different kinds of children may be worked on at once.

        Raises:
            InProgress: The server has an open operation.
        """
        target = f"{server.name}/{child}" if child else server.name
        for operation in self.open_operations(server.name):
            if not (overlap and child and operation.target not in {server.name, target}):
                raise InProgress(operation)
        operation = self.operations.start(target, spec)
        self._busy.add(server.name)
        self._remember(server.name)
        return operation

    def drop_group(self, group: Group, spec: OperationSpec) -> Operation:
        """Start to delete a resource group and all in it; of one that is being deleted, return that operation."""
        target = _GROUP + group_id(group.subscription, group.name).lower()
        running = self.operations.open_of(target)
        return running if running is not None else self.operations.start(target, spec)

    def tick(self) -> None:
        """Move what is due: ends of operations, creations that failed, dropped servers whose time is up."""
        self.operations.settle()
        for name in [name for name in self._busy if next(self.open_operations(name), None) is None]:
            self._busy.discard(name)
            server = self.servers.get(name)
            if server is not None and not server.is_created:
                self._forget(server)
                self._jobs.submit(name, functools.partial(self._databases.delete, server.resource_id))
            else:
                self._remember(name)
        now = self._clock.now()
        for resource_id in [key for key, entry in self.dropped.items() if entry.until <= now]:
            self.changes += 1
            del self.dropped[resource_id]
            self._jobs.submit_last(resource_id, functools.partial(self._databases.delete, resource_id))

    def vanish(self, name: str) -> bool:
        """Take a server away behind the API's back; return whether there was one."""
        server = self.servers.get(name)
        if server is not None:
            self._abort(name)
            self._forget(server)
            self._jobs.submit(name, functools.partial(self._databases.delete, server.resource_id))
        return server is not None

    def set_access(self, server: Server) -> None:
        """Let its firewall be as a server now has it, outside of any operation."""
        set_access = functools.partial(self._databases.set_access, server.resource_id, access_of(server))
        self._jobs.submit(server.name, set_access)

    def reset(self) -> None:
        """Drop all."""
        for name in list(self.servers):
            self.vanish(name)
        self.groups.clear()
        self.dropped.clear()
        self.locks.clear()
        self.operations.reset()
        self.activities.clear()
        self._busy.clear()
        self._history = History()
        self.changes += 1

    # What operations do

    def begin(self, operation: Operation) -> bool:
        """Submit an operation's work on the databases."""
        effect = effect_from(operation.effect)
        if isinstance(effect, effects.DropGroup):
            return False
        name = effect.server

        async def worked() -> None:
            try:
                await self._carry_out(effect)
            except DevcloudError as error:
                self._jobs.log(name, error)
                failure = OperationError(code="InternalServerError", message="An unexpected error occurred.")
                self.operations.work_done(operation.id, failure)
                return
            self.operations.work_done(operation.id)

        self._jobs.submit(name, worked)
        return True

    async def _carry_out(self, effect: ServerEffect) -> None:
        before = self.servers.get(effect.server)
        if before is None:
            return
        after = server_after(before, effect, self._clock.now()) or before
        address = await carry_out(effect, before, after, self._databases)
        # Where no database is served, the server keeps its DNS name.
        if address is not None and address.host != NOWHERE and before.name in self.servers:
            self.keep(msgspec.structs.replace(self.servers[before.name], host=address.host))

    def apply(self, operation: Operation) -> None:
        """Bring about what an operation was for."""
        effect = effect_from(operation.effect)
        if isinstance(effect, effects.DropGroup):
            self._drop_all(effect)
            return
        server = self.servers.get(effect.server)
        if server is None:
            return
        after = server_after(server, effect, self._clock.now())
        if after is None:
            self._drop(server)
        else:
            self.keep(after)

    def _drop_all(self, effect: effects.DropGroup) -> None:
        for server in self.servers_in(effect.subscription, effect.group):
            self._abort(server.name)
            self._jobs.submit(server.name, functools.partial(self._databases.stop, server.resource_id))
            self._drop(server)
        self.changes += 1
        self.groups.pop((effect.subscription.lower(), effect.group.lower()), None)

    def _drop(self, server: Server) -> None:
        until = self._clock.now() + timedelta(days=REVIVABLE_DAYS)
        self.dropped[server.resource_id] = Dropped(server=server, until=until)
        self._forget(server)

    def _abort(self, name: str) -> None:
        for target in _targets(name):
            self.operations.abort(target)

    def _forget(self, server: Server) -> None:
        self.changes += 1
        del self.servers[server.name]
        self._busy.discard(server.name)
        self._history.add(server.name, self._clock.now(), None)

    def _remember(self, name: str) -> None:
        server = self.servers.get(name)
        if server is not None:
            self._history.add(name, self._clock.now(), Shown(server, self.state_of(server)))

    # What outlives the process

    def restore(self, servers: Iterable[Server], operations: Iterable[Operation]) -> None:
        """Have the servers and operations of a former process, and go on with the work."""
        for server in servers:
            self.keep(server)
            self._busy.add(server.name)
            if server.is_created:
                # Before the work that operations begin again: jobs of a server are done in order.
                self._jobs.submit(server.name, functools.partial(self._open_again, server))
        self.operations.restore(operations)

    async def _open_again(self, server: Server) -> None:
        # The database has kept its own password.
        await self._databases.create(database_of(server, None))
        if server.properties.state == "Stopped":
            await self._databases.stop(server.resource_id)

    async def close(self) -> None:
        """End the jobs that are under way."""
        await self._jobs.close()


def _targets(name: str) -> tuple[str, ...]:
    return (name, *(f"{name}/{kind}" for kind in CHILDREN))


def _place(server: Server) -> tuple[str, str]:
    return server.subscription.lower(), server.group.lower()
