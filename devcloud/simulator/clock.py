"""Simulated time: starts at the real time, may run faster, may be moved on; and how long operations take."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Clock:
    """A clock whose speed and offset tests choose.

    Attributes:
        durations: What the length of every operation is multiplied by; 0.01 makes a creation last seconds while
            times of day stay real.
    """

    def __init__(self, *, durations: float = 1.0, speed: float = 1.0, wall: Callable[[], float] = time.time) -> None:
        self.durations = durations
        self._wall = wall
        self._speed = speed
        self._since = wall()
        self._base = datetime.fromtimestamp(self._since, UTC)

    @property
    def speed(self) -> float:
        """How many simulated seconds pass in a real one."""
        return self._speed

    def now(self) -> datetime:
        """Return the simulated time, UTC."""
        return self._base + timedelta(seconds=(self._wall() - self._since) * self._speed)

    def advance(self, seconds: float) -> None:
        """Move the time on at once."""
        self._base += timedelta(seconds=seconds)

    def run_at(self, speed: float) -> None:
        """Change the speed from now on."""
        self._base, self._since = self.now(), self._wall()
        self._speed = speed
