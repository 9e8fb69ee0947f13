"""Which objects are written again and again: two writers that never agree, seen by a number and not by a full disk.

Writes are counted by object for five to ten minutes, in two tables of which the older is dropped every five: memory is
bounded by what is written meanwhile. No object is named; the audit log of the API server does that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from runtime import clock
from runtime.metrics import REGISTRY
from runtime.objects import EVENTS, LEASES, Key, Resource

LOOP_WRITES: Final = 150
"""More writes to one object than this in a period are a loop: progress is reported every two seconds at most."""
PERIOD_SECONDS: Final = 300.0
# A Lease is written every two seconds for ever, an Event once.
_UNCOUNTED: Final = frozenset({EVENTS, LEASES})


class WriteLoops(Collector):
    """Counts writes; a scrape reads how many objects of each resource are in a loop."""

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._now: Counter[tuple[str, Key]] = Counter()
        self._before: Counter[tuple[str, Key]] = Counter()
        self._resources: set[str] = set()

    def wrote(self, resource: Resource, key: Key) -> None:
        """Note one write."""
        if resource in _UNCOUNTED:
            return
        self._turn()
        self._resources.add(resource.group_kind)
        self._now[resource.group_kind, key] += 1

    def loops(self) -> dict[str, int]:
        """Return how many objects are in a loop, by each resource ever written."""
        self._turn()
        counts = dict.fromkeys(sorted(self._resources), 0)
        for place in self._now.keys() | self._before.keys():
            if max(self._now[place], self._before[place]) > LOOP_WRITES:
                counts[place[0]] += 1
        return counts

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give prometheus_client the gauge."""
        family = GaugeMetricFamily(
            "controller_write_loops",
            f"Objects written more than {LOOP_WRITES} times within five minutes",
            labels=["resource"],
        )
        for resource, count in self.loops().items():
            family.add_metric([resource], count)
        yield family

    def _turn(self) -> None:
        periods = (self._monotonic() - self._began) // PERIOD_SECONDS
        if periods < 1:
            return
        self._before = self._now if periods == 1 else Counter()
        self._now = Counter()
        self._began += periods * PERIOD_SECONDS


WRITES: Final = WriteLoops()
REGISTRY.register(WRITES)
