"""Whether the API server answers at all: since when requests leave and none is answered. A refusal is an answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from runtime import clock


class Connectivity:
    """Note each request when it leaves and when it is answered; how long none was is `unreachable_for`."""

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._monotonic = monotonic
        self._unanswered_since: float | None = None

    @property
    def unreachable_for(self) -> timedelta:
        """How long ago the first request left that no answer has followed, its own or another's; else zero."""
        since = self._unanswered_since
        return timedelta() if since is None else timedelta(seconds=self._monotonic() - since)

    def sent(self) -> None:
        """Note that a request leaves."""
        if self._unanswered_since is None:
            self._unanswered_since = self._monotonic()

    def answered(self) -> None:
        """Note that the API server has answered."""
        self._unanswered_since = None
