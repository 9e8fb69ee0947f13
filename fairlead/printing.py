"""Prints lines of a command: what others wrote is shown without what a terminal would obey.

To a file or another program everything goes as it is.
"""

import sys
from typing import TextIO

from runtime.text import readable


def to_output(text: str, *, end: str = "\n") -> None:
    """Print on standard output."""
    _print(text, sys.stdout, end)


def to_errors(text: str) -> None:
    """Print on standard error."""
    _print(text, sys.stderr, "\n")


def _print(text: str, stream: TextIO, end: str) -> None:
    print(readable(text, lines=True) if stream.isatty() else text, file=stream, end=end)
