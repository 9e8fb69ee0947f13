"""What is the same in all clouds of a kind whose objects are inside a server of the cloud: databases, users, rules."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from apis.names import CONSENT
from providers.external.client import ExternalList, Fence, Operation, Target
from providers.external.cloud_api.without_data import WithoutData
from providers.external.consent import SERVER_ENTRY
from providers.external.observation import Observed, Phase, ServerNotOwned, SpecT
from providers.external.ownership import Owner
from runtime import kubectl
from runtime.errors import Blocked


def prove_server(server: str, owner: Owner | None, target: Target[Any]) -> None:
    """Prove that an object may be looked at and changed inside a server: whoever names one may not own it.

    `owner` is whose the server is by its own tags, as the cloud answered. It has to be of this installation and of the
    very namespace of the object, or the platform team consents to it by name; to another installation's nobody can.

    Raises:
        ServerNotOwned: Neither is so; nothing inside the server was read or changed.
    """
    if owner is not None and owner.installation != target.owner.installation:
        text = f"server {server} belongs to {owner}; nothing inside another installation's is read or changed"
        raise ServerNotOwned(text)
    is_ours = owner is not None and owner.namespace_uid == target.owner.namespace_uid != ""
    if is_ours or server in target.agreed_servers:
        return
    belongs = f"belongs to {owner}" if owner is not None else "carries no owner's tag"
    # Agreements that are there stay.
    entries = ",".join(f"{SERVER_ENTRY}={name}" for name in (*target.agreed_servers, server))
    command = kubectl.annotate(target.address, CONSENT, entries, overwrites=bool(target.agreed_servers))
    raise ServerNotOwned(
        f"server {server} was not made by Fairlead for this namespace: it {belongs}; nothing inside it is read or"
        f" changed. Refer to a server of this namespace; or have the platform team set allowAdoption in the"
        f" ProviderConfig and agree to this server: {command}"
    )


class ServerStanding(NamedTuple):
    """A server as its cloud shows it: whose it is, and in which state.

    `state` is the cloud's own word, `remedy` what ends it, empty where nothing of it is known.
    """

    name: str
    owner: Owner | None
    phase: Phase
    state: str
    remedy: str


def enter_server(server: ServerStanding, target: Target[Any]) -> None:
    """Return where an object may be looked at inside a server, which is this namespace's and serves, or will.

    Of one that lost its tags it is said first that nobody can use it, to whoever was inside. A recorded incarnation may
    be forged: of a server that carries another owner nothing is said.

    Raises:
        ServerNotOwned: It is not this namespace's; nothing inside the server was read or changed.
        Blocked: It is stopped or failed.
    """
    if target.incarnation and server.owner is None:
        refuse_idle_server(server)
    prove_server(server.name, server.owner, target)
    refuse_idle_server(server)


def refuse_idle_server(server: ServerStanding) -> None:
    """Refuse to look into a server that is stopped or failed: nobody can use what is inside, be it there or not.

    Raises:
        Blocked: `DatabaseStopped` or `DatabaseFailed`.
    """
    if server.phase in {Phase.STOPPED, Phase.FAILED}:
        reason = "DatabaseStopped" if server.phase is Phase.STOPPED else "DatabaseFailed"
        remedy = f"; {server.remedy}" if server.remedy else ""
        raise Blocked(reason, f"its server {server.name} is {server.state}; nobody can use it{remedy}")


def refuse_lost_server(server: str, target: Target[Any]) -> None:
    """Refuse to go on without the server, which is gone by a look and by a list: only a deletion ends with it.

    Nothing inside is said to be lost, and nothing is made anew: the resource of the server says what can be done.

    Raises:
        Blocked: `DatabaseLost` where the object was there once, else `ReferenceNotFound`.
    """
    if target.leaving:
        return
    if not target.incarnation:
        raise Blocked("ReferenceNotFound", f"server {server} is not there")
    raise Blocked(
        "DatabaseLost",
        f"its server {server} is gone, and what was inside with it; the resource of the server says what can be done",
    )


class InsideServers(WithoutData[SpecT]):
    """The part of an Account that such a kind need not write: its predecessors and limits are those of the servers."""

    async def list(self) -> ExternalList:
        """Return an incomplete list: the cloud lists them server by server, and the resync looks at each."""
        return ExternalList({}, complete=False)


class Untagged(Generic[SpecT]):
    """The part of an ExternalClient that a kind without tags need not write: whose it is stands in its own status."""

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Return nothing: there is no tag to write."""
        del target, observed
        fence.check()
        return None

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Return nothing: there is no tag to write."""
        del target, observed
        fence.check()
        return None
