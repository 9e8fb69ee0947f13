"""What operations do: the work on the databases while they run, and what is there when they end."""

import functools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from devcloud.errors import DevcloudError
from devcloud.gcp import databases as statements
from devcloud.gcp.api.views import certificate_view
from devcloud.gcp.behaviour import GcpBehaviour
from devcloud.gcp.databases import ADMINISTRATOR
from devcloud.gcp.state import catalog
from devcloud.gcp.state.model import DatabaseOf, Instance, User
from devcloud.gcp.state.settings import Json
from devcloud.gcp.state.world import World
from devcloud.postgres.access import Access
from devcloud.simulator.controls import Controls
from devcloud.simulator.dataplane import Database, DataPlane, NoDatabases
from devcloud.simulator.jobs import OrderedJobs
from devcloud.simulator.operations import Operation, OperationError, Operations

PORT = 5432
_INSIDE = "127.0.0.0/8"
_LONGEST_NAME = 64
_CERTIFIED = "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
_OF_SQL = frozenset({"CREATE_USER", "UPDATE_USER", "DELETE_USER", "CREATE_DATABASE", "DELETE_DATABASE"})


class CloudSqlEffects:
    """A `devcloud.simulator.operations.Effects`.

    Attributes:
        operations: Whom the end of work is reported to; it is made after this.
    """

    operations: Operations

    def __init__(self, world: World, databases: DataPlane, jobs: OrderedJobs, controls: Controls[GcpBehaviour]) -> None:
        self._world = world
        self._databases = databases
        self._jobs = jobs
        self._controls = controls

    # While an operation runs

    def begin(self, operation: Operation) -> bool:
        """Submit the work of an operation; see `Effects`."""
        instance = self._world.instances.get(operation.target)
        if operation.kind in _OF_SQL and isinstance(self._databases, NoDatabases):
            return False
        if operation.kind != "DELETE_BACKUP" and instance is None:
            return False

        async def worked() -> None:
            error = None
            try:
                await self._work(operation, instance)
            except DevcloudError as failure:
                error = OperationError(code="INTERNAL_ERROR", message=_sentence(operation, failure))
            self.operations.work_done(operation.id, error)

        self._jobs.submit(operation.target if instance is None else instance.uid, worked)
        return True

    async def _work(self, operation: Operation, instance: Instance | None) -> None:
        effect = operation.effect
        if operation.kind == "DELETE_BACKUP":
            await self._databases.delete_snapshot(effect["backup"])
        elif instance is None:
            return
        elif operation.kind in {"CREATE", "RESTORE_VOLUME", "CLONE"}:
            await self._create(instance, str(effect.get("backup", "")), str(effect.get("source", "")))
        elif operation.kind == "UPDATE":
            await self._update(instance, effect)
        elif operation.kind in {"RESTART", "FAILOVER"}:
            await self._databases.reboot(instance.uid)
        elif operation.kind == "BACKUP_VOLUME":
            await self._databases.take_snapshot(instance.uid, effect["backup"])
        elif operation.kind == "DELETE":
            if effect["final"]:
                await self._databases.take_snapshot(instance.uid, effect["final"])
            await self._databases.delete(instance.uid)
        else:
            await self._databases.execute(instance.uid, _statements(operation.kind, effect))

    async def _create(self, instance: Instance, backup: str, source: str) -> None:
        database = database_of(instance)
        if backup:
            address = await self._databases.restore(database, backup)
        elif source:
            address = await self._databases.clone(database, source)
        else:
            address = await self._databases.create(database)
        await self._databases.set_access(instance.uid, access_of(instance.shown["settings"]))
        if instance.is_stopped:
            await self._databases.stop(instance.uid)
        # What is there now may differ from what was read before the work.
        present = self._world.instances.get(instance.key)
        if present is not None and present.uid == instance.uid:
            certificate = certificate_view(self._databases.authority_of(instance.uid), instance.name)
            self._world.put(
                msgspec.structs.replace(
                    present, host=address.host, password="", shown={**present.shown, "serverCaCert": certificate}
                )
            )

    async def _update(self, instance: Instance, effect: dict[str, Any]) -> None:
        if effect.get("authority") == "add":
            await self._databases.add_authority(instance.uid)
            return
        if effect.get("authority") == "rotate":
            await self._databases.rotate_authority(instance.uid)
            return
        settings, before = effect["wanted"]["settings"], instance.shown["settings"]
        await self._databases.set_access(instance.uid, access_of(settings))
        stops = settings["activationPolicy"] == "NEVER"
        if stops:
            await self._databases.stop(instance.uid)
        elif before["activationPolicy"] == "NEVER":
            await self._databases.start(instance.uid)
        elif effect["does"] == "upgrade":
            await self._databases.upgrade(instance.uid, str(catalog.major(effect["wanted"]["databaseVersion"])))
        elif effect["does"] != "online":
            await self._databases.reboot(instance.uid)

    # When it ends well

    def apply(self, operation: Operation) -> None:
        """Bring about the effect; see `Effects`."""
        effect, world = operation.effect, self._world
        if operation.kind == "DELETE_BACKUP":
            world.drop_backup(effect["backup"])
            return
        instance = world.instances.get(operation.target)
        if instance is None:
            return
        match operation.kind:
            case "CREATE" | "RESTORE_VOLUME" | "CLONE":
                self._created(instance, str(effect.get("backup", "")))
            case "UPDATE":
                self._updated(instance, effect)
            case "DELETE":
                self._deleted(instance, effect)
            case "BACKUP_VOLUME":
                self.end_backup(effect["backup"], succeeded=True)
            case _:
                self._inside(operation.kind, instance, effect)

    def _inside(self, kind: str, instance: Instance, effect: dict[str, Any]) -> None:
        """Have what changed inside an instance: a user or a database."""
        world = self._world
        match kind:
            case "CREATE_USER" | "UPDATE_USER":
                self._have_user(instance, effect)
            case "DELETE_USER":
                users = {name: user for name, user in instance.users.items() if name != effect["name"]}
                world.put(msgspec.structs.replace(instance, users=users))
            case "CREATE_DATABASE":
                database = DatabaseOf(name=effect["name"], charset=effect["charset"], collation=effect["collation"])
                databases = {**instance.databases, database.name: database}
                world.put(msgspec.structs.replace(instance, databases=databases))
            case "DELETE_DATABASE":
                databases = {name: item for name, item in instance.databases.items() if name != effect["name"]}
                world.put(msgspec.structs.replace(instance, databases=databases))
            case _:
                pass

    def _created(self, instance: Instance, backup: str) -> None:
        kept = self._world.backups.get(backup)
        if kept is not None:
            instance = msgspec.structs.replace(instance, users=kept.users, databases=kept.databases)
        addresses = addresses_of(instance, instance.shown["settings"])
        self._world.put(instance.shows(state="RUNNABLE", ipAddresses=addresses))

    def _updated(self, instance: Instance, effect: dict[str, Any]) -> None:
        if "authority" in effect:
            self._world.put(self._with_authorities(instance, effect["authority"]))
            return
        wanted: Json = {**effect["wanted"]}
        version = wanted["databaseVersion"]
        wanted["ipAddresses"] = addresses_of(instance, wanted["settings"])
        wanted["gceZone"] = wanted["settings"].get("locationPreference", {}).get("zone", wanted["gceZone"])
        if version != instance.shown["databaseVersion"]:
            wanted["databaseInstalledVersion"] = catalog.installed_version(version)
            wanted["maintenanceVersion"] = catalog.maintenance_version(version)
            wanted["upgradableDatabaseVersions"] = catalog.upgrades(version)
        self._world.put(msgspec.structs.replace(instance, shown=wanted))

    def _with_authorities(self, instance: Instance, change: str) -> Instance:
        if change == "add":
            certificate = certificate_view(self._databases.next_authority_of(instance.uid), instance.name)
            return msgspec.structs.replace(instance, next_authority=certificate)
        former = instance.shown["serverCaCert"]
        certificate = certificate_view(self._databases.authority_of(instance.uid), instance.name)
        rotated = msgspec.structs.replace(instance, next_authority={}, former_authority=former)
        return rotated.shows(serverCaCert=certificate)

    def _deleted(self, instance: Instance, effect: dict[str, Any]) -> None:
        world, now = self._world, self._world.clock.now()
        world.remove(instance.key)
        world.reserve(instance.key, now + timedelta(days=self._controls.behaviour.name_reserved_days))
        if effect["final"]:
            self.end_backup(effect["final"], succeeded=True)
        keeps = instance.shown["settings"].get("retainBackupsOnDelete", False)
        for backup in list(world.backups.values()):
            if (backup.project, backup.instance) != (instance.project, instance.name) or backup.is_gone:
                continue
            if keeps or backup.kind == "FINAL":
                world.put_backup(msgspec.structs.replace(backup, is_gone=True, gone_at=now))
            else:
                world.drop_backup(backup.key)
                self._jobs.submit(backup.key, functools.partial(self._databases.delete_snapshot, backup.key))

    def _have_user(self, instance: Instance, effect: dict[str, Any]) -> None:
        present = instance.users.get(effect["name"])
        user = present or User(name=effect["name"], kind=effect.get("type", "BUILT_IN"))
        roles = tuple(dict.fromkeys((*user.roles, *effect["roles"])))
        users = {**instance.users, user.name: msgspec.structs.replace(user, roles=roles)}
        self._world.put(msgspec.structs.replace(instance, users=users))

    def end_backup(self, key: str, *, succeeded: bool) -> None:
        """Say how a backup ended."""
        backup = self._world.backups.get(key)
        if backup is not None:
            state = "SUCCESSFUL" if succeeded else "FAILED"
            self._world.put_backup(msgspec.structs.replace(backup, state=state, ended_at=self._world.clock.now()))

    # When it did not

    def settle_failed(self) -> None:
        """Give what an operation left in a passing state the state of its failure."""
        for key, target in list(self._world.unsettled.items()):
            if self.operations.open_of(target) is not None:
                continue
            instance = self._world.instances.get(key)
            if instance is None:
                self.end_backup(key, succeeded=False)
            elif instance.state == "PENDING_CREATE":
                self._world.put(instance.shows(state="FAILED"))
            else:
                self._world.put(instance.shows(state="RUNNABLE"))

    # After a restart of the simulator

    def open_again(self) -> None:
        """Have the databases of a former process; jobs of an instance are done in order, so this comes first."""
        for instance in self._world.instances.values():
            if instance.host:
                self._jobs.submit(instance.uid, functools.partial(self._opened, instance))

    async def _opened(self, instance: Instance) -> None:
        await self._databases.create(database_of(instance))


def database_of(instance: Instance) -> Database:
    """Return an instance as its database sees it."""
    return Database(
        resource_id=instance.uid,
        # The common name of a certificate has at most 64 characters.
        identifier=instance.key[:_LONGEST_NAME],
        port=PORT,
        username=ADMINISTRATOR,
        password=instance.password,
        db_name=None,
        version=str(catalog.major(instance.shown["databaseVersion"])),
    )


def access_of(settings: Json) -> Access:
    """Return whom an instance lets in: authorized networks, and from a private network everything of this machine.

    Nobody where a login needs a client certificate, or comes through one of Google's connectors: there are none here
    ("Configure SSL/TLS certificates", "Enforce using Cloud SQL connectors").
    """
    ip = settings["ipConfiguration"]
    if ip.get("sslMode") == _CERTIFIED or ip.get("requireSsl") or settings.get("connectorEnforcement") == "REQUIRED":
        return Access(networks=(), requires_tls=True)
    networks = [network["value"] for network in ip["authorizedNetworks"]] if ip["ipv4Enabled"] else []
    if ip.get("privateNetwork") or ip.get("pscConfig", {}).get("pscEnabled"):
        networks.append(_INSIDE)
    requires_tls = ip.get("sslMode") not in {None, "ALLOW_UNENCRYPTED_AND_ENCRYPTED"}
    return Access(networks=tuple(networks), requires_tls=requires_tls)


def addresses_of(instance: Instance, settings: Json) -> list[Json]:
    """Return the addresses that an instance shows: on this machine all are the same one."""
    ip, host = settings["ipConfiguration"], instance.host
    public: list[Json] = [{"ipAddress": host, "type": "PRIMARY"}] if ip["ipv4Enabled"] else []
    private: list[Json] = [{"ipAddress": host, "type": "PRIVATE"}] if ip.get("privateNetwork") else []
    outgoing: list[Json] = [{"ipAddress": host, "type": "OUTGOING"}] if ip["ipv4Enabled"] else []
    return [*public, *outgoing, *private]


def _statements(kind: str, effect: dict[str, Any]) -> Sequence[str]:
    name, roles = str(effect["name"]), tuple(effect.get("roles", ()))
    match kind:
        case "CREATE_USER" if not effect["exists"]:
            return _creation(name, roles, effect)
        case "CREATE_USER" | "UPDATE_USER":
            password = statements.new_password(name, effect["password"]) if effect["password"] else ()
            return (*password, *statements.more_roles(name, roles))
        case "DELETE_USER":
            return statements.dropped_user(name)
        case "CREATE_DATABASE":
            return statements.made_database(name)
        case _:
            return statements.dropped_database(name)


def _creation(name: str, roles: tuple[str, ...], effect: dict[str, Any]) -> Sequence[str]:
    if effect["type"] == "BUILT_IN":
        return statements.made_user(name, effect["password"], roles)
    return statements.made_iam_user(name, effect["type"], roles)


def _sentence(operation: Operation, failure: DevcloudError) -> str:
    match operation.kind:
        case "DELETE_USER":
            return f"failed to delete user {operation.effect['name']}: . {failure}"
        case "CREATE_USER":
            return f"failed to create user {operation.effect['name']}: . {failure}"
        case "DELETE_DATABASE":
            return f"failed to delete database {operation.effect['name']}. Detail: pq: {failure}"
        case _:
            return str(failure)
