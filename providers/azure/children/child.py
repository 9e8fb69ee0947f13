"""What databases, firewall rules and configurations have in common: inside a server, without tags, changed by PUT.

A child takes a change only while its server is at nothing else, whoever began that: so a look at a child looks at its
server first, and has the server's state. For a child that is as it was asked for nothing is sent: there the list of the
subscription stands for that look. What its server takes along when it goes is gone with it.

Impure: it calls the SDK.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from apis.teardown import Policy
from providers.azure.activity import CORRELATION, correlation_of, proven_owner
from providers.azure.arm import AzureAccount
from providers.azure.listed import ServerState
from providers.azure.names import NO_SERVER, ServerName, child_in, server_in, server_of_id
from providers.azure.operations import operation_of
from providers.azure.servers import states
from providers.azure.servers.translate import state_of
from providers.external.client import Fence, NotCreated, Operation, Target
from providers.external.cloud_api.inside import (
    InsideServers,
    ServerStanding,
    Untagged,
    enter_server,
    prove_server,
    refuse_lost_server,
)
from providers.external.cloud_api.refusals import AlreadyThere, NotThere
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Absent, Change, Observed, Phase, Present, ServerNotOwned, SpecT
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal, Transient

Answer = Mapping[str, Any]


_OF_THE_CLOUD = frozenset({"azure_maintenance", "azure_sys", "postgres"})


class ServerChild(Untagged[SpecT], InsideServers[SpecT]):
    """ExternalClient and Account for a kind of child in one subscription.

    A kind says what people call it (`noun`), the word of its paths (`word`), the body that makes it (`_body`), how an
    answer reads as the spec (`_observed`), and by which headers a PUT makes it and changes nothing (`precondition`).
    """

    noun: ClassVar[str]
    word: ClassVar[str]
    precondition: ClassVar[Mapping[str, str]] = {"If-None-Match": "*"}

    def __init__(self, account: AzureAccount) -> None:
        self._account = account

    async def contents(self, server: str) -> Collection[str]:
        """List what is inside a server, but what Azure itself makes."""
        path, action = (
            f"{self._account.server(server_in(f'{server}/'), self.word)}",
            f"list the {self.word} of {server}",
        )
        names = {str(member.get("name", "")) async for member in self._account.pages(path, action)}
        return sorted(f"{server}/{name}" for name in names - _OF_THE_CLOUD)

    async def _body(self, target: Target[SpecT]) -> dict[str, Any]:
        """Return the properties of the PUT that makes it, or changes it."""
        raise NotImplementedError

    async def _observed(
        self, answer: Answer, server: ServerState, target: Target[SpecT]
    ) -> Observed[SpecT, None] | None:
        """Read an answer as the spec; None for what counts as not there."""
        raise NotImplementedError

    async def whoami(self) -> str:
        """Return the subscription that the credentials reach."""
        return await self._account.whoami()

    def _path(self, name: str) -> str:
        server, child = server_in(name), child_in(name)
        if server == NO_SERVER or not child:
            text = f"{name} is no external name of a {self.noun}; write <resource group>/<server>/<name>"
            raise Terminal("InvalidValue", text)
        return self._account.server(server, self.word, child)

    async def observe(self, target: Target[SpecT]) -> Present[SpecT, None] | Absent:
        """Observe one child, and its server's state.

        Raises:
            Blocked: `Replaced`: its server is another one than before, and not this namespace's. `CloudBusy`: the
                child is not there, and its server may be at work on it; or its server is stopped,
                failed or gone.
            ServerNotOwned: Its server is not this namespace's; it was not looked at.
        """
        path, name = self._path(target.name), server_in(target.name)
        listed = self._account.listed.ready(name)
        if listed is not None:
            prove_server(str(name), listed.owner, target)
            observed = await self._read(path, listed, target)
            if observed is not None and _is_at_rest(observed, target):
                return Present(observed)
        try:
            answer = await self._account.send("GET", self._account.server(name), f"look at server {name}")
        except NotThere:
            await self._prove_gone(name, target)
            return Absent()
        server = state_of(answer.body)
        phase = states.phase_of(server.state)
        standing = ServerStanding(str(name), server.owner, phase, server.state, states.remedy(server.state))
        try:
            enter_server(standing, target)
        except ServerNotOwned:
            if self._is_elsewhere(server, target):
                text = f"its server {name} is another one than before; the resource of the server says what can be done"
                raise Blocked("Replaced", text) from None
            raise
        observed = await self._read(path, server, target)
        if observed is not None:
            return Present(observed)
        if phase is Phase.BUSY:
            raise Blocked("CloudBusy", f"{self.noun} {target.name} waits: its server is {server.state}")
        return Absent()

    def _is_elsewhere(self, server: ServerState, target: Target[SpecT]) -> bool:
        """Return whether the child that was recorded is known to be in another server than this one of its name."""
        del server, target
        return False

    async def _prove_gone(self, name: ServerName, target: Target[SpecT]) -> None:
        """Return where a server that was not found is not listed either, and the child is being deleted.

        Raises:
            Transient: It is listed.
            Blocked: It is gone, and the child is not being deleted.
        """
        async for listed in self._account.pages(self._account.servers, "list the servers"):
            known = server_of_id(str(listed.get("id", "")))
            if known is None or str(known[1]).lower() == str(name).lower():
                raise Transient(f"server {name} is not found, and is listed; looking again")
        refuse_lost_server(str(name), target)

    async def _read(self, path: str, server: ServerState, target: Target[SpecT]) -> Observed[SpecT, None] | None:
        """Read the child itself; None where it is not there, or counts as such."""
        try:
            answer = await self._account.send("GET", path, f"look at {self.noun} {target.name}")
        except NotThere:
            return None
        observed = await self._observed(answer.body, server, target)
        owner = None if observed is None else await proven_owner(self._account, path, target)
        return observed if observed is None or owner is None else replace(observed, owner=owner)

    def _seen(  # noqa: PLR0913 - the parts of an observation
        self,
        target: Target[SpecT],
        server: ServerState,
        spec: SpecT,
        at_provider: dict[str, Any],
        *,
        incarnation: str,
        owner: Owner | None = None,
        restart: str = "",
        waits: str = "",
    ) -> Observed[SpecT, None]:
        """Return an observation; `waits` is for what a child that is there cannot be used yet, empty where it can."""
        state, phase = server.state, states.phase_of(server.state)
        return Observed(
            name=target.name,
            incarnation=incarnation,
            owner=owner,
            phase=phase if phase is Phase.READY and not waits else Phase.BUSY,
            spec=spec,
            facts=None,
            at_provider={name: value for name, value in at_provider.items() if value not in ("", None)},
            state=f"its server is {state}" if phase is not Phase.READY else waits,
            deadline=states.deadline(state, restored=False),
            restart=restart,
            usable=states.usable(state),
        )

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Create the child; another one of that name, which appeared meanwhile, is left alone.

        ARM's PUT changes what is there, and nothing says that it heeds the precondition: so it is looked once more.

        Raises:
            NotCreated: It appeared meanwhile.
        """
        del credential
        if isinstance(await self.observe(target), Present):
            raise NotCreated(f"{self.noun} {target.name}")
        try:
            return await self._put(target, fence, "Create", {**self.precondition, CORRELATION: correlation_of(target)})
        except AlreadyThere:
            # It would pass for ours: what was recorded before this call is all that says whose it is.
            raise NotCreated(f"{self.noun} {target.name}") from None
        except NotThere as error:
            raise Blocked("ReferenceNotFound", f"{error}; its server is gone") from None

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT, None], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make it as the spec says; it has so few fields that they go together."""
        del observed
        return await self._put(target, fence, "Update") if changes else None

    async def _put(
        self, target: Target[SpecT], fence: Fence, kind: str, headers: Mapping[str, str] | None = None
    ) -> Operation | None:
        body, action = {"properties": await self._body(target)}, f"set {self.noun} {target.name}"
        answer = await self._account.send(
            "PUT", self._path(target.name), action, body=body, headers=headers, fence=fence
        )
        return operation_of(answer, kind, self._account.endpoint)

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT, None] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Delete the child out of its server."""
        del target, policy
        if observed is None:
            return None
        with suppress(NotThere):
            path, action = self._path(observed.name), f"delete {self.noun} {observed.name}"
            answer = await self._account.send("DELETE", path, action, fence=fence)
            return operation_of(answer, "Delete", self._account.endpoint)
        return None


def _is_at_rest(observed: Observed[SpecT, None], target: Target[SpecT]) -> bool:
    """Return whether there is nothing to do about a child: it is the recorded one, and as it was asked for."""
    is_recorded = bool(target.incarnation) and observed.incarnation == target.incarnation
    return is_recorded and not target.leaving and not diff(target.spec, observed.spec)


def of_server(server: ServerState, name: str) -> str:
    """Return what identifies a child with data: its server's incarnation, as ARM gives it none of its own."""
    return f"{server.incarnation}/{name}"
