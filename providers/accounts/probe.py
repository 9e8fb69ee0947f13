"""Whether the servers that hold databases take logins: one of each ProviderConfig is tried every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from providers.accounts.connections import Accounts
from providers.external.observation import ServerUnreachable
from runtime.errors import Failure
from runtime.objects import Key
from runtime.results import SETTLED, Result

EVERY = timedelta(seconds=3)


class Prober:
    """Tries one login a pass; enqueues every user of a ProviderConfig when its server is lost or reached again.

    A server may be away for less than the time between two probes, or refuse right after one that it took: the
    resources whose own look failed since are enqueued by the next probe that succeeds. It may be back for less, too:
    the resources about which it answered since are enqueued by the next probe that fails.

    Decides and reports nothing: the status of the server's databases comes from their own passes.
    """

    def __init__(
        self,
        accounts: Accounts[Any, Any],
        is_used: Callable[[str], bool],
        enqueue: Callable[[str], None],
        enqueue_resource: Callable[[str, Key], None],
        every: timedelta = EVERY,
    ) -> None:
        self._accounts = accounts
        self._is_used = is_used
        self._enqueue = enqueue
        self._enqueue_resource = enqueue_resource
        self._every = every
        self._lost: set[str] = set()

    async def __call__(self, key: Key) -> Result:
        """Probe the server of one ProviderConfig, if a resource uses it."""
        if self._accounts.configs.store.get(key) is None:
            self._lost.discard(key.name)
            self._accounts.end_outage(key.name)
            return SETTLED
        if self._is_used(key.name):
            await self._probe(key.name)
        return Result(self._every)

    async def _probe(self, config: str) -> None:
        try:
            await self._accounts.probe(config)
        except ServerUnreachable:
            answered = self._accounts.take_answered(config)
            if config not in self._lost:
                self._lost.add(config)
                self._enqueue(config)
                return
            for plural, key in answered:
                self._enqueue_resource(plural, key)
        except Failure:
            # Refused for another reason, which the passes report. A server that was lost is not reached by that.
            return
        else:
            unreached = self._accounts.take_unreached(config)
            self._accounts.end_outage(config)
            if config in self._lost:
                self._lost.discard(config)
                self._enqueue(config)
                return
            for plural, key in unreached:
                self._enqueue_resource(plural, key)
