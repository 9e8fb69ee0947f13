"""How often what no list shows is read: as often as a tenth of an account's reads allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from providers.accounts.limits import BY_CONFIG
from runtime import randomness
from runtime.objects import Key
from runtime.store import Store

SHARE: Final = 0.1
"""The part of an account's reads that is spent on what its lists do not show."""


def pause_before_next_read(
    objects: int, reads_per_second: float, resync: timedelta, longest: timedelta, chance: Callable[[], float]
) -> timedelta:
    """Return after how long to read one of so many objects again; each costs about one read. Pure.

    Few are read every `resync`. Many are read between that and twice the mean that the share allows, at random
    (`chance` is uniform from 0 to 1), so that they do not come together; never later than `longest`.
    """
    mean = timedelta(seconds=objects / (SHARE * reads_per_second))
    if mean <= resync or longest <= resync:
        return resync
    return resync + (min(2 * mean - resync, longest) - resync) * chance()


@dataclass(slots=True)
class RareReads:
    """When each object that no list shows is read again, over all such kinds of one cloud; `longest` as above."""

    reads_per_second: float
    resync: timedelta
    longest: timedelta
    _stores: list[Store] = field(default_factory=list)

    def of(self, store: Store) -> Callable[[Key], timedelta]:
        """Count in the resources of a kind, which have the index BY_CONFIG; return what chooses the pause of each."""
        self._stores.append(store)
        return partial(self._pause, store)

    def _pause(self, store: Store, key: Key) -> timedelta:
        config = next(iter(store.indexed(BY_CONFIG, key)), "")
        objects = sum(kind.count(BY_CONFIG, config) for kind in self._stores)
        return pause_before_next_read(objects, self.reads_per_second, self.resync, self.longest, randomness.chance)
