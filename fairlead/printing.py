"""Prints lines of a command: what others wrote is shown without what a terminal would obey.

To a file or another program everything goes as it is.
"""

import shutil
import sys
import textwrap
from typing import Final, TextIO

from runtime.text import readable

_FEWEST_COLUMNS: Final = 40


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


def wrapped(line: str, columns: int) -> str:
    """Return a line in as many as fit into columns; what follows is set in. Pure."""
    begin = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        line.strip(),
        max(columns, _FEWEST_COLUMNS),
        initial_indent=begin,
        subsequent_indent=f"{begin}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def _print(text: str, stream: TextIO, end: str, *, wraps: bool) -> None:
    if stream.isatty():
        text = readable(text, lines=True)
        text = wrapped(text, shutil.get_terminal_size().columns) if wraps else text
    print(text, file=stream, end=end)
