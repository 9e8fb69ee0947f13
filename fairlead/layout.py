"""Text laid out for a screen: fitted into columns, in tables, styled. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

FEWEST_COLUMNS: Final = 40
_GAP: Final = "  "


class Style(StrEnum):
    """How a line stands out, as parameters of SGR (ECMA-48); PLAIN does not."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    CYAN = "36"
    YELLOW = "33"
    ALARM = "1;31"


def styled(text: str, style: Style) -> str:
    """Return a line as a terminal with colours shows it."""
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def fitted(text: str, columns: int, *, begin: str = "", then: str | None = None) -> list[str]:
    """Return a text in lines that fit into columns, no word of it broken; `then` begins all but the first."""
    return textwrap.wrap(
        text,
        max(columns, FEWEST_COLUMNS),
        initial_indent=begin,
        subsequent_indent=begin if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Sequence[Sequence[str]], gap: str = _GAP) -> list[str]:
    """Return rows as lines with their cells below each other; the first row is the headings."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
