"""How wide a screen is and whether it has colours, for all commands; text fitted into it.

Sources: no-color.org; "Standard for ANSI Colors in Terminals" (bixense.com/clicolors).
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TextIO

FEWEST_COLUMNS: Final = 40
_OF_NO_TERMINAL: Final = 100
_GAP: Final = "  "


class Style(StrEnum):
    """How a line stands out, as parameters of SGR (ECMA-48); PLAIN does not."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    CYAN = "36"
    YELLOW = "33"
    ALARM = "1;31"


def columns_of(stream: TextIO) -> int:
    """Return how many columns a stream has: $COLUMNS, else its terminal's, else a hundred."""
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        return _OF_NO_TERMINAL
    return max(shutil.get_terminal_size().columns, FEWEST_COLUMNS)


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream gets colours: never with NO_COLOR, always with CLICOLOR_FORCE, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    is_plain = os.environ.get("CLICOLOR") == "0" or os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not is_plain


def styled(text: str, style: Style) -> str:
    """Return a line as a terminal with colours shows it. Pure."""
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def fitted(text: str, columns: int, *, begin: str = "", then: str | None = None) -> list[str]:
    """Return a text in lines that fit into columns, no word of it broken; `then` begins all but the first. Pure."""
    return textwrap.wrap(
        text,
        max(columns, FEWEST_COLUMNS),
        initial_indent=begin,
        subsequent_indent=begin if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Sequence[Sequence[str]], gap: str = _GAP) -> list[str]:
    """Return rows as lines with their cells below each other; the first row is the headings. Pure."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
