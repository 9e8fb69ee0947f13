"""The provider of the toy service: servers with tags, logins and backups, and children that carry no tags.

Whoever reads it sees what a cloud's author writes; each breach of the contract is a subclass that leaves something out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any, TypeAlias

import msgspec

from apis.teardown import Policy
from providers.external.client import Clients, ExternalList, Fence, NotCreated, Operation, Target
from providers.external.cloud_api.inside import ServerStanding, enter_server, refuse_lost_server
from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.diff import Compare, compared
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.metering import Meter
from providers.external.observation import Absent, Change, Class, Observed, Phase, Predecessor, Present
from providers.external.ownership import Owner
from providers.external.provider import Kind, LoginRules, Naming, Provider, Rate, RecordedAccount
from providers.external.spec import DatabaseEnvelope
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient
from runtime.objects import Resource
from tests.providers.toy import CONFIGS, ToyConfig
from tests.providers.toy_service import Body, ServiceError, ToyService

SERVERS = Resource("toy.example.org", "v1", "ToyServer", "toyservers")
CHILDREN = Resource("toy.example.org", "v1", "ToyChild", "toychildren")
SERVER = "server-1"
_ABSENT = 404
_CLASSES = {"zone": Class.RESTART, "public": Class.LOCKOUT}


class ToyFields(msgspec.Struct, frozen=True):
    """`spec.forProvider`: `zone` is changed by a restart, `public` shuts people out, no `retention` loses backups."""

    size: int | None = None
    zone: str | None = None
    public: bool | None = None
    retention: int | None = None
    running: bool | None = None
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class ToyServerSpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    for_provider: ToyFields


Seen: TypeAlias = Observed[ToyFields, Body]
Where: TypeAlias = Target[ToyFields]


def failure_of(error: ServiceError) -> Failure:
    match error.status:
        case 400:
            return Terminal("InvalidValue", str(error))
        case 403:
            return Terminal("AccessDenied", str(error))
        case 409:
            return Blocked("CloudBusy", str(error))
        case 412:
            return Blocked("NameTaken", str(error))
        case 429:
            return Throttled(str(error), after=timedelta(milliseconds=1))
        case _:
            return Transient(str(error))


def tags_of(owner: Owner) -> dict[str, str]:
    return {"installation": owner.installation, "identity": owner.identity, "claim": owner.claim}


def owner_from(tags: Mapping[str, str]) -> Owner | None:
    values = [tags.get(key, "") for key in ("installation", "identity", "claim")]
    return Owner(*values) if all(values) else None


@dataclass
class ToyClient:
    """All protocols of `providers.external.client`, by calls of the service."""

    service: ToyService
    tagged: bool = True

    async def call(self, action: str, name: str = "", fence: Fence | None = None, **body: Any) -> Body:
        """Make one call; raises a Failure."""
        if fence is not None:
            fence.check()
            body |= {"turn": "" if self.tagged else SERVER}
        try:
            return await self.service.call(action, name, **body)
        except ServiceError as error:
            raise failure_of(error) from error

    def begun(self, kind: str, answer: Body) -> Operation | None:
        handle = answer.get("operation", "")
        return Operation(handle, kind) if handle else None

    async def whoami(self) -> str:
        return str((await self.call("account"))["id"])

    async def observe(self, target: Where) -> Present[ToyFields, Body] | Absent:
        if not self.tagged:
            if self.service.server_phase is None:
                refuse_lost_server(SERVER, target)
                return Absent()
            server = ServerStanding(SERVER, self.service.server_owner, self.service.server_phase, "halted", "start it")
            enter_server(server, target)
        try:
            body = await self.service.call("get", target.name)
        except ServiceError as error:
            if error.status == _ABSENT:
                return Absent()
            raise failure_of(error) from error
        seen = self.observed(body)
        # Nobody else inserts.
        is_proven = target.unanswered is not None and body["inserted"]
        return Present(replace(seen, owner=target.owner) if is_proven else seen)

    def observed(self, body: Body) -> Seen:
        fields, tags = body["fields"], body["tags"]
        people = {key: value for key, value in tags.items() if key not in {"installation", "identity", "claim"}}
        spec = msgspec.convert({"running": True, **fields, "tags": people}, ToyFields)
        phase = Phase.READY if spec.running else Phase.STOPPED
        seen = Observed(body["name"], body["id"], owner_from(tags), phase, spec, body, {"size": spec.size})
        return replace(seen, endpoint=Endpoint("toy.example.org", 5432, body["name"], VERIFIED, body["ca"]))

    async def list(self) -> ExternalList:
        return ExternalList({item["name"]: repr(item) async for item in self.pages()}, complete=True)

    async def pages(self) -> AsyncIterator[Body]:
        start: int | None = 0
        while start is not None:
            answer = await self.call("list", start=start)
            for item in answer["items"]:
                yield item
            start = answer["next"]

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        items = [(item, owner_from(item["tags"])) async for item in self.pages()]
        return tuple(
            Predecessor(item["name"], item["id"], former)
            for item, former in items
            if former is not None and former.precedes(owner)
        )

    def refusal(self, spec: ToyFields) -> tuple[str, str] | None:
        return ("InvalidValue", "no toy is larger than 100") if (spec.size or 0) > 100 else None

    def warnings(self) -> tuple[str, ...]:
        return ()

    def fields_of(self, spec: ToyFields) -> Body:
        fields = msgspec.structs.asdict(spec)
        return {name: value for name, value in fields.items() if value is not None and name != "tags"}

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        tags = {**(target.spec.tags or {}), **tags_of(target.owner)} if self.tagged else {}
        login = (credential.username, credential.password)
        fields = self.fields_of(target.spec)
        try:
            answer = await self.call("insert", target.name, fence, fields=fields, tags=tags, login=login)
        except Blocked as failure:
            if failure.reason != "NameTaken":
                raise
            raise NotCreated(target.name) from None
        return self.begun("Create", answer)

    async def update(
        self, target: Where, observed: Seen, changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        fields = {change.path[0]: change.want for change in changes if len(change.path) == 1}
        tags: dict[str, Any] = {change.path[1]: change.want for change in changes if change.path[0] == "tags"}
        fields.pop("owner", None)
        if self.tagged:
            tags |= tags_of(target.owner)
        answer = await self.call("patch", observed.name, fence, fields=fields, tags=tags)
        return self.begun("Update", answer)

    async def set(self, target: Where, observed: Seen, credential: Credential, fence: Fence) -> Operation | None:
        del target
        login, password = credential.username, credential.password
        return self.begun(
            "SetPassword", await self.call("password", observed.name, fence, login=login, password=password)
        )

    async def disable(self, target: Where, observed: Seen, username: str, fence: Fence) -> Operation | None:
        del target
        return self.begun("Disable", await self.call("drop", observed.name, fence, login=username))

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        stored = self.service.objects.get(endpoint.database)
        if stored is None:
            return NO_ANSWER
        is_right = stored.passwords.get(credential.username) == credential.password
        return LoginAnswer(Login.OK if is_right else Login.REFUSED)

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        tags = tags_of(target.owner) if self.tagged else {}
        return self.begun("Adopt", await self.call("patch", observed.name, fence, fields={}, tags=tags))

    async def release(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        del target
        return self.begun(
            "Release", await self.call("patch", observed.name, fence, fields={}, tags={"released": "yes"})
        )

    async def latest(self, target: Where) -> str:
        answer = await self.call("backups", target.name)
        return str(max(answer["backups"], default=""))

    async def restorable(self, target: Where) -> tuple[str, ...]:
        return tuple((await self.call("backups", target.name))["backups"])

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        if observed is None:
            return None
        backup = f"{target.name}-{observed.incarnation}" if policy is Policy.SNAPSHOT else ""
        return self.begun("Delete", await self.call("delete", observed.name, fence, backup=backup))

    async def poll(self, operation: Operation) -> bool:
        try:
            answer = await self.service.call("operation", operation.id)
        except ServiceError as error:
            if error.status == _ABSENT:
                return True
            raise failure_of(error) from error
        if answer["failure"]:
            raise Terminal("InvalidValue", str(answer["failure"]))
        return bool(answer["done"])


def _classified(change: Change, _observed: Seen) -> Change:
    if change.path == ("retention",) and not change.want:
        return replace(change, kind=Class.LOSS)
    return replace(change, kind=_CLASSES.get(change.path[0], Class.ONLINE), starts=change.path == ("running",))


def kind_of(*, tagged: bool, has_operations: bool) -> Kind[ToyFields, Body]:
    def clients(client: ToyClient) -> Clients[ToyFields, Body]:
        operations = client if has_operations else None
        return Clients(client, client, client, client if tagged else None, operations, client.try_login)

    def invariants(target: Where, observed: Seen) -> tuple[Change, ...]:
        return () if not tagged or target.owner.owns(observed.owner) else (Change(("owner",), "ours", "nobody's"),)

    return Kind(
        resource=SERVERS if tagged else CHILDREN,
        spec_type=ToyServerSpec,
        projection=1,
        naming=Naming(
            name=lambda _spec, identity, prefix: f"{prefix}{identity.hash}",
            hash_in=lambda _spec, name: name[-10:],
        ),
        invariants=invariants,
        clients=clients,
        classify=_classified,
        logins=LoginRules(
            names=lambda target: (f"app_{target.hash}_a", f"app_{target.hash}_b"),
            versions=lambda observed: dict(observed.facts["logins"]),
        ),
        server_of=None if tagged else lambda _target: SERVER,
        inside=not tagged,
        tagged=tagged,
        is_ownership=lambda change: change.path == ("owner",),
    )


def provider_of(client: ToyClient) -> Provider[ToyConfig]:
    """Return the toy service's provider with its servers, or with the children."""

    @asynccontextmanager
    async def connect(
        _config: ToyConfig, _secrets: Mapping[str, Mapping[str, str]], _recorded: RecordedAccount, _meter: Meter
    ) -> AsyncIterator[ToyClient]:
        yield client

    return Provider(
        cloud="toy",
        config_resource=CONFIGS,
        config_type=ToyConfig,
        secrets=lambda _config: (),
        connect=connect,
        kinds=(kind_of(tagged=client.tagged, has_operations=client.service.has_operations),),
        rate=Rate(10_000, 10_000),
    )
