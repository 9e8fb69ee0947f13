"""The tags of a thing in RDS: read, put, taken away, by its ARN. Impure: it calls the SDK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from providers.aws.account import AwsAccount
from providers.aws.tag_lists import decoded_tags, encoded_tags
from providers.external.client import Fence
from providers.external.cloud_api.tags import RELEASED, released_tag, tag_changes, with_owner
from providers.external.observation import Change
from providers.external.ownership import Owner
from runtime import clock
from runtime.errors import Transient


@dataclass(frozen=True, slots=True)
class Tagged:
    """A thing that carries tags; `said` is how people call it, `instance fl-orders`."""

    account: AwsAccount
    said: str
    arn: str

    async def read(self) -> dict[str, str]:
        """Return all of its tags; raises Transient when the answer holds no list of them, which is not an empty one."""
        action = f"read the tags of {self.said}"
        answer = await self.account.call("list_tags_for_resource", action, ResourceName=self.arn)
        if answer.get("TagList") is None:
            raise Transient(f"RDS does not say which tags {self.said} has")
        return decoded_tags(answer["TagList"])

    async def put(self, tags: Mapping[str, str], fence: Fence) -> None:
        """Give it these tags, and leave those that it has."""
        action, encoded = f"tag {self.said}", encoded_tags(tags)
        await self.account.call("add_tags_to_resource", action, fence=fence, ResourceName=self.arn, Tags=encoded)

    async def remove(self, keys: Iterable[str], fence: Fence) -> None:
        """Take tags away; one that it does not have is none the less gone."""
        action, named = f"untag {self.said}", sorted(keys)
        await self.account.call("remove_tags_from_resource", action, fence=fence, ResourceName=self.arn, TagKeys=named)

    async def change(self, changes: Iterable[Change], fence: Fence) -> None:
        """Make the changes that are of tags, if there are any."""
        wanted = tag_changes(changes)
        if wanted.put:
            await self.put(wanted.put, fence)
        if wanted.removed:
            await self.remove(wanted.removed, fence)

    async def take(
        self, owner: Owner, extra: Mapping[str, str] | None, present: Mapping[str, str], fence: Fence
    ) -> None:
        """Write whose it is now, with the tags of its spec; that it was released, which `present` may say, is over."""
        await self.put(with_owner(extra, owner), fence)
        if RELEASED in present:
            await self.remove((RELEASED,), fence)

    async def release(self, fence: Fence) -> None:
        """Write when it was released, in Unix time in seconds."""
        await self.put(released_tag(clock.now()), fence)
