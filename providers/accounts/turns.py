"""One open operation for a server and its children: clouds refuse a second one. Rebuilt from statuses, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from apis.names import ACCOUNT
from runtime.objects import Key, Object, annotations_of, status_of
from runtime.store import Store

BY_OPERATED_SERVER = "operated server"


def operated_server(obj: Object) -> tuple[str, ...]:
    """Index a resource with an open operation by the account and the server that carries it out."""
    operation = status_of(obj).get("operation") or {}
    server = operation.get("server")
    return (_slot(annotations_of(obj).get(ACCOUNT, ""), str(server)),) if server else ()


def _slot(account: str, server: str) -> str:
    return f"{account}/{server}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A managed resource whose turn it is, as people name it."""

    kind: str
    key: Key

    def __str__(self) -> str:
        """Return kind, namespace and name."""
        return f"{self.kind} {self.key}"


@dataclass(slots=True)
class Turns:
    """Whose turn it is at each server, over all kinds of one cloud.

    An operation that is open is on its resource's status. What is being sent is remembered by the process that sends
    it: there is one, the leader.
    """

    _stores: list[tuple[str, Store]] = field(default_factory=list)
    _sending: dict[str, Holder] = field(default_factory=dict)

    def add(self, kind: str, store: Store) -> None:
        """Count in the resources of a kind."""
        store.add_index(BY_OPERATED_SERVER, operated_server)
        self._stores.append((kind, store))

    def holder(self, account: str, server: str, other_than: Holder) -> Holder | None:
        """Return another resource whose change the server carries out, None where a turn is free."""
        slot = _slot(account, server)
        holders = (holder for holder in self._holders(slot) if holder != other_than)
        return next(holders, None)

    @contextmanager
    def turn(self, account: str, server: str, resource: Holder) -> Iterator[Holder | None]:
        """Take a turn while calls are sent; yields who has it where it is not free."""
        slot, holder = _slot(account, server), self.holder(account, server, resource)
        if holder is None:
            self._sending[slot] = resource
        try:
            yield holder
        finally:
            if holder is None:
                self._sending.pop(slot, None)

    def _holders(self, slot: str) -> Iterable[Holder]:
        if slot in self._sending:
            yield self._sending[slot]
        for kind, store in self._stores:
            yield from (Holder(kind, key) for key in store.by_index(BY_OPERATED_SERVER, slot))
