"""Flexible servers through one subscription: observed, created, changed, deleted. Impure: it calls the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from apis.names import EXTERNAL_NAME
from apis.teardown import Policy
from providers.azure.activity import is_deleted
from providers.azure.arm import Answer, AzureAccount
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import NAMESPACE, server_in, server_of_id
from providers.azure.operations import ArmOperations, operation_of
from providers.azure.restarts import waits_for_restart
from providers.azure.servers import changes, create, restores, roles, translate
from providers.azure.servers.facts import DEFAULT_DATABASE, Facts
from providers.azure.servers.logins import ServerLogins
from providers.azure.servers.server_list import ServerList, decoded_answer, encoded_answer
from providers.external.client import Clients, Fence, NotCreated, Operation, Target
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.external.cloud_api.tags import RELEASED, released_tag, with_owner
from providers.external.credential import Credential
from providers.external.observation import RESTART, Absent, Change, Observed, Phase, Present
from providers.external.reachability import Reachability
from providers.external.sql.alternating import is_of_roles
from runtime import kubectl
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

Seen = Observed[FlexibleServerParameters, Facts]
Where = Target[FlexibleServerParameters]
_TYPE = f"{NAMESPACE}/flexibleServers"
_TAKEN = "AlreadyExists"  # a reason of checkNameAvailability


class FlexibleServers:
    """ExternalClient and Listed of servers; what it observes it records in `servers`, and in `reachability`."""

    def __init__(self, account: AzureAccount, servers: ServerList, reachability: Reachability) -> None:
        self._account = account
        self._servers = servers
        self._reachability = reachability
        self.logins = ServerLogins(account.awaited, self._patch, reachability)

    async def observe(self, target: Where) -> Present[FlexibleServerParameters, Facts] | Absent:
        """Observe one server."""
        try:
            answer = await self._account.send("GET", self._path(target.name), f"look at server {target.name}")
        except NotThere:
            await self._prove_absent(target)
            self._servers.record_absent(target.name)
            return Absent(is_deleted=await is_deleted(self._account, self._path(target.name), target))
        observed = await self._observed(target, answer.body)
        return Present(replace(observed, answer=encoded_answer(answer.body)))

    async def observe_listed(self, target: Where, answer: bytes) -> Present[FlexibleServerParameters, Facts]:
        """Observe a server by what a list or a look answered about it."""
        return Present(await self._observed(target, decoded_answer(answer)))

    async def _observed(self, target: Where, answer: Mapping[str, Any]) -> Seen:
        seen = translate.observed(answer, target, self._account.ca)
        self._servers.record_observed(target.name, target.owner.identity, answer)
        self._account.database_ids.record_endpoint(seen.endpoint, str(server_in(target.name)).lower())
        if not seen.usable:
            # It answers nobody while it is worked on, and may be reached right afterwards.
            self._reachability.forget(replace(seen.endpoint, database=DEFAULT_DATABASE))
        seen = await self._with_restarts(target, seen)
        if roles.alternates(target):
            return await self.logins.roles.observed(target, seen)
        self._account.awaited.record_none(server_in(target.name))
        return seen

    async def _with_restarts(self, target: Where, seen: Seen) -> Seen:
        """Return a server with what waits for its restart; that of a new one waits until all is set."""
        server, restarts = server_in(target.name), self._account.restarts
        if seen.phase is not Phase.READY or not target.owner.owns(seen.owner) or target.leaving:
            return seen
        restarts.record_ready(server)
        if restarts.is_none_waiting(server) or restarts.is_being_set(server):
            return seen
        try:
            path, action = self._account.server(server, "configurations"), f"list the configurations of {server}"
            configurations = [entry async for entry in self._account.pages(path, action)]
        except Failure:
            return replace(seen, incomplete=True)
        waiting = tuple(str(entry.get("name")) for entry in configurations if waits_for_restart(entry))
        restarts.record_waiting(server, waiting)
        facts = replace(seen.facts, restart_for=waiting, is_new=restarts.is_new(server))
        return replace(seen, facts=facts)

    def _path(self, name: str) -> str:
        server = server_in(name)
        if not server.name:
            text = f"{name} is no external name of a server; write <resource group>/<server>"
            raise Terminal("InvalidValue", text)
        return self._account.server(server)

    async def _prove_absent(self, target: Where) -> None:
        """Believe that what was there is gone when the right subscription has it in no other resource group either.

        Names of servers are one for all of Azure, and a server may be moved between resource groups.

        Raises:
            Terminal: `AccountChanged`.
            Blocked: `DatabaseRenamed`: it lives in another resource group.
        """
        if not target.incarnation:
            return
        await self._account.whoami()
        name = server_in(target.name).name
        async for answer in self._account.pages(self._account.servers, f"look for server {name}"):
            known = server_of_id(str(answer.get("id", "")))
            if known is None or known[1].name.lower() != name.lower():
                continue
            if str(known[1]) == target.name.lower():
                raise Transient(f"server {target.name} was not found, and is listed; looking again")
            raise Blocked("DatabaseRenamed", _moved_message(target, str(known[1])))

    async def create(self, target: Where, credential: Credential, fence: Fence) -> Operation | None:
        """Create the server.

        Raises:
            Conflict: One of ours is there, of an interrupted create or of an earlier object of the claim, with a
                password of its own: by which one it lets in is decided on a look at it.
            Blocked: `NameTaken`: somebody else's server anywhere in Azure has the name.
            NotCreated: One appeared in the resource group since it was looked for.
        """
        if not await self._is_free(target):
            await self._refuse_ours(target)
            raise AlreadyThere(_taken_message(target), code=_TAKEN)
        if roles.alternates(target):
            credential = Credential(target.spec.administrator_login, roles.own_password(target))
        source = await restores.source_of(self._account, target)
        path, now = self._path(target.name), self._account.now()
        body = create.body_of(target, credential, source=source, now=now)
        hide = (credential.password,)
        try:
            # A server that appeared since it was looked for is refused by both the header and createMode.
            answer = await self._account.send(
                "PUT", path, f"create server {target.name}", body=body, headers={"If-None-Match": "*"}, fence=fence,
                hide=hide,
            )  # fmt: skip
        except AlreadyThere:
            await self._refuse_ours(target)
            raise NotCreated(f"server {target.name}") from None
        self._account.restarts.record_made(server_in(target.name), target.owner.identity)
        return self._operation(answer, "Create")

    async def _is_free(self, target: Where) -> bool:
        """Return whether no server of Azure has the name ("Check Name Availability - Execute")."""
        path = f"{self._account.subscription}/providers/{NAMESPACE}/checkNameAvailability"
        body = {"name": server_in(target.name).name, "type": _TYPE}
        answer = await self._account.send("POST", path, f"ask whether the name of {target.name} is free", body=body)
        availability = answer.body if isinstance(answer.body, dict) else {}
        if availability.get("nameAvailable") is True:
            return True
        if str(availability.get("reason") or "").lower() == "invalid":
            raise Terminal(
                "InvalidValue", f"Azure takes no server of the name {target.name}: {availability.get('message')}"
            )
        return False

    async def _refuse_ours(self, target: Where) -> None:
        observation = await self.observe(replace(target, incarnation=""))
        if isinstance(observation, Present) and target.owner.owns(observation.observed.owner):
            raise Conflict(f"server {target.name} is there already; looking again")

    async def update(
        self, target: Where, observed: Seen, changed: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes: a restart; or those of roles by SQL, then all the rest by one PATCH of what changed."""
        if any(change.path == RESTART for change in changed):
            path, action = f"{self._path(observed.name)}/restart", f"restart server {observed.name}"
            return self._operation(await self._account.send("POST", path, action, fence=fence), "Update")
        if any(is_of_roles(change) for change in changed):
            await self.logins.roles.put_in_order(target, observed, fence)
        body = changes.request(target.spec, observed, changed)
        hide: tuple[str, ...] = ()
        if any(roles.sets_administrator(change) for change in changed):
            password = roles.own_password(target)
            body, hide = changes.with_password(body or {}, password), (password,)
        return None if body is None else await self._patch(observed.name, body, fence, hide)

    async def _patch(
        self, name: str, body: dict[str, Any], fence: Fence, hide: tuple[str, ...] = ()
    ) -> Operation | None:
        answer = await self._account.send(
            "PATCH", self._path(name), f"change server {name}", body=body, fence=fence, hide=hide
        )
        return self._operation(answer, "Update")

    def _operation(self, answer: Answer, kind: str) -> Operation | None:
        return operation_of(answer, kind, self._account.endpoint)

    async def adopt(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        """Write our tags onto a server that a person named, and take away the one that says it was released."""
        tags = changes.merged_tags(observed.facts.tags, with_owner(target.spec.tags, target.owner), (RELEASED,))
        return await self._patch(observed.name, {"tags": tags}, fence)

    async def release(self, target: Where, observed: Seen, fence: Fence) -> Operation | None:
        """Write into its tags when the server was released, in Unix time in seconds."""
        del target
        tags = changes.merged_tags(observed.facts.tags, released_tag(self._account.now()))
        return await self._patch(observed.name, {"tags": tags}, fence)

    async def delete(self, target: Where, observed: Seen | None, policy: Policy, fence: Fence) -> Operation | None:
        """Delete the server with all that is in it; Azure keeps its backups for five days.

        Raises:
            Blocked: `BackupImpossible` under Snapshot, `DeleteBlocked` by a lock of the resource.
        """
        del target
        if observed is None:
            return None
        if policy is Policy.SNAPSHOT:
            raise Blocked("BackupImpossible", _no_snapshot_message(observed.name))
        with suppress(NotThere):
            path, action = self._path(observed.name), f"delete server {observed.name}"
            return self._operation(await self._account.send("DELETE", path, action, fence=fence), "Delete")
        return None


def clients(account: AzureAccount) -> Clients[FlexibleServerParameters, Facts]:
    """Return what serves servers; Azure takes no backup that outlives its server, so there are no Backups."""
    listed = ServerList(account)
    servers = FlexibleServers(account, listed, Reachability(account.database_ids.try_login))
    logins = servers.logins
    return Clients(servers, listed, logins, None, ArmOperations(account), logins.try_login, servers)


def _moved_message(target: Where, now: str) -> str:
    command = kubectl.annotate(target.address, EXTERNAL_NAME, now, overwrites=True)
    return (
        f"server {target.name} was moved and is {now} now; nothing is changed or let go. Move it back; or, to go on"
        f" with it there: {command}"
    )


def _taken_message(target: Where) -> str:
    return (
        f"the name {server_in(target.name).name} belongs to another server of Azure, where names are one for all"
        " subscriptions, or to one that was dropped a moment ago; choose another namePrefix in the ProviderConfig, or"
        " another name of the claim"
    )


def _no_snapshot_message(name: str) -> str:
    return (
        f"Azure keeps no backup of server {name} beyond five days after its deletion; dump the data and choose"
        " deletionPolicy Delete, or Orphan to keep the server"
    )
