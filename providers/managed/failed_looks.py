"""How many looks in a row told the same: a failed look is told at the third, and repeated ever more slowly."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runtime.objects import Key

_BEFORE_SAYING = 3
_FIRST = timedelta(seconds=2)
_MOST_COUNTED = 10


@dataclass(slots=True)
class Looks:
    """Looks in a row that failed, or that found the cloud busy; of both kinds the present row alone is counted."""

    _rows: dict[Key, tuple[bool, int]] = field(default_factory=dict)
    _busy_since: dict[Key, tuple[str, datetime]] = field(default_factory=dict)

    def note(self, key: Key, *, failed: bool) -> bool:
        """Count one more look; return whether it is yet too early to tell of it."""
        known = self._rows.get(key)
        count = known[1] + 1 if known is not None and known[0] is failed else 1
        self._rows[key] = (failed, min(count, _MOST_COUNTED))
        return count < _BEFORE_SAYING

    def busy_for(self, key: Key, state: str, now: datetime) -> timedelta:
        """Return for how long looks have found one state in which the cloud is at work, this one the last of them."""
        known = self._busy_since.get(key)
        if known is None or known[0] != state:
            known = self._busy_since[key] = (state, now)
        return now - known[1]

    def forget(self, key: Key) -> None:
        """Begin anew: a look succeeded, or the object is gone."""
        self._rows.pop(key, None)
        self._busy_since.pop(key, None)

    def next_after(self, key: Key, usual: timedelta) -> timedelta:
        """Return when to look again: soon after the first failed looks, else at the usual pace."""
        failed, count = self._rows.get(key, (False, 0))
        return min(usual, _FIRST * 2**count) if failed else usual

    def failing(self, key: Key) -> bool:
        """Tell whether the last look failed."""
        return self._rows.get(key, (False, 0))[0]
