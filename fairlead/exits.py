"""What every command answers to the shell, and the error that carries it."""

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, the same for all commands."""

    DONE = 0
    TOOL_FAILED = 1
    INVALID_INPUT = 2
    DIFFERENCES = 3
    DESTROYS = 4
    NOT_READY = 5
    STALLED = 6
    REFUSED = 7
    USAGE = 64
    INTERRUPTED = 130


_MOST_SEVERE_FIRST = (
    Exit.TOOL_FAILED,
    Exit.INVALID_INPUT,
    Exit.STALLED,
    Exit.REFUSED,
    Exit.NOT_READY,
    Exit.DESTROYS,
    Exit.DIFFERENCES,
)


def worst(exits: Iterable[Exit]) -> Exit:
    """Return the most severe of several outcomes, DONE for none."""
    seen = set(exits)
    return next((code for code in _MOST_SEVERE_FIRST if code in seen), Exit.DONE)


class CommandError(Exception):
    """A command ends early.

    Its text says which thing, what is wrong and what to do; `exit_code` is for the shell.
    """

    def __init__(self, message: str, *, exit_code: Exit = Exit.TOOL_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
