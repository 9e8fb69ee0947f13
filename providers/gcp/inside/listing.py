"""What databases and users ask of their account: no list shows those of all instances, one shows all operations.

The log of operations is read with each list; what was seen last of an object counts until an operation touches its
instance, or its own time to be looked at comes. Impure: it sends requests.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from providers.external.client import ExternalList, Target
from providers.external.cloud_api.inside import InsideServers
from providers.external.observation import SpecT
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount
from providers.gcp.instances.facts import Answer
from providers.gcp.instances.instance_list import read_instances
from providers.gcp.instances.states import is_at_rest
from providers.gcp.operation_list import read_operations
from providers.gcp.operations import is_look_due


class InsideAccount(InsideServers[SpecT]):
    """Account of a kind that is inside instances, and its ChangeLog."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account
        self._last_seen: dict[str, str] = {}

    async def whoami(self) -> str:
        """Return the project that the credentials reach."""
        return await self._account.whoami()

    async def list(self) -> ExternalList:
        """Read the project's operations; what is inside an instance that one touched is listed as changed.

        The list is incomplete: what it lacks is not gone.
        """
        await read_operations(self._account)
        if not self._account.instances.is_listed():
            await read_instances(self._account)
        listed = {name: self._account.log.mark(server_of(name)) for name in self._last_seen}
        return ExternalList(listed, complete=False, last_seen=dict(self._last_seen))

    def is_unchanged(self, name: str, since: datetime, now: datetime) -> bool:
        """Return whether no operation touched an object's instance since, and its own look is not due."""
        is_untouched = self._account.log.is_untouched(server_of(name), since)
        return is_untouched and not is_look_due(name, since, now, len(self._last_seen))

    def record_observed(self, name: str) -> None:
        """Record that an object was observed, or is as it was: what happens from here on is a change."""
        self._last_seen[name] = self._account.log.mark(server_of(name))

    def forget(self, name: str) -> None:
        """Forget an object that is not there."""
        self._last_seen.pop(name, None)

    def resting_instance(self, name: str, created: str) -> Answer | None:
        """Return the instance of an object as the project's last list showed it.

        None where it is another one than that of a creation time, does not serve, or has to be asked.
        """
        answer = self._account.instances.of(server_of(name))
        is_same = answer is not None and is_at_rest(answer) and str(answer.get("createTime", "")) == created
        return answer if is_same else None


async def proven_owner(account: GcpAccount, kind: str, target: Target[Any]) -> Owner | None:
    """Return the owner of what turned up after a create without an answer, where operations prove that this made it."""
    if target.unanswered is None:
        return None
    await read_operations(account)
    return target.owner if account.log.is_made_by_us(kind, target.name, target.unanswered) else None


def server_of(name: str) -> str:
    """Return the instance of what is called `<instance>/<name>`."""
    return name.partition("/")[0]
