"""A kind of the toy cloud to which nobody logs in: shelves, kept in memory. Copied into the new cloud's folder.

Impure: it stands for calls of a cloud.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import msgspec

from apis.teardown import Policy
from providers.external.client import Clients, ExternalList, Fence, Operation, Target
from providers.external.cloud_api.naming import NAMING
from providers.external.cloud_api.without_data import WithoutData
from providers.external.credential import Credential
from providers.external.diff import REQUIRED, Compare, compared
from providers.external.observation import Absent, Change, Observed, Phase, Present, digest
from providers.external.ownership import Owner
from providers.external.provider import Kind
from providers.external.spec import Envelope
from runtime.objects import Resource


class ShelfParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a Shelf."""

    shelf_description: str = "made by Fairlead"
    book_ids: Annotated[tuple[str, ...], compared(Compare.WHOLE_SET), REQUIRED] = ()
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class ShelfSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a Shelf."""

    for_provider: ShelfParameters


Shelf: TypeAlias = Observed[ShelfParameters, None]
"""As it was observed; a shelf has no facts that `forProvider` has no field for."""


@dataclass
class Shelves(WithoutData[ShelfParameters]):
    """ExternalClient and Account of shelves; a shelf has neither login nor backup nor operation."""

    account: Any
    shelves: dict[str, tuple[str, Owner, ShelfParameters]] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def whoami(self) -> str:
        """Return the account of the connection."""
        return str(await self.account.whoami())

    async def observe(self, target: Target[ShelfParameters]) -> Present[ShelfParameters, None] | Absent:
        """Observe one shelf."""
        if target.name not in self.shelves:
            return Absent()
        incarnation, owner, spec = self.shelves[target.name]
        return Present(Observed(target.name, incarnation, owner, Phase.READY, spec, None, {}))

    async def list(self) -> ExternalList:
        """List the shelves."""
        return ExternalList({name: digest(repr(shelf)) for name, shelf in self.shelves.items()}, complete=True)

    async def create(self, target: Target[ShelfParameters], credential: Credential, fence: Fence) -> Operation | None:
        """Create a shelf."""
        del credential
        fence.check()
        self.shelves.setdefault(target.name, (f"shelf-{next(self.numbers)}", target.owner, target.spec))
        return None

    async def update(
        self,
        target: Target[ShelfParameters],
        observed: Shelf,
        changes: tuple[Change, ...],
        fence: Fence,
    ) -> Operation | None:
        """Make a shelf as it was asked for."""
        del changes
        fence.check()
        self.shelves[target.name] = (observed.incarnation, target.owner, target.spec)
        return None

    async def adopt(self, target: Target[ShelfParameters], observed: Shelf, fence: Fence) -> None:
        """Write our owner."""
        fence.check()
        self.shelves[target.name] = (observed.incarnation, target.owner, observed.spec)

    async def release(self, target: Target[ShelfParameters], observed: Shelf, fence: Fence) -> None:
        """Leave it where it is."""
        del target, observed
        fence.check()

    async def delete(
        self,
        target: Target[ShelfParameters],
        observed: Shelf | None,
        policy: Policy,
        fence: Fence,
    ) -> Operation | None:
        """Delete a shelf."""
        del policy
        fence.check()
        if observed is not None:
            del self.shelves[target.name]
        return None


def _clients(account: Any) -> Clients[ShelfParameters, None]:
    shelves = Shelves(account)
    return Clients(shelves, shelves)


def _invariants(target: Target[ShelfParameters], observed: Shelf) -> tuple[Change, ...]:
    return () if target.owner.owns(observed.owner) else (Change(("owner",), "ours", "nobody's"),)


SHELVES: Kind[ShelfParameters, None] = Kind(
    resource=Resource("toy.fairlead.dev", "v1alpha1", "Shelf", "shelves"),
    spec_type=ShelfSpec,
    projection=1,
    naming=NAMING,
    invariants=_invariants,
    clients=_clients,
    stateful=False,
)
