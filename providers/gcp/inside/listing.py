"""What databases and users ask of their account: no list shows those of all instances. Impure: it sends requests."""

from __future__ import annotations

from providers.external.cloud_api.inside import InsideServers
from providers.external.observation import SpecT
from providers.gcp.account import GcpAccount


class InsideAccount(InsideServers[SpecT]):
    """Account of a kind that is inside instances."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account

    async def whoami(self) -> str:
        """Return the project that the credentials reach."""
        return await self._account.whoami()
