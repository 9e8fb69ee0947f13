"""A toy cloud on the frame: JSON with bearer tokens, operations, an authority and a firewall for each server."""

from __future__ import annotations

import functools
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from psycopg import sql

from devcloud.errors import DevcloudError
from devcloud.postgres.access import Access
from devcloud.postgres.instance import Flavour
from devcloud.postgres.scram import scram_verifier
from devcloud.simulator import server
from devcloud.simulator.audit import Entry, redacted
from devcloud.simulator.behaviour import Behaviour
from devcloud.simulator.clock import Clock
from devcloud.simulator.controls import Controls
from devcloud.simulator.databases import Engine
from devcloud.simulator.dataplane import Database, DataPlane, NoDatabases
from devcloud.simulator.faults import Fault
from devcloud.simulator.history import History
from devcloud.simulator.jobs import OrderedJobs
from devcloud.simulator.messages import Answer, Refusal, Request, json_answer, no_route
from devcloud.simulator.operations import InProgress, Operation, OperationError, Operations, OperationSpec
from devcloud.simulator.rest import Grant, Route, Routes, Tokens, json_object
from devcloud.simulator.service import Saved

SERVERS = "v1/projects/{project}/servers"
ROUTES = Routes(
    (
        Route("GET", SERVERS, "servers.list"),
        Route("POST", SERVERS, "servers.insert"),
        Route("GET", f"{SERVERS}/{{server}}", "servers.get"),
        Route("PATCH", f"{SERVERS}/{{server}}", "servers.patch"),
        Route("DELETE", f"{SERVERS}/{{server}}", "servers.delete"),
        Route("PUT", f"{SERVERS}/{{server}}/users/{{user}}", "users.update"),
        Route("PUT", f"{SERVERS}/{{server}}/rules/{{rule}}", "rules.update"),
        Route("GET", "v1/projects/{project}/operations/{operation}", "operations.get"),
    )
)
# Which operation an action begins, and how long that takes.
OPERATIONS = {
    "servers.insert": ("CREATE", 300.0),
    "servers.patch": ("UPDATE", 60.0),
    "servers.delete": ("DELETE", 60.0),
    "users.update": ("UPDATE_USER", 10.0),
    "rules.update": ("UPDATE_RULE", 10.0),
}


def login(role: str, verifier: str, *, options: str = "") -> str:
    """Return the statement that makes a role that logs in."""
    statement = sql.SQL(f"CREATE ROLE {{}} LOGIN {options} PASSWORD {{}}")
    return statement.format(sql.Identifier(role), sql.Literal(verifier)).as_string()


ENGINE = Engine(
    flavour=Flavour(
        superuser="toyadmin",
        statements=("CREATE ROLE toysuperuser NOLOGIN",),
        admit=lambda record: (login(record.username, record.verifier, options="CREATEDB CREATEROLE"),),
    ),
    authority="server-ca",
    authority_each=True,
)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server as the API shows it; `rules` are its firewall's."""

    name: str
    tier: str = "small"
    state: str = "CREATING"
    host: str = ""
    authority: str = ""
    rules: dict[str, str] = {}


class ToySaved(Saved, frozen=True, kw_only=True):
    """What outlives the process."""

    servers: dict[str, Server]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose caller and action are known."""

    action: str
    parameters: dict[str, Any]
    grant: Grant
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def identifier(self) -> str:
        """The server, where there is one."""
        return str(self.parameters.get("server") or self.parameters.get("name") or "")


class ToyCloud:
    """A `devcloud.simulator.service.Service` of one project."""

    name: str = "toy"
    title: str = "simulated toy cloud"
    routes: tuple[tuple[str, str], ...] = (("*", "/{path:.*}"),)
    fault_type: type[Fault] = Fault
    saved_type: type[ToySaved] = ToySaved

    def __init__(self, clock: Clock, databases: DataPlane) -> None:
        self.controls = Controls(clock, Behaviour())
        self.databases = databases
        self.tokens = Tokens()
        self.servers: dict[str, Server] = {}
        self._history: History[Server] = History()
        self._jobs = OrderedJobs("toy")
        self._running = Operations(clock, self)
        self.operations: Operations | None = self._running

    # From a request to its answer

    def admit(self, request: Request) -> Call:
        grant = self.tokens.holder(request.headers, self.controls.clock.now())
        if grant is None:
            raise Refusal("unauthenticated", "The request has no valid bearer token.", status=401)
        match = ROUTES.match(request.method, request.path)
        if match is None:
            raise Refusal("notFound", f"{request.method} {request.path} is no method.", status=404)
        return Call(match.action, {**json_object(request.body, code="invalid"), **match.parameters}, grant)

    def perform(self, call: Call) -> Answer:
        throttle = self.controls.behaviour.throttle
        if not self.controls.limiter.take(throttle, (call.grant.account, ""), mutating=call.action in OPERATIONS):
            raise Refusal("rateLimitExceeded", "Rate exceeded.", status=429)
        match call.action:
            case "servers.list":
                return json_answer({"items": self._listed()})
            case "servers.get":
                return json_answer(self._server(call.identifier))
            case "operations.get":
                operation = self._running.get(call.parameters["operation"])
                if operation is None:
                    raise Refusal("operationDoesNotExist", "The operation does not exist.", status=404)
                return json_answer(operation)
            case _:
                return json_answer(self._started(call))

    def refused(self, refusal: Refusal, call: Call | None) -> Answer:
        del call
        return json_answer({"error": {"code": refusal.code, "message": refusal.message}}, status=refusal.status or 500)

    def record(self, call: Call, outcome: str) -> None:
        self.controls.audit.add(
            Entry(
                at=self.controls.clock.now(),
                account=call.grant.account,
                region="",
                principal=call.grant.principal,
                action=call.action,
                identifier=call.identifier,
                params=redacted(call.parameters, {"password"}),
                request_id=call.request_id,
                outcome=outcome,
                mutating=call.action in OPERATIONS,
            )
        )

    def _started(self, call: Call) -> Operation:
        kind, seconds = OPERATIONS[call.action]
        if kind != "CREATE":
            self._server(call.identifier)
        elif call.identifier in self.servers:
            raise Refusal("alreadyExists", "The server exists.", status=409)
        try:
            spec = OperationSpec(kind=kind, seconds=seconds, pending_s=1.0, effect=call.parameters)
            operation = self._running.start(call.identifier, spec)
        except InProgress as error:
            raise Refusal("operationInProgress", str(error), status=409) from None
        if kind == "CREATE":
            self._keep(Server(name=call.identifier))
        return operation

    def _server(self, name: str) -> Server:
        if name not in self.servers:
            raise Refusal("serverDoesNotExist", f"The server {name} does not exist.", status=404)
        return self.servers[name]

    def _listed(self) -> list[Server]:
        moment = self.controls.clock.now() - timedelta(seconds=self.controls.behaviour.list_lag_s)
        versions = (self._history.as_of(name, moment) for name in self._history.names())
        return [shown for shown in versions if shown is not None]

    def _keep(self, shown: Server) -> None:
        self.controls.changes += 1
        self.servers[shown.name] = shown
        self._history.add(shown.name, self.controls.clock.now(), shown)

    async def _open_again(self, name: str) -> None:
        # The database has kept its own password.
        await self.databases.create(_database(name, password=""))

    # What operations do

    def begin(self, operation: Operation) -> bool:
        async def worked() -> None:
            try:
                await self._carry_out(operation)
            except DevcloudError as error:
                self._running.work_done(operation.id, OperationError(code="databaseError", message=str(error)))
                return
            self._running.work_done(operation.id)

        self._jobs.submit(operation.target, worked)
        return True

    async def _carry_out(self, operation: Operation) -> None:
        effect, target = operation.effect, operation.target
        match operation.kind:
            case "CREATE":
                address = await self.databases.create(_database(target, str(effect["password"])))
                authority = self.databases.authority_of(target).decode()
                self._keep(msgspec.structs.replace(self.servers[target], host=address.host, authority=authority))
            case "DELETE":
                await self.databases.delete(target)
            case "UPDATE_USER":
                await self.databases.execute(target, (login(effect["user"], scram_verifier(effect["password"])),))
            case "UPDATE_RULE":
                networks = {**self.servers[target].rules, effect["rule"]: effect["network"]}.values()
                await self.databases.set_access(target, Access(networks=tuple(networks)))
            case _:
                pass

    def apply(self, operation: Operation) -> None:
        shown, effect = self.servers[operation.target], operation.effect
        match operation.kind:
            case "CREATE":
                self._keep(msgspec.structs.replace(shown, state="RUNNABLE"))
            case "UPDATE":
                self._keep(msgspec.structs.replace(shown, tier=effect.get("tier", shown.tier)))
            case "UPDATE_RULE":
                self._keep(msgspec.structs.replace(shown, rules={**shown.rules, effect["rule"]: effect["network"]}))
            case "DELETE":
                del self.servers[operation.target]
                self._history.add(operation.target, self.controls.clock.now(), None)
            case _:
                pass

    # What happens by itself, what tests steer, what is kept

    def tick(self) -> None:
        self._running.settle()

    def reset(self) -> None:
        self.servers.clear()
        self._running.reset()

    def control(self, method: str, path: tuple[str, ...], content: Any) -> Any:
        match method, path:
            case "POST", ("tokens",):
                return {"token": self.tokens.issue(msgspec.convert(content, Grant))}
            case _:
                raise no_route(method, path)

    def versions(self) -> tuple[int, ...]:
        return (self._running.changes,)

    def saved(self) -> ToySaved:
        return ToySaved(now=self.controls.clock.now(), servers=self.servers, operations=self._running.saved())

    def restore(self, saved: ToySaved) -> None:
        for shown in saved.servers.values():
            self._keep(shown)
            if shown.host:
                # Before the work that operations begin again: jobs of a server are done in order.
                self._jobs.submit(shown.name, functools.partial(self._open_again, shown.name))
        self._running.restore(saved.operations)

    async def close(self) -> None:
        await self._jobs.close()


def _database(name: str, password: str) -> Database:
    return Database(
        resource_id=name,
        identifier=name,
        port=5432,
        username="boss",
        password=password,
        db_name=None,
        version="16",
    )


@dataclass(frozen=True, slots=True)
class Served:
    """A running toy: where, its cloud, who may steer it, whom its API's certificate is signed by."""

    url: str
    cloud: ToyCloud
    control_token: str = field(repr=False)
    authority: Path


@asynccontextmanager
async def serving(folder: Path, databases: DataPlane | None = None, *, speed: float = 1.0) -> AsyncIterator[Served]:
    """Serve a toy over HTTPS until the block ends; it keeps its state in the folder."""
    cloud = ToyCloud(Clock(speed=speed), databases or NoDatabases())
    options = server.Options(tls=folder, state=folder / "state.json")
    async with server.serving(cloud, options) as url:
        yield Served(url, cloud, options.control_token, folder / f"{server.AUTHORITY}.crt")
