"""Prints lines of a command: what others wrote is shown without what a terminal would obey.

To a file or another program everything goes as it is.
"""

import shutil
import sys
from typing import Final, TextIO

from fairlead.layout import fitted
from runtime.text import readable

_NO_END: Final = 1 << 16


def to_output(text: str, *, end: str = "\n", wraps: bool = False, at_once: bool = False) -> None:
    """Print on standard output; `wraps`: a terminal gets lines of its width, as what nobody copies as a command.

    `at_once`: whoever reads it gets it now, and not with what comes later.
    """
    _print(text, sys.stdout, end, wraps=wraps)
    if at_once:
        sys.stdout.flush()


def to_errors(text: str, *, wraps: bool = False) -> None:
    """Print on standard error, as `to_output` does."""
    _print(text, sys.stderr, "\n", wraps=wraps)


def columns_of_output() -> int:
    """Return how wide lines of a table may be: as wide as the terminal, or without end for a file or a program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _NO_END


def wrapped(line: str, columns: int) -> str:
    """Return a line in as many as fit into columns; what follows is set in. Pure."""
    begin = line[: len(line) - len(line.lstrip())]
    return "\n".join(fitted(line.strip(), columns, begin=begin, then=f"{begin}    "))


def _print(text: str, stream: TextIO, end: str, *, wraps: bool) -> None:
    if stream.isatty():
        text = readable(text, lines=True)
        text = wrapped(text, shutil.get_terminal_size().columns) if wraps else text
    print(text, file=stream, end=end)
