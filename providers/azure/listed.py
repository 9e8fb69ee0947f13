"""What the last list of a subscription said of each server: what its databases, rules and configurations need not ask.

A list stands for a look where nothing is decided that changes anything. Memory of one process. Pure state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from providers.azure.names import ServerName
from providers.azure.servers import states
from providers.external.observation import Phase
from providers.external.ownership import Owner

FRESH: Final = timedelta(seconds=120)
"""How old a list may be that is used: two of them may fail, which come every 30 seconds."""


class ServerState(NamedTuple):
    """`properties.state` of a server, what identifies it (`incarnation_of`), and whose it is by its tags."""

    state: str
    incarnation: str
    owner: Owner | None


class ListedServers:
    """The servers of one subscription. A list is as old as the beginning of its request.

    It says nothing of a server that we called since.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._servers: Mapping[str, ServerState] = {}
        self._as_of = float("-inf")
        self._called: dict[str, float] = {}

    def now(self) -> float:
        """Return the monotonic time, in seconds, by which lists and calls are ordered."""
        return self._monotonic()

    def record(self, servers: Mapping[str, ServerState], as_of: float) -> None:
        """Record a list by external names, which began at `as_of`."""
        if as_of >= self._as_of:
            self._servers, self._as_of = servers, as_of
            self._called = {name: at for name, at in self._called.items() if at >= as_of}

    def record_call(self, server: ServerName) -> None:
        """Record that a call to a server, or to what is in it, just ended."""
        self._called[str(server).lower()] = self._monotonic()

    def ready(self, server: ServerName) -> ServerState | None:
        """Return a server that is listed as ready; None where it has to be asked."""
        name = str(server).lower()
        if name in self._called or self._monotonic() - self._as_of > FRESH.total_seconds():
            return None
        known = self._servers.get(name)
        return known if known is not None and states.phase_of(known.state) is Phase.READY else None
