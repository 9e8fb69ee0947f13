"""Drift by list: one list of an account wakes the keys whose mark changed. Nothing else is ever decided on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import structlog

from providers.accounts.connections import Accounts
from providers.accounts.limits import BY_CONFIG, Limiter, config_of
from providers.accounts.orphans import BY_EXTERNAL_NAME, external_names
from providers.external.client import Sweep
from runtime.cache import Informer
from runtime.errors import Failure
from runtime.objects import Key
from runtime.results import Result

_log = structlog.get_logger("providers.accounts.lister")


class ExternalStore:
    """What the last complete list of an account showed, and what the looks before it had seen; pure state.

    An entry's mark changes when anything did. `asOf` is the start of its request, as a number that only grows: an older
    answer never replaces a newer one.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str | None]] = {}
        self._as_of = float("-inf")

    def changed(self, sweep: Sweep, as_of: float) -> tuple[str, ...]:
        """Take a list in; return the names whose resources are to be looked at.

        Those that vanished (where the list is complete), and those that are listed otherwise than they were last looked
        at, each difference once: a list that never shows what a look does must not wake for ever. Where no look is
        known, the list before stands for it; of the first list that is every name.
        """
        if as_of < self._as_of:
            return ()
        self._as_of = as_of
        found = {name: (mark, sweep.looks.get(name)) for name, mark in sweep.items.items()}
        moved = [name for name, (mark, look) in found.items() if mark != look and self._known.get(name) != (mark, look)]
        gone = [name for name in self._known if name not in found] if sweep.complete else []
        self._known = found if sweep.complete else {**self._known, **found}
        return tuple(sorted({*moved, *gone}))


class Sweeper:
    """Lists the account of one ProviderConfig a pass, and wakes the resources that changed; writes nothing."""

    def __init__(
        self,
        accounts: Accounts[Any, Any],
        resources: Informer,
        wake: Callable[[Key], None],
        period: timedelta,
        limiter: Limiter | None = None,
    ) -> None:
        self._accounts = accounts
        self._resources = resources
        self._wake = wake
        self._period = period
        self._limiter = limiter
        self._stores: dict[tuple[str, str], ExternalStore] = {}
        resources.store.add_index(BY_EXTERNAL_NAME, external_names)
        resources.store.add_index(BY_CONFIG, config_of)

    async def __call__(self, key: Key) -> Result:
        """Sweep once, if a list could wake anything; come back after the period."""
        account = self._accounts.connected.get(key.name)
        users = frozenset(self._resources.store.by_index(BY_CONFIG, key.name))
        if account is None or not users:
            return Result(self._period)
        as_of = asyncio.get_running_loop().time()
        try:
            sweep = await account.clients.account.observe_all()
        except Failure as failure:
            _log.info("a list failed; the resync finds what it would have shown", config=key.name, error=str(failure))
            return Result(self._period)
        if self._limiter is not None:
            self._limiter.listed(key.name, account.id, sweep)
        store = self._stores.setdefault((key.name, account.id), ExternalStore())
        for external in store.changed(sweep, as_of):
            # Those of another ProviderConfig of the same account are woken by its own lists.
            for resource in users.intersection(self._resources.store.by_index(BY_EXTERNAL_NAME, external)):
                self._wake(resource)
        return Result(self._period)
