"""Keys that are due, and which of them runs next: priorities, namespaces in turn, a limit for each group. Pure.

A group is a set of keys that wait for the same thing outside, as a server that may hang. A key of a group that runs as
many keys as it may stays here and takes no worker; keys of other groups overtake it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from runtime.objects import Key


@dataclass(frozen=True, slots=True)
class Grouping:
    """`group_of` returns a key's group, empty where no limit holds; `limit` is how many keys of a group may run."""

    group_of: Callable[[Key], str]
    limit: int


class _Turns:
    """Keys of one priority; namespaces take turns, keys of one namespace in their order."""

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, OrderedDict[Key, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, key: Key) -> None:
        keys = self._namespaces.setdefault(key.namespace, OrderedDict())
        self._count += key not in keys
        keys[key] = None

    def first(self) -> Key:
        return next(iter(next(iter(self._namespaces.values()))))

    def take(self) -> Key:
        namespace, keys = next(iter(self._namespaces.items()))
        key, _ = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._namespaces.move_to_end(namespace)
        else:
            del self._namespaces[namespace]
        return key

    def discard(self, key: Key) -> None:
        keys = self._namespaces.get(key.namespace)
        if keys is None or key not in keys:
            return
        del keys[key]
        self._count -= 1
        if not keys:
            del self._namespaces[key.namespace]


class ReadyKeys:
    """The due keys of a queue by priority, 0 first, and the keys that run.

    Of several groups with due keys the one that runs the fewest is next, so that no group waits for ever for another.
    """

    def __init__(self, priorities: int, grouping: Grouping | None = None) -> None:
        self._priorities = priorities
        self._grouping = grouping
        self._free = tuple(_Turns() for _ in range(priorities))
        # Keys whose group was full when their turn came.
        self._held: dict[str, tuple[_Turns, ...]] = {}
        # Which of them each due key is in.
        self._places: dict[Key, _Turns] = {}
        self._running: dict[Key, str] = {}
        self._sizes: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def put(self, key: Key, priority: int) -> None:
        """Add a due key that is not here."""
        self._schedule(key, self._free[priority])

    def discard(self, key: Key) -> None:
        """Take a key out, if it is here."""
        keys = self._places.pop(key, None)
        if keys is None:
            return
        keys.discard(key)
        if self._held:
            self._held = {group: keys for group, keys in self._held.items() if any(keys)}

    def take(self, priorities: Iterable[int]) -> Key | None:
        """Return the next key of the first of these priorities that has one which may run; it runs until `done`."""
        for priority in priorities:
            key = self._take(priority)
            if key is not None:
                return key
        return None

    def is_running(self, key: Key) -> bool:
        """Return whether a key was taken and is not done."""
        return key in self._running

    def done(self, key: Key) -> None:
        """End the run of a key; one that does not run is ignored."""
        group = self._running.pop(key, None)
        if group is None:
            return
        self._sizes[group] -= 1
        if not self._sizes[group]:
            del self._sizes[group]

    def _schedule(self, key: Key, keys: _Turns) -> None:
        keys.put(key)
        self._places[key] = keys

    def _take(self, priority: int) -> Key | None:
        free = self._free[priority]
        if self._grouping is None:
            return self._run(free.take(), "") if free else None
        while free and self._is_full(group := self._group_of(free.first())):
            self._hold(group, priority, free.take())
        group = self._held_group(priority)
        if free and (not group or self._sizes[self._group_of(free.first())] <= self._sizes[group]):
            group = self._group_of(free.first())
            return self._run(free.take(), group)
        return self._run(self._release(group, priority), group) if group else None

    def _run(self, key: Key, group: str) -> Key:
        del self._places[key]
        self._running[key] = group
        self._sizes[group] += 1
        return key

    def _hold(self, group: str, priority: int, key: Key) -> None:
        if group not in self._held:
            self._held[group] = tuple(_Turns() for _ in range(self._priorities))
        self._schedule(key, self._held[group][priority])

    def _held_group(self, priority: int) -> str:
        """Return the group that runs the fewest of those that held a key back and may run one now, empty for none."""
        open_groups = [group for group, keys in self._held.items() if keys[priority] and not self._is_full(group)]
        return min(open_groups, key=self._sizes.__getitem__, default="")

    def _release(self, group: str, priority: int) -> Key:
        key = self._held[group][priority].take()
        if not any(self._held[group]):
            del self._held[group]
        return key

    def _group_of(self, key: Key) -> str:
        return self._grouping.group_of(key) if self._grouping else ""

    def _is_full(self, group: str) -> bool:
        return bool(group) and self._grouping is not None and self._sizes[group] >= self._grouping.limit
