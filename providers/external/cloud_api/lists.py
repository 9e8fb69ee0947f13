"""Lists of an account's objects, compared with what observations saw. Memory of one process.

Impure: a search waits for the list of another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final

from providers.external.client import ExternalList
from providers.external.cloud_api.listed import ListedObject, ListedObjects, tags_digest
from providers.external.observation import Predecessor
from providers.external.ownership import Owner
from runtime import clock
from runtime.errors import Transient

RECENT: Final = timedelta(seconds=30)
"""How old a list may be that a search uses: a hundred creates at once search one list, not each its own."""
_NOTHING: Final = ListedObjects((), complete=False)


async def tags_are_listed(listed: ListedObject) -> Owner | None:
    """Return the owner that a list showed, for a cloud whose lists always say which tags there are."""
    return listed.owner


class AccountLists:
    """The lists of one kind in one account: `list` and `find_predecessors` of an Account.

    `read` lists all objects of the account, or raises a Failure. `owner_of` asks for the tags of one that a list named
    without them. What a list does not say of tags, the list or observation before it stands for.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[ListedObjects]],
        owner_of: Callable[[ListedObject], Awaitable[Owner | None]] = tags_are_listed,
        *,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._read = read
        self._owner_of = owner_of
        self._monotonic = monotonic
        self._listed = _NOTHING
        self._listed_at = float("-inf")
        self._owners: dict[str, Owner] = {}
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
        listed = await self._read()
        self._listed, self._listed_at = listed, self._monotonic()
        known = self._tags_digests
        digests = {member.name: member.tags_digest or known.get(member.name, "") for member in listed.objects}
        items = {member.name: f"{member.digest}/{digests[member.name]}" for member in listed.objects}
        # A list without tags says nothing about owners: those that were known are kept.
        shown = {member.name: member.owner or self._known_owner(member) for member in listed.objects}
        owners = {name: owner for name, owner in shown.items() if owner is not None}
        if listed.complete:
            self._tags_digests, self._owners = digests, owners
            self._last_seen = {name: seen for name, seen in self._last_seen.items() if name in items}
        else:
            self._tags_digests, self._owners = known | digests, self._owners | owners
        last_seen = {name: " ".join(sorted(set(seen.values()))) for name, seen in self._last_seen.items()}
        answers = {member.name: member.answer for member in listed.objects if member.answer}
        tags = {member.name: member.tags for member in listed.objects if member.tags}
        return ExternalList(items, listed.complete, last_seen, owners, answers, tags)

    def _known_owner(self, member: ListedObject) -> Owner | None:
        return self._owners.get(member.name) if member.tags_digest is None else None

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the objects of the same claim under another identity; a recent list will do.

        Raises:
            Transient: A part of the account did not answer: it may hold one.
        """
        async with self._searching:
            if not self._listed.complete or self._monotonic() - self._listed_at > RECENT.total_seconds():
                await self.list()
            listed = self._listed
        if not listed.complete:
            raise Transient("a part of the account did not answer its list; what it holds is not known")
        predecessors = []
        for member in listed.objects:
            former = member.owner if member.tags_digest is not None else await self._owner_of(member)
            if former is not None and former.precedes(owner):
                predecessors.append(Predecessor(member.name, member.incarnation, former))
        return tuple(predecessors)
