"""What databases and users ask of their account: no list shows those of all instances. Impure: it sends requests."""

from __future__ import annotations

from typing import Generic

from providers.external.client import ExternalList
from providers.external.observation import Predecessor, SpecT
from providers.external.ownership import Owner
from providers.gcp.account import GcpAccount


class InsideAccount(Generic[SpecT]):
    """Account of a kind that is inside instances."""

    def __init__(self, account: GcpAccount) -> None:
        self._account = account

    async def whoami(self) -> str:
        """Return the project that the credentials reach."""
        return await self._account.whoami()

    async def list(self) -> ExternalList:
        """Return an incomplete list: each object is looked at by itself."""
        return ExternalList({}, complete=False)

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """Return none: those of another identity are inside another instance, and come with it."""
        del owner
        return ()

    def refusal(self, spec: SpecT) -> tuple[str, str] | None:
        """Return nothing: the limits are those of instances."""
        del spec
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return nothing; what is to be said of a project is said by its instances."""
        return ()
