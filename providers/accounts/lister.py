"""Drift by list: one list of an account enqueues the keys whose fingerprint changed; nothing else is decided on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from providers.accounts.answers import Answers
from providers.accounts.connections import Accounts
from providers.accounts.limits import BY_CONFIG, Limiter, config_of
from providers.accounts.orphans import BY_EXTERNAL_NAME, external_names
from providers.external.client import ExternalList
from providers.external.provider import ConnectedAccount
from runtime.cache import Informer
from runtime.errors import Failure
from runtime.objects import Key
from runtime.results import Result

_log = structlog.get_logger("providers.accounts.lister")


class ExternalStore:
    """The last complete list of an account, with how each entry was last seen before it; pure state.

    An entry's fingerprint changes when anything did. `asOf` is the start of its request, as a number that only grows:
    an older answer never replaces a newer one.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str | None]] = {}
        self._as_of = float("-inf")

    def changed(self, listing: ExternalList, as_of: float) -> tuple[str, ...]:
        """Record a list; return the names whose resources are to be reconciled.

        Those that vanished (where the list is complete), and those that are listed otherwise than they were last seen,
        each difference once: a list that never shows what an observation does must not enqueue for ever. Where none is
        known, the list before counts for it; of the first list that is every name.
        """
        if as_of < self._as_of:
            return ()
        self._as_of = as_of
        entries = {name: (listed, listing.last_seen.get(name)) for name, listed in listing.items.items()}
        changed = [name for name, entry in entries.items() if entry[0] != entry[1] and self._known.get(name) != entry]
        gone = [name for name in self._known if name not in entries] if listing.complete else []
        self._known = entries if listing.complete else {**self._known, **entries}
        return tuple(sorted({*changed, *gone}))


class Lister:
    """Lists the account of one ProviderConfig a pass, and enqueues the resources that changed; writes nothing.

    It lists each sweep, and sooner while the cloud is at work on something that is followed by lists (`answers`).
    """

    def __init__(
        self,
        accounts: Accounts[Any, Any],
        resources: Informer,
        enqueue: Callable[[Key], None],
        answers: Answers,
        limiter: Limiter | None = None,
    ) -> None:
        self._accounts = accounts
        self._resources = resources
        self._enqueue = enqueue
        self._answers = answers
        self._limiter = limiter
        self._stores: dict[tuple[str, str], ExternalStore] = {}
        resources.store.add_index(BY_EXTERNAL_NAME, external_names)
        resources.store.add_index(BY_CONFIG, config_of)

    async def __call__(self, key: Key) -> Result:
        """List once, if any resource uses the ProviderConfig; requeue for the next list."""
        account = self._accounts.connected.get(key.name)
        users = frozenset(self._resources.store.by_index(BY_CONFIG, key.name))
        if account is None or not users:
            return Result(self._answers.sweep)
        as_of = self._answers.now()
        try:
            listing = await self._answers.list(account)
        except Failure as failure:
            _log.info("a list failed; the resync finds what it would have shown", config=key.name, error=str(failure))
            self._enqueue_pending(account)
            return Result(self._answers.sweep)
        if self._limiter is not None:
            self._limiter.listed(key.name, account.id, listing)
        store = self._stores.setdefault((key.name, account.id), ExternalStore())
        # A pass may have made a list of its own: what vanished before the first list here was never in this store.
        vanished = self._answers.of(account).take_vanished()
        for external in sorted(vanished.union(store.changed(listing, as_of))):
            # Those of another ProviderConfig of the same account are enqueued by its own lists.
            for resource in users.intersection(self._resources.store.by_index(BY_EXTERNAL_NAME, external)):
                self._enqueue(resource)
        return Result(self._answers.list_after(account))

    def _enqueue_pending(self, account: ConnectedAccount[Any, Any]) -> None:
        """Enqueue what waits for a list: each is looked at by itself until lists succeed again."""
        for resource in tuple(self._answers.of(account).pending):
            self._answers.unfollow(resource)
            self._enqueue(resource)
