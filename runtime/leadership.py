"""The right to act, and its end. Threads may ask it; the clock is passed in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from runtime.lease import LeaseSettings


class Leadership:
    """The right to act, which ends by itself: ask before each mutating call, in the thread that sends it."""

    def __init__(self, settings: LeaseSettings, epoch: int, renewed_at: float, monotonic: Callable[[], float]) -> None:
        self.epoch = epoch
        self._settings = settings
        self._monotonic = monotonic
        self._renewed_at = renewed_at
        self._revoked = False

    def deadline(self) -> float:
        """Return the instant of the monotonic clock after which no mutating call may start."""
        return float("-inf") if self._revoked else self._renewed_at + self._settings.renew_deadline.total_seconds()

    def holds(self, budget: timedelta = timedelta()) -> bool:
        """Tell whether a call that takes at most `budget` may start now."""
        return self._monotonic() + budget.total_seconds() < self.deadline()

    def ends_at(self) -> float:
        """Return the instant before which nobody else leads."""
        return self._renewed_at + self._settings.duration.total_seconds()

    def renewed(self, sent_at: float) -> None:
        """Note an acknowledged renewal that was sent at `sent_at`."""
        self._renewed_at = max(self._renewed_at, sent_at)

    def revoke(self) -> None:
        """End the right to start calls, for good."""
        self._revoked = True
