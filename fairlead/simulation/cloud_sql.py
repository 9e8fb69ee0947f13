"""The simulated Cloud SQL without sockets and threads: the provider's channel calls it, with faults on the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from devcloud.gcp.api.calls import Call
from devcloud.gcp.iam.identities import Binding, Identities
from devcloud.gcp.server import ACCOUNT, NUMBER, PROJECT, ROLE
from devcloud.gcp.simulator import Simulator
from devcloud.gcp.state.model import Instance, Project
from devcloud.simulator.clock import Clock
from devcloud.simulator.messages import Answer, Refusal, Request
from fairlead.simulation.calls import NOBODY, PROVIDER, STRANGER, Made, Weather
from fairlead.simulation.logins import Logins
from fairlead.simulation.process_life import ProcessLife, logins_of
from fairlead.simulation.virtual_time import AtOnce
from providers.external.client import Fence
from providers.external.credential import NO_ANSWER, Credential, LoginAnswer
from providers.external.database_ids import DatabaseIds
from providers.external.endpoint import Endpoint
from providers.gcp.account import GcpAccount
from providers.gcp.channel import ENDPOINT, RefusedCall, RestCall, RestChannel, _fence
from providers.gcp.credentials import Tokens
from providers.gcp.methods import Method
from providers.gcp.refusals import refusal_in
from runtime import clock
from runtime.errors import Transient

ALICE: Final = "alice@example.com"
_FIRST_ERROR: Final = 300
# A creation of four minutes takes one: it is looked at every five seconds.
_DURATIONS: Final = 0.25
_KINDS: Final = {"instances": "servers", "users": "logins"}
_VERBS: Final = {
    "insert": "create", "clone": "create", "restoreBackup": "create", "patch": "change", "update": "change",
}  # fmt: skip


@dataclass(slots=True)
class CloudSql:
    """One cloud; `emit` takes lines into the trace."""

    emit: Callable[..., None]
    chance: random.Random
    weather: Weather = field(default_factory=Weather)
    history: list[Made] = field(default_factory=list)
    simulator: Simulator = field(init=False)
    logins: Logins = field(init=False)
    _identities: Identities = field(default_factory=Identities)
    _tokens: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._identities.accounts.add(ACCOUNT)
        for member in (ACCOUNT, ALICE):
            self._identities.bind(Binding(project=PROJECT, member=member, roles=(ROLE,)))
            # The simulator reads the machine's clock for tokens.
            self._tokens[member] = self._identities.issue(member, datetime(2999, 1, 1, tzinfo=UTC))
        self.logins = Logins(self.emit)
        self.simulator = Simulator(Clock(durations=_DURATIONS, wall=clock.wall_seconds), self._identities, self.logins)
        self.simulator.world.projects[PROJECT] = Project(id=PROJECT, number=NUMBER)

    def instances(self) -> dict[str, Instance]:
        """Return what there is by name."""
        return {instance.name: instance for instance in self.simulator.world.instances.values()}

    def servers(self) -> list[str]:
        """Return the instances, sorted."""
        return sorted(self.instances())

    def left(self) -> set[str]:
        """Return all that is there: instances, and their databases and users."""
        present = self.instances()
        inside = {f"{name}/{of}" for name, instance in present.items() for of in (*instance.databases, *instance.users)}
        return {*present, *inside}

    def backups(self) -> list[str]:
        """Return the backups by their whole names, sorted."""
        return sorted(f"projects/{PROJECT}/backups/{backup.id}" for backup in self.simulator.world.backups.values())

    def claims_kept(self, namespace: str) -> list[str]:
        """Return the claims of a namespace of which an instance or a backup is there, sorted."""
        world = self.simulator.world
        kept = [backup.settings for backup in world.backups.values()] + [it.shown for it in world.instances.values()]
        labels = [shown["settings"].get("userLabels") or {} for shown in kept]
        return sorted({of["fairlead-name"] for of in labels if of.get("fairlead-namespace") == namespace})

    def runs(self, server: str) -> bool:
        """Return whether an instance is there and answers."""
        instance = self.instances().get(server)
        return instance is not None and instance.runs

    def size_of(self, server: str, database: str) -> object:
        """Return the tier of an instance."""
        del database
        return self.instances()[server].shown["settings"]["tier"]

    def number_of(self, server: str, database: str) -> int:
        """Return the number under which a database was made, 0 where it is not there."""
        return self.logins.servers[self.instances()[server].uid].databases.get(database, 0)

    def admits(self, server: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        return self.runs(server) and self.logins.admits(self.instances()[server].uid, user, password, database)

    def log_in(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Return what an instance answers to a login of the provider's."""
        instance = self.instances().get(endpoint.host.rpartition(":")[2])
        if instance is None or not instance.runs:
            return NO_ANSWER
        return self.logins.answer(instance.uid, credential, endpoint.database)

    def steer(self, name: str, **change: object) -> None:
        """Have something happen to an instance behind the API's back."""
        self.emit("steer", name, sorted(change.items()))
        if change.get("replace"):
            self.history.append(Made(clock.monotonic(), NOBODY, "servers.replace", name, "", had=True))
        self.simulator.control("POST", ("instances", PROJECT, name), change)

    async def run(self) -> None:
        """Let happen what happens by itself."""
        while True:
            await asyncio.sleep(5)
            self.simulator.tick()

    def ask(self, principal: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any) -> Answer:
        """Carry out a request of somebody; its answer is that of the wire."""
        call: Call | None = None
        try:
            call = self._call(principal, verb, path, query, body)
            had = self._has(call)
            answer = self.simulator.perform(call)
        except Refusal as refusal:
            answer = self.simulator.refused(refusal, call)
        else:
            self._note(call, had=had)
        self.emit(round(clock.monotonic(), 6), principal, verb, path, answer.status)
        return answer

    def refuse(self, code: str, status: int) -> Answer:
        """Return a refusal that the cloud gives for no reason of the call's."""
        return self.simulator.refused(Refusal(code, "It was refused.", status=status), None)

    def _call(self, principal: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any) -> Call:
        token = self._tokens[principal]
        encoded = b"" if body is None else msgspec.json.encode(body)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        request = Request(
            method=verb, path=f"/{path}", query=urlencode(list(query)), parameters=dict(query), headers=headers,
            body=encoded, address="",
        )  # fmt: skip
        call = self.simulator.admit(request)
        if not isinstance(call, Call):
            raise TypeError(call)
        return call

    def _has(self, call: Call) -> bool:
        instance = self.instances().get(call.parameters.get("instance", ""))
        if instance is None:
            return False
        place = instance.users if call.action.startswith("users.") else instance.databases
        return _name_of(call) in place

    def _note(self, call: Call, *, had: bool) -> None:
        if not call.action.endswith((".get", ".list")):
            made = ((call.body or {}).get("cloneContext") or {}).get("destinationInstanceName")
            instance = str(made or call.parameters.get("instance") or (call.body or {}).get("name", ""))
            who = PROVIDER if call.principal == ACCOUNT else STRANGER
            self.history.append(Made(clock.monotonic(), who, _action_of(call), instance, _name_of(call), had))


def _action_of(call: Call) -> str:
    kind, _, verb = call.action.partition(".")
    return f"{_KINDS.get(kind, kind)}.{_VERBS.get(verb, verb)}"


def _name_of(call: Call) -> str:
    query = dict(call.parameters)
    return str(query.get("database") or query.get("name") or (call.body or {}).get("name", ""))


class _Call(RestCall):
    """A method of the client; the same text is read into a message once, and copied."""

    def _read(self, text: str) -> Any:
        kind = self._answer.__self__
        known = _READ.get((kind, text))
        if known is None:
            if len(_READ) > _MOST_READ:
                _READ.clear()
            known = _READ[kind, text] = kind.pb(super()._read(text))
        message = type(known)()
        message.CopyFrom(known)
        return kind.wrap(message)


_MOST_READ: Final = 2000
_READ: dict[tuple[Any, str], Any] = {}


class Channel(RestChannel):
    """The provider's channel to the cloud, for one life of its process."""

    def __init__(self, cloud: CloudSql, life: ProcessLife) -> None:
        async def token() -> str:
            return "token"

        super().__init__(ENDPOINT, token)
        self._cloud = cloud
        self._life = life

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_options: Any
    ) -> RestCall:
        """Return a call of one method."""
        return _Call(self, self._methods.get(method), method, request_serializer, response_deserializer)

    async def send(self, method: Method, path: str, query: Sequence[tuple[str, str]], body: Any) -> str:
        """Make a request; return the answer's body."""
        chance, weather = self._cloud.chance, self._cloud.weather
        fence: Fence | None = _fence.get()
        if fence is not None:
            fence.check()
        await self._life.outlive()
        await asyncio.sleep(0.02 + chance.random() * 0.2)
        await self._life.outlive()
        drawn = chance.random()
        if drawn < weather.cut_before or (method.verb != "GET" and chance.random() < weather.write_cut):
            raise Transient("no answer (cut)", is_momentary=True)
        answer = self._early(method, path, drawn - weather.cut_before)
        if answer is None:
            answer = await self._carried_out(method, path, query, body)
        await asyncio.sleep(chance.random() * 0.2)
        await self._life.outlive()
        if chance.random() < weather.cut_after:
            raise Transient("no answer (cut)", is_momentary=True)
        text = answer.body.decode()
        if answer.status >= _FIRST_ERROR:
            raise RefusedCall(refusal_in(answer.status, text, {}))
        return text

    async def _carried_out(self, method: Method, path: str, query: Sequence[tuple[str, str]], body: Any) -> Answer:
        async def answered() -> Answer:
            return self._cloud.ask(ACCOUNT, method.verb, path, query, body)

        return await (answered() if method.verb == "GET" else self._life.carry_out(answered))

    def _early(self, method: Method, path: str, drawn: float) -> Answer | None:
        """Return a refusal without effect, None for none."""
        weather = self._cloud.weather
        if drawn < weather.unavailable:
            return self._cloud.refuse("backendError", 503)
        if drawn < weather.unavailable + weather.throttled:
            return self._cloud.refuse("rateLimitExceeded", 429)
        is_instance = method.verb == "GET" and "/instances/" in path and path.count("/") == 4
        if is_instance and self._cloud.chance.random() < weather.absent:
            self._cloud.emit("absent", path)
            return self._cloud.refuse("instanceDoesNotExist", 404)
        return None


class _Fixed:
    """Credentials that are never renewed."""

    token, expiry, service_account_email = "token", None, ACCOUNT


def connector(cloud: CloudSql, life: ProcessLife) -> Any:
    """Return what a provider connects by, as `providers.gcp.account.connect`."""

    @asynccontextmanager
    async def connect(
        config: Any, secrets: Mapping[str, Mapping[str, str]], recorded: Any = None, meter: Any = None
    ) -> AsyncIterator[GcpAccount]:
        del secrets, recorded
        channel = Channel(cloud, life)
        account = GcpAccount(config, channel, Tokens(_Fixed(), AtOnce()), meter)
        account.database_ids = DatabaseIds(logins_of(life, cloud.chance, cloud.log_in))
        await account.whoami()
        yield account

    return connect
