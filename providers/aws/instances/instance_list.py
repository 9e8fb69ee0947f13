"""The instances of one account and region: their list, and what it is compared with. Impure: it calls the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.aws.account import AwsAccount
from providers.aws.instances import listing
from providers.aws.instances.refusal import refusal
from providers.aws.models import RDSInstanceParameters
from providers.aws.tags import Tagged
from providers.external.client import ExternalList
from providers.external.cloud_api.listed import ListedObject, ListedObjects
from providers.external.cloud_api.lists import AccountLists
from providers.external.cloud_api.tags import owner_from
from providers.external.observation import Predecessor
from providers.external.ownership import Owner


class InstanceList:
    """Account of instances."""

    def __init__(self, account: AwsAccount) -> None:
        self._account = account
        self._lists = AccountLists(self._read, self._owner_of)

    async def whoami(self) -> str:
        """Return the account that the credentials reach."""
        return await self._account.whoami()

    def record_observed(self, name: str, identity: str, answer: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Record what an observation of an instance saw."""
        self._lists.record_observed(name, identity, listing.digest_of(answer), tags)

    def record_absent(self, name: str) -> None:
        """Forget what observations saw of an instance that is gone."""
        self._lists.record_absent(name)

    async def list(self) -> ExternalList:
        """List the region's instances; an answer without a list of tags leaves what is known of them."""
        return await self._lists.list()

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the instances of the same claim under another identity; a recent list will do."""
        return await self._lists.find_predecessors(owner)

    async def _read(self) -> ListedObjects:
        answers = self._account.pages("describe_db_instances", "list the instances", "DBInstances")
        return ListedObjects(tuple([listing.listed(answer) async for answer in answers]))

    async def _owner_of(self, instance: ListedObject) -> Owner | None:
        return owner_from(await Tagged(self._account, f"instance {instance.name}", instance.reference).read())

    def refusal(self, spec: RDSInstanceParameters) -> tuple[str, str] | None:
        """Return why the ProviderConfig does not allow such an instance."""
        return refusal(spec, self._account.config)

    def warnings(self) -> tuple[str, ...]:
        """Return what a missing authority means."""
        if self._account.ca:
            return ()
        return ("without caBundleRef connections are encrypted, and nobody checks that it is RDS who answers",)
