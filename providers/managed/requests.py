"""How often people may have an object looked at: a requested pass costs calls to the cloud that all share. Pure.

The generic cell rate algorithm (ATM Forum, Traffic Management 4.0): of each object and namespace the time is kept at
which all that it was let have is paid for.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from apis import names
from providers.managed.record import is_reconcile_requested
from runtime.objects import Key, Object, annotations_of, deleting, generation_of, key_of, observed_generation_of

_OF_OBJECT: Final = (timedelta(seconds=10), 3)
_OF_NAMESPACE: Final = (timedelta(seconds=1), 60)
_LOOK_AGAIN: Final = timedelta(seconds=10)


class Requests:
    """The passes that people requested of one kind's objects, by object and by namespace."""

    def __init__(self) -> None:
        self._tokens: dict[Key, str] = {}
        self._objects: dict[Key, datetime] = {}
        self._namespaces: dict[str, datetime] = {}

    def wait(self, obj: Object, now: datetime) -> timedelta | None:
        """Return after how long a requested pass is made; None where it may be made now, and where none is requested.

        Of an object three at once, then one in ten seconds; of a namespace sixty, then one in a second. An edit and a
        deletion wait for nothing.
        """
        key, token = key_of(obj), annotations_of(obj).get(names.RECONCILE_REQUESTED_AT, "")
        is_edited = deleting(obj) or observed_generation_of(obj) != generation_of(obj)
        if is_edited or not is_reconcile_requested(obj) or self._tokens.get(key) == token:
            return None
        paid, paid_of_all = self._objects.get(key, now), self._namespaces.get(key.namespace, now)
        wait = max(_excess(paid, now, *_OF_OBJECT), _excess(paid_of_all, now, *_OF_NAMESPACE))
        if wait > timedelta():
            return min(wait, _LOOK_AGAIN)
        self._tokens[key] = token
        self._objects[key] = max(paid, now) + _OF_OBJECT[0]
        self._namespaces[key.namespace] = max(paid_of_all, now) + _OF_NAMESPACE[0]
        return None

    def forget(self, key: Key) -> None:
        """Forget an object that is gone; its namespace keeps what it was let have."""
        self._tokens.pop(key, None)
        self._objects.pop(key, None)


def _excess(paid: datetime, now: datetime, interval: timedelta, burst: int) -> timedelta:
    """Return how long it is until one more is within the burst."""
    return paid - now - (burst - 1) * interval
