"""Databases that live on without a resource, as the lists of an account show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from apis.names import EXTERNAL_NAME
from providers.external.client import Clients, Contents, ExternalList
from providers.external.ownership import Owner
from runtime.cache import Informer
from runtime.objects import Object, annotations_of, status_of

BY_EXTERNAL_NAME = "external-name"


class WithoutResource(NamedTuple):
    """What an account holds of one kind without a resource: ours with its owner by name, and the names of all else.

    `unmanaged` has servers and databases alone: settings and rules of others are nobody's to take over. `complete`:
    the list was whole. `tags` are those of either, by name.
    """

    orphans: dict[str, Owner]
    unmanaged: tuple[str, ...]
    complete: bool
    tags: Mapping[str, Mapping[str, str]] = {}


class Orphans:
    """Databases of this installation that have no resource, by ProviderConfig.

    They are in the last list of its account; what this process orphans or deletes since then is added or removed.
    """

    def __init__(self, resources: Informer, installation: str) -> None:
        self._resources = resources
        self._installation = installation
        self._orphans: dict[str, tuple[str, dict[str, Owner]]] = {}
        resources.store.add_index(BY_EXTERNAL_NAME, external_names)

    @property
    def installation(self) -> str:
        """The id of this installation."""
        return self._installation

    def listed(self, config: str, account: str, listing: ExternalList) -> None:
        """Record a list; one that is not complete removes nothing that was known."""
        orphans = self.among(listing)
        known = self._orphans.get(config)
        if not listing.complete and known is not None and known[0] == account:
            orphans = {**known[1], **orphans}
        self._orphans[config] = (account, orphans)

    def among(self, listing: ExternalList) -> dict[str, Owner]:
        """Return those of a list, by name."""
        return {name: owner for name, owner in listing.owners.items() if self._is_orphan(name, owner)}

    def is_listed(self, config: str, account: str) -> bool:
        """Return whether this account was listed for this ProviderConfig."""
        known = self._orphans.get(config)
        return known is not None and known[0] == account

    def add(self, config: str, name: str, owner: Owner) -> None:
        """Add a database that lives on without its resource, before any list shows it."""
        if config in self._orphans:
            self._orphans[config][1][name] = owner

    def remove(self, config: str, name: str) -> None:
        """Remove a database that is there no more."""
        if config in self._orphans:
            self._orphans[config][1].pop(name, None)

    def of(self, config: str) -> list[Owner]:
        """Return the owners of databases that are there and have no resource."""
        known = self._orphans.get(config)
        return [] if known is None else [owner for name, owner in known[1].items() if self._is_orphan(name, owner)]

    async def without_resource(self, clients: Clients[Any, Any], *, stateful: bool) -> WithoutResource:
        """List an account by the clients of this kind, and return what of it has no resource. Raises Failure."""
        listing = await clients.account.list()
        if clients.owners is not None:
            unknown = filter(self._has_no_resource, listing.items)
            listing = replace(listing, owners=await clients.owners.owners(unknown))
        strangers: Mapping[str, Owner | None] = (
            dict.fromkeys(listing.items.keys() - listing.owners.keys()) if stateful else {}
        )
        if clients.strangers is not None:
            strangers = await clients.strangers.strangers()
        left = {name: owner for name, owner in strangers.items() if owner and self._is_orphan(name, owner)}
        unmanaged = tuple(sorted(filter(self._has_no_resource, strangers.keys() - left.keys())))
        return WithoutResource({**self.among(listing), **left}, unmanaged, listing.complete, listing.tags)

    async def without_resource_in(self, contents: Contents | None, server: str, *, complete: bool) -> WithoutResource:
        """List what is inside a server, and return what of it has no resource. Raises Failure."""
        listed = await contents.contents(server) if contents else ()
        return WithoutResource({}, tuple(filter(self._has_no_resource, listed)), complete)

    def _has_no_resource(self, name: str) -> bool:
        return not self._resources.store.by_index(BY_EXTERNAL_NAME, name)

    def _is_orphan(self, name: str, owner: Owner) -> bool:
        ours = owner.installation == self._installation
        return ours and self._has_no_resource(name)


def external_names(obj: Object) -> tuple[str, ...]:
    """Index a resource by its database's name."""
    status: Mapping[str, object] = status_of(obj)
    name = annotations_of(obj).get(EXTERNAL_NAME) or str(status.get("externalName") or "")
    return (name,) if name else ()
