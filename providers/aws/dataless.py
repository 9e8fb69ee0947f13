"""What all groups of RDS have in common: no data, no login, no backup; tags by their ARN."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, NoReturn

from providers.aws.account import AwsAccount
from providers.aws.errors import AlreadyThere
from providers.aws.names import RELEASED, decoded_tags, encoded_tags, owner_tags
from providers.cloud import Credential, Endpoint, Fence, Target
from providers.identity import Owner
from providers.managed import Absent, Change, Found, Observed, Present, SpecT
from providers.passwords import Login
from providers.plan import Policy
from providers.reading import Operation
from runtime.errors import Transient
from runtime.objects import Resource

GROUP = "aws.fairlead.dev"
CONFIGS = Resource(GROUP, "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
POLICIES = frozenset({Policy.ORPHAN, Policy.SNAPSHOT, Policy.DELETE})
TAGS = "tags."


class Dataless(Generic[SpecT]):
    """The part of providers.cloud.Cloud that is the same for each group; its incarnation is its ARN."""

    noun: ClassVar[str]

    def __init__(self, account: AwsAccount) -> None:
        self._account = account

    async def whoami(self) -> str:
        """Return the account's id."""
        return await self._account.whoami()

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """Return nothing: a group without data is made anew, whoever had one before."""
        del owner
        return ()

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Write our tags, and take away the one that says it was let go."""
        await self._tag(observed, owner_tags(target.owner), fence)
        await self._account.call(
            "remove_tags_from_resource",
            f"take over {self.noun} {observed.name}",
            fence=fence,
            ResourceName=observed.incarnation,
            TagKeys=[RELEASED],
        )

    async def release(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Say in a tag when it was let go."""
        del target
        await self._tag(observed, {RELEASED: str(int(time.time()))}, fence)

    async def set_password(
        self, target: Target[SpecT], observed: Observed[SpecT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Refuse: nobody logs in to a group."""
        del target, observed, credential, fence
        self._has_none()

    async def login(self, target: Target[SpecT], credential: Credential) -> Login:
        """Refuse: nobody logs in to a group."""
        del target, credential
        self._has_none()

    async def disable(self, target: Target[SpecT], username: str, fence: Fence) -> None:
        """Refuse: nobody logs in to a group."""
        del target, username, fence
        self._has_none()

    async def backup_of(self, target: Target[SpecT]) -> str:
        """Return that there is none."""
        del target
        return ""

    async def poll(self, operation: Operation) -> bool:
        """Tell that it has ended: what changes a group has happened when it is answered."""
        del operation
        return True

    def endpoint(self, target: Target[SpecT]) -> Endpoint:
        """Refuse: nobody connects to a group."""
        del target
        self._has_none()

    def objection(self, spec: SpecT) -> tuple[str, str] | None:
        """Return nothing: the limits are those of instances."""
        del spec
        return None

    def advice(self) -> str:
        """Return nothing; what is to be said of an account is said by its instances."""
        return ""

    def _has_none(self) -> NoReturn:
        raise TypeError(f"a {self.noun} has no login; only a stateful kind is asked for one")

    async def _tags_of(self, arn: str, name: str) -> dict[str, str]:
        answer = await self._account.call(
            "list_tags_for_resource", f"read the tags of {self.noun} {name}", ResourceName=arn
        )
        if answer.get("TagList") is None:
            raise Transient(f"RDS does not say which tags {self.noun} {name} has")
        return decoded_tags(answer["TagList"])

    def _one(self, answer: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
        """Return the one member that was asked for by its name."""
        found: list[Mapping[str, Any]] = answer.get(key) or []
        if len(found) != 1:
            raise Transient(f"cannot look at {self.noun} {name}: the answer names {len(found)}")
        return found[0]

    async def _tag(self, observed: Observed[SpecT], tags: dict[str, str], fence: Fence) -> None:
        await self._account.call(
            "add_tags_to_resource",
            f"tag {self.noun} {observed.name}",
            fence=fence,
            ResourceName=observed.incarnation,
            Tags=encoded_tags(tags),
        )

    async def _retag(self, observed: Observed[SpecT], changes: Iterable[Change], fence: Fence) -> None:
        wanted = {
            change.path.removeprefix(TAGS): str(change.want) for change in changes if change.path.startswith(TAGS)
        }
        if wanted:
            await self._tag(observed, wanted, fence)

    def _ours_or_raise(self, target: Target[SpecT], seen: Present[SpecT] | Absent, error: AlreadyThere) -> None:
        """Let a create pass that met what an earlier create of ours left; anybody else's is a conflict."""
        if not isinstance(seen, Present) or not target.owner.owns(seen.observed.owner):
            raise error


def guarded(target: Target[SpecT], seen: Observed[SpecT]) -> tuple[Change, ...]:
    """Return the owner's tags that are not there, or say something else."""
    found: dict[str, str] = seen.facts
    return tuple(
        Change(TAGS + key, value, found.get(key))
        for key, value in owner_tags(target.owner).items()
        if found.get(key) != value
    )
