"""What resources showed of late, for reads that lag, and when each of them next moves by itself."""

import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import Iterator
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")
_VERSIONS_KEPT = 12


class History(Generic[T]):
    """The last versions of each resource, by name."""

    def __init__(self) -> None:
        self._versions: defaultdict[str, deque[tuple[datetime, T | None]]] = defaultdict(
            lambda: deque(maxlen=_VERSIONS_KEPT)
        )

    def add(self, name: str, at: datetime, shown: T | None) -> None:
        """Keep what a resource shows from a moment on; None when it is gone."""
        self._versions[name].append((at, shown))

    def as_of(self, name: str, moment: datetime) -> T | None:
        """Return what a resource showed at a moment; None when it did not exist then."""
        versions = self._versions[name]
        # Of one that changed often, the oldest version kept stands for those before it.
        visible_then = versions[0][1] if len(versions) == _VERSIONS_KEPT else None
        for at, shown in versions:
            if at > moment:
                break
            visible_then = shown
        return visible_then

    def names(self) -> list[str]:
        """Return the names of now and of lately, in order."""
        return sorted(name for name in self._versions if self._versions[name])


class Schedule:
    """When which resource next moves by itself."""

    def __init__(self) -> None:
        self._due: list[tuple[datetime, int, str]] = []
        self._order = itertools.count()

    def add(self, at: datetime, name: str) -> None:
        """Let a resource's time come."""
        heapq.heappush(self._due, (at, next(self._order), name))

    def due(self, now: datetime) -> Iterator[str]:
        """Yield the resources whose time has come, in its order; each is taken from the schedule."""
        while self._due and self._due[0][0] <= now:
            yield heapq.heappop(self._due)[2]
