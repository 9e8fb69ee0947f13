"""What is there without a resource: databases that were let go and live on, as the lists of an account show them."""

from __future__ import annotations

from collections.abc import Mapping

from apis.names import EXTERNAL_NAME
from providers.external.client import Sweep
from providers.external.ownership import Owner
from runtime.cache import Informer
from runtime.objects import Object, annotations_of, status_of

BY_EXTERNAL_NAME = "external-name"


class Orphans:
    """Databases of this installation that have no resource, by ProviderConfig.

    The last list of its account found them; what this process lets go or takes away since then is added and left out.
    """

    def __init__(self, resources: Informer, installation: str) -> None:
        self._resources = resources
        self._installation = installation
        self._found: dict[str, tuple[str, dict[str, Owner]]] = {}
        resources.store.add_index(BY_EXTERNAL_NAME, external_names)

    def listed(self, config: str, account: str, sweep: Sweep) -> None:
        """Take a list in; one that is not complete takes nothing away from what was known."""
        found = {name: owner for name, owner in sweep.owners.items() if self._is_orphan(name, owner)}
        known = self._found.get(config)
        if not sweep.complete and known is not None and known[0] == account:
            found = {**known[1], **found}
        self._found[config] = (account, found)

    def is_listed(self, config: str, account: str) -> bool:
        """Tell whether this account was listed for this ProviderConfig."""
        known = self._found.get(config)
        return known is not None and known[0] == account

    def let_go(self, config: str, name: str, owner: Owner) -> None:
        """Note that a database lives on without its resource, before any list shows it."""
        if config in self._found:
            self._found[config][1][name] = owner

    def gone(self, config: str, name: str) -> None:
        """Note that a database is there no more."""
        if config in self._found:
            self._found[config][1].pop(name, None)

    def of(self, config: str) -> list[Owner]:
        """Return whose databases are there and have no resource."""
        known = self._found.get(config)
        return [] if known is None else [owner for name, owner in known[1].items() if self._is_orphan(name, owner)]

    def _is_orphan(self, name: str, owner: Owner) -> bool:
        ours = owner.installation == self._installation
        return ours and not self._resources.store.by_index(BY_EXTERNAL_NAME, name)


def external_names(obj: Object) -> tuple[str, ...]:
    """Index a resource by its database's name."""
    status: Mapping[str, object] = status_of(obj)
    name = annotations_of(obj).get(EXTERNAL_NAME) or str(status.get("externalName") or "")
    return (name,) if name else ()
