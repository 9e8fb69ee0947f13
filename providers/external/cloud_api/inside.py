"""What is the same in all clouds of a kind whose objects are inside a server of the cloud: databases, users, rules."""

from __future__ import annotations

from typing import Any, Generic

from providers.external.client import ExternalList, Fence, Operation, Target
from providers.external.cloud_api.without_data import WithoutData
from providers.external.observation import Observed, SpecT


class InsideServers(WithoutData[SpecT]):
    """The part of an Account that such a kind need not write: its predecessors and limits are those of the servers."""

    async def list(self) -> ExternalList:
        """Return an incomplete list: the cloud lists them server by server, and the resync looks at each."""
        return ExternalList({}, complete=False)


class Untagged(Generic[SpecT]):
    """The part of an ExternalClient that a kind without tags need not write: whose it is stands in its own status."""

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Return nothing: there is no tag to write."""
        del target, observed
        fence.check()
        return None

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, Any], fence: Fence) -> Operation | None:
        """Return nothing: there is no tag to write."""
        del target, observed
        fence.check()
        return None
