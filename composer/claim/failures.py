"""Passes over one claim that fail in a row, and what is told of them. Pure."""

from __future__ import annotations

from composer.causes import Cause, cause
from composer.claim.outcomes import Outcome
from runtime.errors import ApiError, Failure, NotLeading
from runtime.objects import Key

REPEATED = 3
"""A failure is told from this pass in a row on: single ones are over before anybody could read of them."""
_TEXT_LIMIT = 400


class Failures:
    """Counts the failed passes of each claim since its last good one; nothing depends on it being kept."""

    def __init__(self) -> None:
        self._passes: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        """Count a failed pass."""
        self._passes[key] = self._passes.get(key, 0) + 1

    def forget(self, key: Key) -> None:
        """Forget the failed passes of a claim: one succeeded, or the claim is gone."""
        self._passes.pop(key, None)

    def repeats(self, key: Key) -> bool:
        """Tell whether a failure of the pass under way is one of several in a row."""
        return self._passes.get(key, 0) + 1 >= REPEATED


def cause_of(error: Exception, *, repeats: bool) -> Cause | None:
    """Return what a claim says of the error that ended a pass; None of one that may be over with the next pass.

    The text of a defect is left to the log: nobody knows what is in it.
    """
    if isinstance(error, NotLeading):
        return None
    if not isinstance(error, ApiError | Failure | TimeoutError):
        what = f"a defect of Fairlead ended the pass over this claim ({type(error).__name__}); it is tried again"
        return cause("InternalError", f"{what}; report it with the line of the composer's log that says InternalError")
    return cause("RequestFailed", _in_words(error)) if repeats else None


def causes_of_errors(outcomes: tuple[Outcome, ...], *, repeats: bool) -> tuple[Cause, ...]:
    """Return what a claim says of the steps that failed by an error that time may heal."""
    return tuple(
        cause("RequestFailed", _in_words(each.error), resource=each.entry.resource if each.entry else "")
        for each in outcomes
        if repeats and each.error and not isinstance(each.error, NotLeading)
    )


def _in_words(error: Exception) -> str:
    return f"passes over this claim fail in a row, the last by: {str(error) or type(error).__name__}"[:_TEXT_LIMIT]
