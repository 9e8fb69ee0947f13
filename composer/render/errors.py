"""What can be wrong with a Composition or its render, as data: reason, place, sentence. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

import msgspec

from runtime.text import readable

UNSUPPORTED_VALUE: Final = "UnsupportedValue"
"""The reason of what a claim asks for and its Composition does not serve."""
_TEXT_LIMIT = 400


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault. `path` is the JSON path within the Composition's spec, `column` counts from 1 within that text."""

    reason: str
    message: str
    path: str = ""
    column: int = 0
    resource: str = ""

    def __post_init__(self) -> None:
        # A template may name what it likes at any length; what is said of it goes into events and conditions.
        for name in ("message", "path"):
            text = readable(getattr(self, name), _TEXT_LIMIT)
            if text is not getattr(self, name):
                msgspec.structs.force_setattr(self, name, text)

    @property
    def for_the_claim(self) -> str:
        """The sentence for who wrote the claim: the place in the Composition helps who can mend that."""
        return self.message if self.reason == UNSUPPORTED_VALUE else str(self)

    def __str__(self) -> str:
        place = f"{self.path}:{self.column}" if self.column else self.path
        text = f"{place}: {self.message}" if place else self.message
        return readable(text, _TEXT_LIMIT)


class CompositionError(Exception):
    """A Composition was refused, or could not be rendered; `problems` are all that were found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


class MistypedError(CompositionError):
    """An expression combines values of types that do not go together, whatever the values are."""


def raise_all(errors: tuple[CompositionError, ...]) -> None:
    """Raise several errors as one of the first one's kind; a problem that several have comes once. None: nothing."""
    if errors:
        problems = dict.fromkeys(problem for error in errors for problem in error.problems)
        raise type(errors[0])(*problems) from errors[0]


class PendingError(Exception):
    """A value of another resource's status is not there yet; `waits_for` is that resource."""

    def __init__(self, waits_for: str, path: str) -> None:
        super().__init__(f"waits for {path}")
        self.waits_for = waits_for
        self.path = path


def near(name: str, known: Iterable[str]) -> str:
    """Return which known name is nearest, as the end of a sentence; empty when none is."""
    nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f", did you mean {nearest[0]!r}?" if nearest else ""
