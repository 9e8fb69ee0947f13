"""The instances of one project: their list, and what it is compared with. Impure: it sends requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from providers.external.client import ExternalList
from providers.external.cloud_api.listed import tags_kept
from providers.external.observation import Predecessor, digest
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount
from providers.gcp.instances.facts import Answer, member, settings_of
from providers.gcp.instances.refusal import refusal
from providers.gcp.listed import encoded_answer
from providers.gcp.models import CloudSQLInstanceParameters
from providers.gcp.names import owner_from
from runtime import clock
from runtime.errors import Transient

_RECENT_SECONDS = 30.0
# What changes though nobody changed the instance.
_VOLATILE = frozenset({"etag", "currentDiskSize", "kind", "selfLink"})


@dataclass(frozen=True, slots=True)
class Listed:
    """One instance of a list, as far as a search needs it."""

    name: str
    incarnation: str
    owner: Owner | None


def digest_of(answer: Answer) -> str:
    """Return what changes when anything about an instance does."""
    return digest({key: value for key, value in answer.items() if key not in _VOLATILE})


def owner_in(answer: Answer) -> Owner | None:
    """Return whose an instance is by its labels."""
    return owner_from(_labels_of(answer))


def _labels_of(answer: Answer) -> dict[str, str]:
    return {str(key): str(value) for key, value in member(settings_of(answer), "userLabels").items()}


async def read_instances(account: GcpAccount) -> tuple[tuple[Answer, ...], bool]:
    """List the project's instances, and record what was answered; return them, and whether every region answered.

    Of those that bear no label of ours an answer is kept only where somebody asked for it.
    """
    instances: list[Answer] = []
    is_whole, as_of = True, account.instances.now()
    async for page in account.pages("instances.list", "list the instances"):
        is_whole = is_whole and page.is_whole
        instances += page.items
    for answer in instances:
        name = str(answer["name"])
        if owner_in(answer) is not None or account.instances.is_wanted(name):
            account.instances.record(name, encoded_answer(answer), as_of)
    account.instances.record_list(as_of)
    if is_whole:
        account.instances.record_whole_list({str(answer["name"]) for answer in instances}, as_of)
    return tuple(instances), is_whole


class InstanceList:
    """Account of instances."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account
        self._listed: tuple[Listed, ...] = ()
        self._listed_at = float("-inf")
        self._is_whole = False
        self._last_seen: dict[str, dict[str, str]] = {}
        # A hundred creates at once search one list, not each its own.
        self._searching = asyncio.Lock()

    async def whoami(self) -> str:
        """Return the project that the credentials reach."""
        return await self._account.whoami()

    def record_observed(self, name: str, identity: str, answer: Mapping[str, Any]) -> None:
        """Record what an observation of an instance saw, by resource: two that name one both saw it."""
        self._last_seen.setdefault(name, {})[identity] = digest_of(answer)

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of an instance that is gone."""
        self._last_seen.pop(name, None)

    async def list(self) -> ExternalList:
        """List the project's instances; a region that did not answer makes the list incomplete (REGION_UNREACHABLE).

        What is ours is answered whole, and stands for a look at it by itself.
        """
        items, listed, answers, tags = {}, [], {}, {}
        instances, is_whole = await read_instances(self._account)
        for answer in instances:
            name, owner = str(answer["name"]), owner_in(answer)
            items[name] = digest_of(answer)
            listed.append(Listed(name, str(answer.get("createTime", "")), owner))
            if owner is not None:
                answers[name] = encoded_answer(answer)
            tags[name] = tags_kept(_labels_of(answer), owner)
        self._listed, self._is_whole, self._listed_at = tuple(listed), is_whole, clock.monotonic()
        if is_whole:
            self._last_seen = {name: digests for name, digests in self._last_seen.items() if name in items}
        last_seen = {name: " ".join(sorted(set(digests.values()))) for name, digests in self._last_seen.items()}
        owners = {instance.name: instance.owner for instance in listed if instance.owner is not None}
        return ExternalList(items, is_whole, last_seen, owners, answers, tags)

    async def is_listed(self, name: str) -> bool:
        """Return whether the project has an instance of a name, by a whole list of this moment.

        Raises:
            Failure: The list was refused, or a region did not answer.
        """
        listing = await self.list()
        if name not in listing.items and not listing.complete:
            raise Transient("a region of the project did not answer; what it holds is not known")
        return name in listing.items

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the instances of the same claim under another identity; a recent list will do."""
        async with self._searching:
            if clock.monotonic() - self._listed_at > _RECENT_SECONDS or not self._is_whole:
                await self.list()
            if not self._is_whole:
                raise Transient("a region of the project did not answer; what it holds is not known")
            listed = self._listed
        return tuple(
            Predecessor(instance.name, instance.incarnation, instance.owner)
            for instance in listed
            if instance.owner is not None and instance.owner.precedes(owner)
        )

    def refusal(self, spec: CloudSQLInstanceParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such an instance, or no published login would open it."""
        return refusal(spec, self._account.config)

    def warnings(self) -> tuple[str, ...]:
        """Return nothing: each instance brings the authority that it is verified with."""
        return ()
