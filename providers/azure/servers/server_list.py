"""The servers of one subscription: their list, and what it is compared with. Impure: it calls the SDK."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from providers.azure.arm import AzureAccount
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import owner_from, server_of_id
from providers.azure.servers.refusal import refusal
from providers.azure.servers.translate import incarnation_of, stable
from providers.external.client import ExternalList
from providers.external.observation import Predecessor, digest
from providers.external.ownership import Owner
from runtime.errors import Transient

_RECENT_SECONDS = 30.0


def digest_of(answer: Mapping[str, Any]) -> str:
    """Return what changes when anything about a server does, in whatever letter case it is answered."""
    parts = {name: answer.get(name) for name in ("sku", "properties", "tags", "identity")}
    return digest([incarnation_of(answer), stable(parts)])


def tags_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of an answer."""
    return {str(key): str(value) for key, value in (answer.get("tags") or {}).items()}


class ServerList:
    """Account of servers."""

    def __init__(self, account: AzureAccount) -> None:
        self._account = account
        self._listed: tuple[Predecessor, ...] = ()
        self._listed_at = float("-inf")
        self._last_seen: dict[str, dict[str, str]] = {}
        # A hundred creates at once search one list, not each its own.
        self._searching = asyncio.Lock()

    async def whoami(self) -> str:
        """Return the subscription that the credentials reach."""
        return await self._account.whoami()

    def record_observed(self, name: str, identity: str, answer: Mapping[str, Any]) -> None:
        """Record what an observation of a server saw, by resource: two may name one server."""
        self._last_seen.setdefault(name, {})[identity] = digest_of(answer)

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of a server that is gone."""
        self._last_seen.pop(name, None)

    async def list(self) -> ExternalList:
        """List the subscription's servers."""
        self._account.spare_reads("list the servers")
        items, owned = {}, []
        async for answer in self._account.pages(self._account.servers, "list the servers"):
            known = server_of_id(str(answer.get("id", "")))
            if known is None:
                raise Transient("cannot list the servers: the list holds something else")
            name, owner = str(known[1]), owner_from(tags_of(answer))
            items[name] = digest_of(answer)
            if owner is not None:
                owned.append(Predecessor(name, incarnation_of(answer), owner))
        self._listed, self._listed_at = tuple(owned), time.monotonic()
        self._last_seen = {name: digests for name, digests in self._last_seen.items() if name in items}
        last_seen = {name: " ".join(sorted(set(digests.values()))) for name, digests in self._last_seen.items()}
        return ExternalList(items, complete=True, last_seen=last_seen, owners={seen.name: seen.owner for seen in owned})

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the servers of the same claim under another identity; a recent list will do."""
        async with self._searching:
            if time.monotonic() - self._listed_at > _RECENT_SECONDS:
                await self.list()
        return tuple(listed for listed in self._listed if listed.owner.precedes(owner))

    def refusal(self, spec: FlexibleServerParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such a server, or Azure makes none."""
        return refusal(self._account.config.limits, spec)

    def warnings(self) -> tuple[str, ...]:
        """Return nothing: the system's roots prove who answers."""
        return ()
