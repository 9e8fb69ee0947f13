"""Lists of an account's objects, compared with what observations saw. Memory of one process.

Impure: a search waits for the list of another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta

from providers.external.client import ExternalList
from providers.external.cloud_api.listed import Listed, tags_digest
from providers.external.observation import Predecessor
from providers.external.ownership import Owner

RECENT = timedelta(seconds=30)
"""How old a list may be that a search uses: a hundred creates at once search one list, not each its own."""


class AccountLists:
    """The lists of one kind in one account: `list` and `find_predecessors` of an Account.

    `read` yields all objects of the account, or raises a Failure. `owner_of` asks for the tags of one that a list named
    without them. What a list does not say of tags, the list or observation before it stands for.
    """

    def __init__(
        self,
        read: Callable[[], AsyncIterator[Listed]],
        owner_of: Callable[[Listed], Awaitable[Owner | None]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._owner_of = owner_of
        self._monotonic = monotonic
        self._listed: tuple[Listed, ...] = ()
        self._listed_at = float("-inf")
        self._owners: Mapping[str, Owner] = {}
        self._tags_digests: dict[str, str] = {}
        self._last_seen: dict[str, dict[str, str]] = {}
        self._searching = asyncio.Lock()

    def record_observed(self, name: str, identity: str, answer_digest: str, tags: Mapping[str, str]) -> None:
        """Record what an observation of an object saw.

        By resource: an object that two of them name was seen when both of them saw it.
        """
        self._tags_digests[name] = tags_digest(tags) or ""
        self._last_seen.setdefault(name, {})[identity] = f"{answer_digest}/{self._tags_digests[name]}"

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of an object that is gone."""
        self._last_seen.pop(name, None)

    async def list(self) -> ExternalList:
        """List the account's objects."""
        listed = tuple([member async for member in self._read()])
        known = self._tags_digests
        self._tags_digests = {member.name: member.tags_digest or known.get(member.name, "") for member in listed}
        items = {member.name: f"{member.digest}/{self._tags_digests[member.name]}" for member in listed}
        self._listed, self._listed_at = listed, self._monotonic()
        self._last_seen = {name: digests for name, digests in self._last_seen.items() if name in items}
        last_seen = {name: " ".join(sorted(set(digests.values()))) for name, digests in self._last_seen.items()}
        # A list without tags says nothing about owners: those that were known are kept.
        owners = {member.name: member.owner or self._known_owner(member) for member in listed}
        self._owners = {name: owner for name, owner in owners.items() if owner is not None}
        return ExternalList(items, complete=True, last_seen=last_seen, owners=self._owners)

    def _known_owner(self, member: Listed) -> Owner | None:
        return self._owners.get(member.name) if member.tags_digest is None else None

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the objects of the same claim under another identity; a recent list will do."""
        async with self._searching:
            if self._monotonic() - self._listed_at > RECENT.total_seconds():
                await self.list()
        predecessors = []
        for member in self._listed:
            former = member.owner if member.tags_digest is not None else await self._owner_of(member)
            if former is not None and former.precedes(owner):
                predecessors.append(Predecessor(member.name, member.incarnation, former))
        return tuple(predecessors)
