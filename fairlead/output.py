"""How results reach the screen: data on standard output, colour where `fairlead.terminal` says so.

What others wrote is shown without what a terminal would obey; to a file or a program data go as they are.
"""

import sys
from collections.abc import Iterable

import msgspec

from fairlead.layout import Style, styled
from fairlead.terminal import columns_of, has_colours
from fairlead.tree import Node
from fairlead.tree_view import Form, lines_of
from runtime.objects import Object
from runtime.text import escaped

_CLEARED = "\x1b[H\x1b[2J\x1b[3J"


def columns() -> int:
    """Return how many columns a line of standard output has."""
    return columns_of(sys.stdout)


def clear() -> None:
    """Clear a terminal before what is shown anew; what is no terminal gets one after another."""
    if sys.stdout.isatty():
        print(_CLEARED, end="")


def show_line(line: str, style: Style = Style.PLAIN) -> None:
    """Print a line in its style where there are colours."""
    print(styled(line, style) if has_colours(sys.stdout) else line)


def show_lines(lines: Iterable[tuple[str, bool]]) -> None:
    """Print lines, each with whether it says what is wrong."""
    for line, is_alarming in lines:
        show_line(line, Style.ALARM if is_alarming else Style.PLAIN)
    sys.stdout.flush()


def show_tree(tree: Node, *, unfolded: bool = False, wide: bool = False) -> None:
    """Print a tree; the first cause stands out."""
    show_lines(lines_of(tree, Form(columns(), unfolded, wide)))


def show_json(value: Object) -> None:
    """Print one JSON document, indented; what a terminal would obey is written as JSON escapes."""
    print(escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
