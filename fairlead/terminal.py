"""How wide a screen is and whether it has colours, for all commands.

Sources: no-color.org; "Standard for ANSI Colors in Terminals" (bixense.com/clicolors).
"""

from __future__ import annotations

import os
import shutil
from typing import Final, TextIO

from fairlead.layout import FEWEST_COLUMNS

_OF_NO_TERMINAL: Final = 100


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
