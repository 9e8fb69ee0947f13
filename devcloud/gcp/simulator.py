"""A request from its token to its answer: who calls, whether they may, which method, what it says."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from devcloud.gcp import control, state_file
from devcloud.gcp.api import authorities, backups, children, instances, reading, restores
from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.messages import body_of
from devcloud.gcp.api.routes import MUTATING, called, is_of_the_api
from devcloud.gcp.api.views import certificate_view
from devcloud.gcp.behaviour import GcpBehaviour
from devcloud.gcp.effects import CloudSqlEffects, access_of, addresses_of, database_of
from devcloud.gcp.iam import tokens
from devcloud.gcp.iam.identities import Identities
from devcloud.gcp.iam.permissions import PERMISSIONS
from devcloud.gcp.refusals import (
    GcpFault,
    bad_credentials,
    envelope,
    no_credentials,
    not_authorized,
    not_simulated,
    oauth_refusal,
    over_quota,
)
from devcloud.gcp.state.model import Instance, Project
from devcloud.gcp.state.settings import Json
from devcloud.gcp.state.world import World
from devcloud.gcp.state_file import GcpSaved
from devcloud.simulator.audit import Entry, redacted
from devcloud.simulator.behaviour import TagRobot, Throttle
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.faults import Fault
from devcloud.simulator.jobs import OrderedJobs
from devcloud.simulator.messages import Answer, Refusal, Request, json_answer
from devcloud.simulator.operations import Operations
from devcloud.simulator.rest import Routes
from devcloud.simulator.state_file import EncodedOnce

Method = Callable[[Cloud, Call], Json]
METHODS: dict[str, Method] = {
    "instances.get": instances.get,
    "instances.list": instances.list_instances,
    "instances.insert": instances.insert,
    "instances.patch": instances.patch,
    "instances.update": instances.update,
    "instances.delete": instances.delete,
    "instances.restart": instances.restart,
    "instances.failover": instances.failover,
    "instances.restoreBackup": restores.restore_backup,
    "instances.clone": restores.clone,
    "instances.addServerCa": authorities.add_server_ca,
    "instances.rotateServerCa": authorities.rotate_server_ca,
    "instances.listServerCas": authorities.list_server_cas,
    "users.list": children.list_users,
    "users.get": children.get_user,
    "users.insert": children.insert_user,
    "users.update": children.update_user,
    "users.delete": children.delete_user,
    "databases.list": children.list_databases,
    "databases.get": children.get_database,
    "databases.insert": children.insert_database,
    "databases.delete": children.delete_database,
    "backupRuns.list": backups.list_runs,
    "backupRuns.get": backups.get_run,
    "backupRuns.insert": backups.insert_run,
    "backupRuns.delete": backups.delete_run,
    "backups.list": backups.list_backups,
    "backups.get": backups.get_backup,
    "backups.create": backups.create,
    "backups.delete": backups.delete_backup,
    "operations.get": reading.get_operation,
    "operations.list": reading.list_operations,
    "flags.list": reading.list_flags,
    "tiers.list": reading.list_tiers,
    "connect.get": reading.get_connect_settings,
    "projects.get": reading.get_project,
}
SECRETS = frozenset({"password", "rootPassword"})
"""The fields that the log does not keep."""
_NOWHERE = Project(id="", number="0")
_TOKENS = Routes(tokens.ROUTES)
_OAUTH = frozenset({"oauth2.token", "sts.token"})


class TokenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a token, as a call."""

    wanted: tokens.TokenRequest

    @property
    def action(self) -> str:
        """As `oauth2.token`."""
        return self.wanted.action

    @property
    def identifier(self) -> str:
        """The service account of the path."""
        return self.wanted.account


class Simulator:
    """Cloud SQL of every project: a `devcloud.simulator.service.Service`.

    Attributes:
        controls: What tests steer.
        databases: What is behind the instances.
        world: What there is.
        identities: Who can call.
    """

    name: str = "gcp"
    title: str = "simulated Cloud SQL"
    routes: tuple[tuple[str, str], ...] = (("*", "/{path:.*}"),)
    fault_type: type[Fault] = GcpFault
    saved_type: type[GcpSaved] = GcpSaved

    def __init__(self, clock: Clock, identities: Identities, databases: DataPlane) -> None:
        self.controls = Controls(clock, GcpBehaviour())
        self.databases = databases
        self.identities = identities
        self.world = World(clock)
        self._jobs = OrderedJobs("gcp")
        self._effects = CloudSqlEffects(self.world, databases, self._jobs, self.controls)
        self._running = Operations(clock, self._effects)
        self._effects.operations = self._running
        self.operations: Operations | None = self._running
        self._encoded: EncodedOnce[Instance] = EncodedOnce()

    # From a request to its answer

    def admit(self, request: Request) -> Call | TokenCall:
        """Find out what is called and by whom.

        Raises:
            Refusal: No token or a bad one, an unknown method, a body that is no message.
        """
        match = _TOKENS.match(request.method, request.path)
        if match is not None:
            project = next(iter(self.world.projects), "")
            account = match.parameters.get("account", "")
            wanted = tokens.TokenRequest(action=match.action, account=account, request=request, project=project)
            return TokenCall(wanted=wanted)
        grant = self.identities.tokens.holder(request.headers, datetime.now(UTC))
        if grant is None:
            raise bad_credentials() if "authorization" in request.headers else no_credentials()
        method = called(request.method, request.path)
        if method is None:
            if is_of_the_api(request.path):
                raise not_simulated(f"{request.method} {request.path}")
            raise Refusal("notFound", f"The requested URL {request.path} was not found on this server.")
        parameters = {**request.parameters, **method.parameters}
        project_of = self.world.project(parameters.get("project", ""))
        return Call(
            action=method.action,
            version=method.version,
            project=project_of.id if project_of is not None else parameters.get("project", ""),
            principal=grant.principal,
            parameters=parameters,
            query=request.query,
            body=body_of(method.action, request.body),
        )

    def perform(self, call: Call | TokenCall) -> Answer:
        """Carry a request out.

        Raises:
            Refusal: The service says no.
        """
        if isinstance(call, TokenCall):
            return tokens.answer(self.identities, call.wanted, datetime.now(UTC))
        self._settle()
        project = self.world.project(call.project) or _NOWHERE
        self._refuse_over_quota(call, project)
        permission = PERMISSIONS.get(call.action)
        if permission is not None and not self.identities.allows(call.principal, call.project, permission):
            raise not_authorized()
        cloud = Cloud(world=self.world, operations=self._running, behaviour=self.controls.behaviour, project=project)
        return json_answer(METHODS[call.action](cloud, call))

    def _refuse_over_quota(self, call: Call, project: Project) -> None:
        quota = self.controls.behaviour.quota
        if quota is not None:
            throttle = Throttle(read_per_s=quota.per_minute / 60, burst=quota.burst)
            # Reads and writes have one quota.
            if not self.controls.limiter.take(throttle, (call.principal, call.project), mutating=False):
                raise over_quota(project.number, quota.status)
        throttled = self.controls.behaviour.throttle
        scope = (call.project, call.principal)
        if not self.controls.limiter.take(throttled, scope, mutating=call.action in MUTATING):
            raise over_quota(project.number, 429)

    def refused(self, refusal: Refusal, call: Call | TokenCall | None) -> Answer:
        """Return the answer of a refusal."""
        if isinstance(call, TokenCall) and call.action in _OAUTH:
            return oauth_refusal(refusal)
        project = self.world.project(call.project) if isinstance(call, Call) else None
        return envelope(refusal, number=(project or _NOWHERE).number)

    def record(self, call: Call | TokenCall, outcome: str) -> None:
        """Write a call down in the log."""
        known = call if isinstance(call, Call) else Call(action=call.action)
        self.controls.audit.add(
            Entry(
                at=self.controls.clock.now(),
                account=known.project,
                region="",
                principal=known.principal or call.identifier,
                action=call.action,
                identifier=call.identifier,
                params=redacted({**known.parameters, **({"body": known.body} if known.body else {})}, SECRETS),
                request_id=known.request_id,
                outcome=outcome,
                mutating=call.action in MUTATING,
            )
        )

    # What happens by itself

    def tick(self) -> None:
        """Let happen whose time has come."""
        self._settle()
        robot = self.controls.behaviour.tag_robot
        if robot is not None and self.controls.robot_comes():
            for instance in list(self.world.instances.values()):
                self._strip(instance, robot)

    def _settle(self) -> None:
        self._running.settle()
        self._effects.settle_failed()
        now = self.controls.clock.now()
        expired = [item.key for item in self.world.backups.values() if item.expires_at and item.expires_at <= now]
        for key in expired:
            self.world.drop_backup(key)

    def _strip(self, instance: Instance, robot: TagRobot) -> None:
        settings = instance.shown["settings"]
        labels = settings.get("userLabels", {})
        kept = {key: value for key, value in labels.items() if not robot.strips(key)}
        if kept != labels:
            version = str(int(settings["settingsVersion"]) + 1)
            self.world.put(instance.shows(settings={**settings, "userLabels": kept, "settingsVersion": version}))

    def reset(self) -> None:
        """Drop all resources; projects and identities stay."""
        for instance in self.world.instances.values():
            self._reshape(instance, "dropped")
        self.world.clear()
        self._running.reset()

    def control(self, method: str, path: tuple[str, ...], content: Any) -> Any:
        """Carry out a call of the control API: see `control`."""
        self._settle()
        steering = control.Steering(
            world=self.world, identities=self.identities, operations=self._running, reshape=self._reshape
        )
        return control.answer(steering, method, path, content, datetime.now(UTC))

    def _reshape(self, instance: Instance, how: str) -> None:
        databases = self.databases

        async def job() -> None:
            match how:
                case "dropped":
                    await databases.delete(instance.uid)
                case "made":
                    address = await databases.create(database_of(instance))
                    await databases.set_access(instance.uid, access_of(instance.shown["settings"]))
                    self._show(instance, host=address.host)
                case _:
                    await databases.rotate_authority(instance.uid)
                    self._show(instance, host=instance.host)

        self._jobs.submit(instance.uid, job)

    def _show(self, instance: Instance, *, host: str) -> None:
        present = self.world.instances.get(instance.key)
        if present is None or present.uid != instance.uid:
            return
        present = msgspec.structs.replace(present, host=host, next_authority={}, former_authority={})
        certificate = certificate_view(self.databases.authority_of(instance.uid), instance.name)
        addresses = addresses_of(present, present.shown["settings"])
        self.world.put(present.shows(serverCaCert=certificate, ipAddresses=addresses))

    # What is kept beyond the process

    def versions(self) -> tuple[int, ...]:
        """Return counters that change with all that is kept."""
        return (self.world.changes, self._running.changes, self.identities.changes)

    def saved(self) -> GcpSaved:
        """Return what is kept beyond the process."""
        return state_file.saved(self.world, self.identities, self._running.saved(), self._encoded)

    def restore(self, saved: GcpSaved) -> None:
        """Have what a former process kept, and begin again the work that was under way."""
        state_file.restore(self.world, self.identities, saved)
        self._effects.open_again()
        self._running.restore(saved.operations)

    async def close(self) -> None:
        """End the jobs that are under way."""
        await self._jobs.close()
