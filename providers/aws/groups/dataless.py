"""What all groups of RDS have in common: how they are called, tagged and deleted; no data, no login, no backup.

RDS names all that concerns a kind of group by one rule: CreateX, ModifyX, DeleteX and DescribeXs, which take an XName
and answer a list of Xs, each with an XName and an XArn.

Impure: it calls the SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeAlias

from apis.teardown import Policy
from providers.aws.account import AwsAccount
from providers.aws.tag_lists import tags_of
from providers.aws.tags import Tagged
from providers.external.client import Clients, ExternalList, Fence, Operation, Target
from providers.external.cloud_api.creates import created
from providers.external.cloud_api.naming import NAMING
from providers.external.cloud_api.refusals import NotThere
from providers.external.cloud_api.tags import missing_owner_tags, owner_from
from providers.external.cloud_api.without_data import WithoutData
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Phase, Present, SpecT, digest
from providers.external.ownership import Owner
from providers.external.provider import Kind
from providers.external.spec import Envelope
from runtime.errors import Transient
from runtime.objects import Object, Resource

GROUP = "aws.fairlead.dev"
Answer = Mapping[str, Any]
Tags: TypeAlias = dict[str, str]
"""The facts of a group: all of its tags."""


class Dataless(WithoutData[SpecT], Generic[SpecT]):
    """ExternalClient and Account for a kind of group in one account and region; its incarnation is its ARN.

    A kind says what people call it (`noun`), RDS's word for it as its answers write it (`word`) and as the SDK's client
    does (`call`), how an answer reads as the spec (`_projected`), and what is changed in it (`update`).
    """

    noun: ClassVar[str]
    word: ClassVar[str]
    call: ClassVar[str]

    def __init__(self, account: AwsAccount) -> None:
        self._account = account

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Create the group with its tags."""
        raise NotImplementedError

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT, Tags], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes true."""
        raise NotImplementedError

    async def whoami(self) -> str:
        """Return the account's id."""
        return await self._account.whoami()

    async def observe(self, target: Target[SpecT]) -> Present[SpecT, Tags] | Absent:
        """Read one group and its tags, which no list of groups carries."""
        try:
            return Present(await self._projected(*await self._read(target.name), target))
        except NotThere:
            return Absent()

    async def _read(self, name: str) -> tuple[Answer, Tags]:
        """Return what RDS answers about one group, and its tags. Raises NotThere."""
        action = f"look at {self.noun} {name}"
        named: dict[str, Any] = {f"{self.word}Name": name}
        answer = await self._account.call(f"describe_{self.call}s", action, **named)
        members: list[Answer] = answer.get(f"{self.word}s") or []
        if len(members) != 1:
            raise Transient(f"cannot {action}: the answer names {len(members)}")
        return members[0], await self._tagged(name, members[0][f"{self.word}Arn"]).read()

    async def owners(self, names: Iterable[str]) -> Mapping[str, Owner]:
        """Return the owners that the tags of these groups name; RDS's own groups have none."""
        owners: dict[str, Owner] = {}
        for name in names:
            with suppress(NotThere):
                owner = None if name.startswith("default.") else owner_from((await self._read(name))[1])
                owners |= {name: owner} if owner else {}
        return owners

    async def _projected(self, answer: Answer, tags: dict[str, str], target: Target[SpecT]) -> Observed[SpecT, Tags]:
        """Read an answer as the spec, and what else about the group is to be asked."""
        raise NotImplementedError

    def _observed(
        self, answer: Answer, tags: dict[str, str], spec: SpecT, at_provider: Object
    ) -> Observed[SpecT, Tags]:
        """Return a group as it was seen; it has no states of its own, and its facts are all of its tags."""
        return Observed(
            name=answer[f"{self.word}Name"],
            incarnation=answer[f"{self.word}Arn"],
            owner=owner_from(tags),
            phase=Phase.READY,
            spec=spec,
            facts=tags,
            at_provider={name: value for name, value in at_provider.items() if value},
        )

    async def list(self) -> ExternalList:
        """List all groups of the region; what no list shows of them is looked at with each, by the resync."""
        answers = self._account.pages(f"describe_{self.call}s", f"list the {self.noun}s", f"{self.word}s")
        return ExternalList({answer[f"{self.word}Name"]: digest(answer) async for answer in answers}, complete=True)

    async def _create(
        self, target: Target[SpecT], fence: Fence, tags: Mapping[str, str] | None, **parameters: Any
    ) -> None:
        """Make the group with its tags; one that is there and ours is what an interrupted create made."""
        call = self._change("create", target.name, fence, Tags=tags_of(target.owner, tags), **parameters)
        await created(call, self, target, f"{self.noun} {target.name}")

    async def _change(self, verb: str, name: str, fence: Fence, **parameters: Any) -> None:
        """Make one call that changes a group, by the verb with which RDS's name of it begins."""
        named: dict[str, Any] = {f"{self.word}Name": name}
        action = f"{verb} {self.noun} {name}"
        await self._account.call(f"{verb}_{self.call}", action, fence=fence, **named, **parameters)

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT, Tags] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Delete the group; one that an instance still uses stays until it does not."""
        del target, policy
        if observed is not None:
            with suppress(NotThere):
                await self._change("delete", observed.name, fence)
        return None

    def _tagged(self, name: str, arn: str) -> Tagged:
        return Tagged(self._account, f"{self.noun} {name}", arn)

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, Tags], fence: Fence) -> None:
        """Write our tags, and take away the one that says it was released."""
        await self._tagged(observed.name, observed.incarnation).take(target.owner, None, observed.facts, fence)

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, Tags], fence: Fence) -> None:
        """Write into a tag when it was released."""
        del target
        await self._tagged(observed.name, observed.incarnation).release(fence)

    async def _retag(self, observed: Observed[SpecT, Tags], changes: Iterable[Change], fence: Fence) -> None:
        await self._tagged(observed.name, observed.incarnation).change(changes, fence)


def invariants(target: Target[SpecT], observed: Observed[SpecT, Tags]) -> tuple[Change, ...]:
    """Return the owner's tags that are not there, or say something else."""
    return missing_owner_tags(target.owner, observed.facts)


def kind_of(
    resource: tuple[str, str], spec_type: type[Envelope], client_for: type[Dataless[SpecT]], *, projection: int
) -> Kind[SpecT, Tags]:
    """Return how a kind of group is served; `resource` is its kind and the plural of it."""

    def clients(account: AwsAccount) -> Clients[SpecT, Tags]:
        groups = client_for(account)
        return Clients(groups, groups, owners=groups)

    return Kind(
        resource=Resource(GROUP, "v1alpha1", *resource),
        spec_type=spec_type,
        projection=projection,
        naming=NAMING,
        invariants=invariants,
        clients=clients,
        stateful=False,
    )
