"""What was answered last about each instance of a project, by a list or a look at it: what others need not ask again.

`instances.list` answers whole instances (resource `instances`), so an answer of it stands for `instances.get` where
nothing is decided that changes anything. Memory of one process. Pure state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import msgspec

Answer = Mapping[str, Any]
FRESH: Final = timedelta(seconds=150)
"""How old an answer may be that is used: two lists may fail, which come each minute."""


def encoded_answer(answer: Answer) -> bytes:
    """Return an answer about one instance as it is kept."""
    return msgspec.json.encode(answer)


def decoded_answer(encoded: bytes) -> Answer:
    """Return what `encoded_answer` kept."""
    answer: dict[str, Any] = msgspec.json.decode(encoded)
    return answer


@dataclass(frozen=True, slots=True)
class _Recorded:
    encoded: bytes = field(repr=False)
    as_of: float


class InstanceAnswers:
    """The newest answer about each instance. An answer is as old as the beginning of its request.

    An older one never replaces a newer one, and none counts that was asked for before our last call to the instance.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._answers: dict[str, _Recorded] = {}
        self._called: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._listed_at = float("-inf")
        self._is_missed = False

    def now(self) -> float:
        """Return the monotonic time, in seconds, by which answers are ordered."""
        return self._monotonic()

    def record(self, name: str, encoded: bytes, as_of: float) -> None:
        """Record an answer to what was asked at `as_of`."""
        known = self._answers.get(name)
        if as_of >= self._called.get(name, as_of) and (known is None or as_of >= known.as_of):
            self._answers[name] = _Recorded(encoded, as_of)

    def is_wanted(self, name: str) -> bool:
        """Return whether somebody asked for an instance: one that bears no label of ours may be wanted all the same."""
        return name in self._wanted

    def is_listed(self) -> bool:
        """Return whether there is a list, whole or not, whose answers last until the next one is due.

        None does that kept no answer about an instance that somebody asked for since.
        """
        return not self._is_missed and self._monotonic() - self._listed_at <= FRESH.total_seconds() / 2

    def record_list(self, as_of: float) -> None:
        """Record that a list ended that began at `as_of`."""
        self._listed_at, self._is_missed = max(self._listed_at, as_of), False

    def record_whole_list(self, names: Collection[str], as_of: float) -> None:
        """Forget what a list of the whole project lacks; nothing is forgotten by a list with a silent region."""
        self._answers = {name: known for name, known in self._answers.items() if name in names or known.as_of > as_of}
        self._called = {name: at for name, at in self._called.items() if at >= as_of}
        self._wanted.intersection_update(names)

    def record_call(self, name: str) -> None:
        """Record that an instance was just asked to change: what was asked before shows nothing of it."""
        self._answers.pop(name, None)
        self._called[name] = self._monotonic()

    def forget(self, name: str) -> None:
        """Forget an instance that was not found."""
        self._answers.pop(name, None)

    def of(self, name: str) -> Answer | None:
        """Return the answer about an instance, if there is one that is fresh."""
        known = self._answers.get(name)
        self._is_missed = self._is_missed or (known is None and name not in self._wanted)
        self._wanted.add(name)
        if known is None or self._monotonic() - known.as_of > FRESH.total_seconds():
            return None
        return decoded_answer(known.encoded)
