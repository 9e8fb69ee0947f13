"""The instances that users are inside of, and the authorities that verify them. Impure: it sends requests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from providers.external.client import Target
from providers.external.cloud_api.inside import ServerStanding, enter_server, refuse_lost_server
from providers.external.cloud_api.refusals import NotThere
from providers.external.observation import ServerNotOwned
from providers.gcp.account import GcpAccount
from providers.gcp.instances import states
from providers.gcp.instances.facts import Answer, member, settings_of
from providers.gcp.instances.instance_list import owner_in, read_instances
from providers.gcp.instances.states import is_at_rest
from runtime import clock
from runtime.errors import Blocked, Transient


@dataclass(frozen=True, slots=True)
class _Authorities:
    """The authorities of an instance as they were read at a time, the active one by itself."""

    active: str
    at: datetime
    pems: str


class Servers:
    """The instances that users are inside of, and their authorities; those may be replaced, and are always read."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account
        self._authorities: dict[str, _Authorities] = {}

    async def authorities(self, name: str, answer: Answer) -> str:
        """Return the authorities of an instance as PEM, by what was answered about it: raises NotThere.

        They are those that were read last, where it has the same active one and no operation touched it since.
        """
        active, began = active_authority(answer), clock.now()
        read = self._authorities.get(name)
        if read is None or read.active != active or not self._account.log.is_untouched(name, read.at):
            read = _Authorities(active, began, await self._listed(name, answer))
            self._authorities[name] = read
        return read.pems

    async def _listed(self, name: str, answer: Answer) -> str:
        listed = await self._account.call(
            "instances.listServerCas", f"read the authorities of instance {name}", instance=name
        )
        return authorities_of(answer, listed)

    async def find(self, name: str) -> Answer:
        """Return an instance as the last list has it where it serves, else as it is now: raises NotThere."""
        known = self._account.instances.of(name)
        return known if known is not None and is_at_rest(known) else await self.look(name)

    async def enter(self, name: str, target: Target[Any]) -> Answer:
        """Return the instance that an object is inside of: raises NotThere.

        Raises:
            ServerNotOwned: It is not this namespace's.
            Blocked: `Replaced`: nor is it the one in which the object was seen last. It is stopped or failed.
        """
        answer = await self.find(name)
        try:
            enter_server(standing_of(name, answer), target)
        except ServerNotOwned:
            before = _created(target)
            if before and before != str(answer.get("createTime", "")):
                text = f"its server {name} is another one than before; the resource of the server says what can be done"
                raise Blocked("Replaced", text) from None
            raise
        return answer

    async def prove_gone(self, name: str, target: Target[Any]) -> None:
        """Return where an instance is gone by a look and by a list, and the object inside is being deleted.

        Raises:
            Transient: It is there, or is not known to be gone.
            Blocked: It is gone, and the object is not being deleted.
        """
        with suppress(NotThere):
            await self.look(name)
            raise Transient(f"something of instance {name} was not found; looking again")
        instances, is_whole = await read_instances(self._account)
        if not is_whole or any(str(answer["name"]) == name for answer in instances):
            why = "is listed" if is_whole else "a region of the project did not answer"
            raise Transient(f"instance {name} is not found, and {why}; looking again")
        refuse_lost_server(name, target)

    async def look(self, name: str) -> Answer:
        """Return an instance as it is now: raises NotThere."""
        return await self._account.call("instances.get", f"look at instance {name}", instance=name)


def refuse_at_work(name: str, answer: Answer) -> None:
    """Refuse to look into an instance that the cloud is at work on: nobody can use what is inside meanwhile.

    Raises:
        Blocked: `Updating`.
    """
    if not is_at_rest(answer):
        raise Blocked("Updating", f"the cloud is at work on its server {name} ({answer.get('state', '')})")


class _Created(msgspec.Struct, frozen=True):
    """What is read here of the last look at what is inside an instance: when that was created."""

    created: str = ""


def _created(target: Target[Any]) -> str:
    """Return when the instance was created in which an object was seen last; empty where that is not on record."""
    return msgspec.json.decode(target.last_answer, type=_Created).created if target.last_answer else ""


def standing_of(name: str, answer: Answer) -> ServerStanding:
    """Return an instance as what is inside of it needs it."""
    state, activation = str(answer.get("state", "")), str(settings_of(answer).get("activationPolicy", states.ALWAYS))
    suspended = tuple(str(reason) for reason in answer.get("suspensionReason") or ())
    shown, remedy = states.shown(state, activation), states.remedy(state, activation, suspended)
    return ServerStanding(name, owner_in(answer), states.phase_of(state, activation), shown, remedy)


def active_authority(answer: Answer) -> str:
    """Return the authority that signed an instance's certificate, as PEM."""
    return str(member(answer, "serverCaCert").get("cert", "")).strip()


def authorities_of(answer: Answer, listed: Mapping[str, Any]) -> str:
    """Return the certificates of an instance's authorities in a stable order: active, former and coming ones.

    The list names them all (method `instances.listServerCas`); an answer about the instance may be older than it.
    """
    others = (str(certificate.get("cert", "")).strip() for certificate in listed.get("certs") or ())
    pems = {*others} - {""} or {active_authority(answer)} - {""}
    return "".join(f"{pem}\n" for pem in sorted(pems))
