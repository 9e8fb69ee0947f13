"""How results reach the screen: data on standard output, colour only on a terminal, NO_COLOR obeyed.

What others wrote is shown without what a terminal would obey; to a file or a program data go as they are.
"""

import sys

import msgspec
from rich.console import Console
from rich.text import Text

from fairlead.tree import Node, lines_of
from runtime.objects import Object
from runtime.text import escaped


def console() -> Console:
    """Return standard output without wrapping and without guesses about what a text means."""
    return Console(file=sys.stdout, soft_wrap=True, highlight=False)


def show_tree(tree: Node) -> None:
    """Print a tree; the first cause stands out."""
    screen = console()
    for line, is_cause in lines_of(tree):
        screen.print(Text(line, style="bold red" if is_cause else ""))


def show_json(value: Object) -> None:
    """Print one JSON document, indented; what a terminal would obey is written as JSON escapes."""
    print(escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
