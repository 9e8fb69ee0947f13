"""Which configurations of a server wait for its restart, and which servers nobody uses yet.

A claim's first Secret waits until all of its children are Ready. So a server that this process made for a claim is used
by nobody as long as a configuration of the same claim, which was seen before the server was ready, is not set or waits
for a restart: that restart interrupts nobody. Memory of one process: after a restart of the provider no server is new,
and what waits is read again. Pure state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from providers.azure.names import ServerName

READ_AGAIN: Final = timedelta(hours=6).total_seconds()
"""After so long the configurations of a server are read again although nothing was heard of them."""
NEW_FOR: Final = timedelta(hours=2).total_seconds()
"""For so long a server is new at most."""
SET_WITHIN: Final = timedelta(minutes=15).total_seconds()
"""For so long the restart of a new server waits for a configuration that is not set."""
_REFUSED, _WAITS = float("-inf"), float("inf")


class Restarts:
    """The servers of one subscription; times are monotonic seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._waiting: dict[str, tuple[tuple[str, ...], float]] = {}
        # Of each new server whose it is, and since when; of its configurations since when they are not set.
        self._new: dict[str, tuple[str, float]] = {}
        self._unset: dict[str, dict[str, float]] = {}

    def record_made(self, server: ServerName, identity: str) -> None:
        """Record that a server was made for a claim just now."""
        self._new[str(server).lower()] = identity, self._monotonic()

    def record_ready(self, server: ServerName) -> None:
        """Record that a server is ready: one for which no configuration was seen is not new any more."""
        if not self._unset.get(str(server).lower()):
            self._forget(server)

    def is_new(self, server: ServerName) -> bool:
        """Return whether nobody uses a server yet, as far as is known."""
        _, since = self._new.get(str(server).lower(), ("", _REFUSED))
        return self._monotonic() - since < NEW_FOR

    def is_being_set(self, server: ServerName) -> bool:
        """Return whether a configuration of a new server is about to be set."""
        now = self._monotonic()
        return any(0 <= now - since < SET_WITHIN for since in self._unset.get(str(server).lower(), {}).values())

    def record_unset(self, server: ServerName, name: str, identity: str, *, refused: bool = False) -> None:
        """Record that a configuration of a claim is not set, or cannot be as it is asked for."""
        key = str(server).lower()
        if self._new.get(key, ("", 0.0))[0] == identity and self.is_new(server):
            unset = self._unset.setdefault(key, {})
            unset[name] = _REFUSED if refused else unset.get(name, self._monotonic())

    def record_set(self, server: ServerName, name: str, *, waits: bool) -> bool:
        """Record a configuration that is set, or on its way out; return whether the restart of a new server is next."""
        key = str(server).lower()
        if key in self._waiting and (name in self._waiting[key][0]) != waits:
            del self._waiting[key]
        unset = self._unset.get(key, {})
        if name in unset and waits and self.is_new(server):
            unset[name] = _WAITS
            return True
        if unset.pop(name, None) is not None and not unset:
            self._forget(server)
        return False

    def record_waiting(self, server: ServerName, names: tuple[str, ...]) -> None:
        """Record which configurations wait, as all were just read."""
        self._waiting[str(server).lower()] = names, self._monotonic()

    def is_none_waiting(self, server: ServerName) -> bool:
        """Return whether it is known that no configuration waits."""
        names, at = self._waiting.get(str(server).lower(), ((), _REFUSED))
        return not names and self._monotonic() - at < READ_AGAIN

    def _forget(self, server: ServerName) -> None:
        self._new.pop(str(server).lower(), None)
        self._unset.pop(str(server).lower(), None)


def waits_for_restart(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer about a configuration says that it takes effect with the next restart."""
    properties = answer.get("properties")
    return isinstance(properties, dict) and properties.get("isConfigPendingRestart") is True
