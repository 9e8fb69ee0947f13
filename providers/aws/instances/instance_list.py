"""The instances of one account and region: their list, and what it is compared with. Impure: it calls the SDK."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from providers.aws.account import AwsAccount
from providers.aws.config import refusal
from providers.aws.instances import listing
from providers.aws.instances.listing import Listed
from providers.aws.models import RDSInstanceParameters
from providers.aws.names import owner_from
from providers.aws.tags import Tagged
from providers.external.client import ExternalList
from providers.external.observation import Predecessor
from providers.external.ownership import Owner

_RECENT_SECONDS = 30.0


class InstanceList:
    """Account of instances.

    An answer of RDS may lack the tags: what the list or observation before it showed of them stands for them then.
    """

    def __init__(self, account: AwsAccount) -> None:
        self._account = account
        self._listed: tuple[Listed, ...] = ()
        self._listed_at = float("-inf")
        self._owners: Mapping[str, Owner] = {}
        self._tag_digests: dict[str, str] = {}
        self._last_seen: dict[str, dict[str, str]] = {}
        # A hundred creates at once search one list, not each its own.
        self._searching = asyncio.Lock()

    async def whoami(self) -> str:
        """Return the account that the credentials reach."""
        return await self._account.whoami()

    def record_observed(self, name: str, identity: str, answer: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Record what an observation of an instance saw.

        By resource: an instance that two of them name was seen when both of them saw it.
        """
        self._tag_digests[name] = listing.digest_of_tags(tags)
        digest = f"{listing.digest_of(answer)}/{self._tag_digests[name]}"
        self._last_seen.setdefault(name, {})[identity] = digest

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of an instance that is gone."""
        self._last_seen.pop(name, None)

    async def list(self) -> ExternalList:
        """List the region's instances; an answer without a list of tags leaves what is known of them."""
        items, instances, tag_digests = {}, [], {}
        async for answer in self._account.pages("describe_db_instances", "list the instances", "DBInstances"):
            instance = listing.listed(answer)
            tag_digests[instance.name] = listing.tags_digest(answer) or self._tag_digests.get(instance.name, "")
            items[instance.name] = f"{listing.digest_of(answer)}/{tag_digests[instance.name]}"
            instances.append(instance)
        self._tag_digests, self._listed, self._listed_at = tag_digests, tuple(instances), time.monotonic()
        self._last_seen = {name: digests for name, digests in self._last_seen.items() if name in items}
        last_seen = {name: " ".join(sorted(set(digests.values()))) for name, digests in self._last_seen.items()}
        owners = {instance.name: instance.owner for instance in instances if instance.owner is not None}
        # A list without tags says nothing about owners: those that were known are kept.
        self._owners = owners | {
            instance.name: self._owners[instance.name]
            for instance in instances
            if not instance.tagged and instance.name in self._owners
        }
        answers = {instance.name: instance.answer for instance in instances if instance.answer}
        return ExternalList(items, complete=True, last_seen=last_seen, owners=self._owners, answers=answers)

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the instances of the same claim under another identity; a recent list will do."""
        async with self._searching:
            if time.monotonic() - self._listed_at > _RECENT_SECONDS:
                await self.list()
        predecessors = []
        for instance in self._listed:
            former = instance.owner if instance.tagged else await self._owner_of(instance)
            if former is not None and former.precedes(owner):
                predecessors.append(Predecessor(instance.name, instance.incarnation, former))
        return tuple(predecessors)

    async def _owner_of(self, instance: Listed) -> Owner | None:
        return owner_from(await Tagged(self._account, f"instance {instance.name}", instance.arn).read())

    def refusal(self, spec: RDSInstanceParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such an instance."""
        return refusal(
            self._account.config.limits,
            instance_class=spec.db_instance_class,
            storage_gib=max(spec.allocated_storage, spec.max_allocated_storage or 0),
            publicly_accessible=bool(spec.publicly_accessible),
        )

    def warnings(self) -> tuple[str, ...]:
        """Return what a missing authority means."""
        if self._account.ca:
            return ()
        return ("without caBundleRef connections are encrypted, and nobody checks that it is RDS who answers",)
