"""The servers of one subscription: their list, and what it is compared with. Impure: it calls the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from providers.azure.arm import AzureAccount
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import lowercase_tags, owner_in, server_of_id
from providers.azure.servers.refusal import refusal
from providers.azure.servers.translate import incarnation_of, stable, state_of
from providers.external.client import ExternalList
from providers.external.cloud_api.listed import ListedObject, ListedObjects, tags_digest, tags_kept
from providers.external.cloud_api.lists import AccountLists
from providers.external.observation import Predecessor, digest
from providers.external.ownership import Owner
from runtime.errors import Transient


def digest_of(answer: Mapping[str, Any]) -> str:
    """Return what changes when anything about a server but its tags does, in whatever letter case it is answered."""
    parts = {name: answer.get(name) for name in ("sku", "properties", "identity")}
    return digest([incarnation_of(answer), stable(parts)])


def owner_of(answer: Mapping[str, Any]) -> Owner | None:
    """Return whose a server is; None for nobody's."""
    return owner_in(_tags_of(answer))


def encoded_answer(answer: Mapping[str, Any]) -> bytes:
    """Return an answer about one server as it is kept."""
    return msgspec.json.encode(answer)


def decoded_answer(encoded: bytes) -> Mapping[str, Any]:
    """Return what `encoded_answer` kept."""
    answer: dict[str, Any] = msgspec.json.decode(encoded)
    return answer


def _tags_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a server; ARM leaves them out where there are none."""
    return lowercase_tags(answer.get("tags") or {})


def _listed(answer: Mapping[str, Any]) -> ListedObject:
    known, tags = server_of_id(str(answer.get("id", ""))), _tags_of(answer)
    if known is None:
        raise Transient("cannot list the servers: the list holds something else")
    owner = owner_in(tags)
    # "Servers - List By Subscription" answers whole servers; nothing of ours needs what has no owner.
    whole = encoded_answer(answer) if owner is not None else b""
    return ListedObject(
        str(known[1]),
        incarnation_of(answer),
        digest_of(answer),
        tags_digest(tags),
        owner,
        answer=whole,
        tags=tags_kept(tags, owner),
    )


class ServerList:
    """Account of servers."""

    def __init__(self, account: AzureAccount) -> None:
        self._account = account
        self._lists = AccountLists(self._read)

    async def whoami(self) -> str:
        """Return the subscription that the credentials reach."""
        return await self._account.whoami()

    def record_observed(self, name: str, identity: str, answer: Mapping[str, Any]) -> None:
        """Record what an observation of a server saw."""
        self._lists.record_observed(name, identity, digest_of(answer), _tags_of(answer))

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of a server that is gone."""
        self._lists.record_absent(name)

    async def list(self) -> ExternalList:
        """List the subscription's servers."""
        return await self._lists.list()

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the servers of the same claim under another identity; a recent list will do."""
        return await self._lists.find_predecessors(owner)

    async def _read(self) -> ListedObjects:
        self._account.spare_reads("list the servers")
        as_of, objects, states = self._account.listed.now(), [], {}
        async for answer in self._account.pages(self._account.servers, "list the servers"):
            server = _listed(answer)
            objects.append(server)
            states[server.name.lower()] = state_of(answer)
        self._account.listed.record(states, as_of)
        return ListedObjects(tuple(objects))

    def refusal(self, spec: FlexibleServerParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such a server, or Azure makes none."""
        return refusal(self._account.config.limits, spec)

    def warnings(self) -> tuple[str, ...]:
        """Return nothing: who answers is always proven."""
        return ()
