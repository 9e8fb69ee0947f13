"""How a tree of `fairlead trace` is shown: healthy parts on one line each, the first cause in full; as a graph. Pure.

What does not fit into the columns goes below its line: no word is broken, and no command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from apis.reasons import needs_a_person, next_actor
from fairlead.layout import fitted, table
from fairlead.tree import Node, age_text
from runtime.text import readable

_LONGEST_LINE = 100
_PROMPT = "$ "
_COMMAND = re.compile(r"`(kubectl annotate [^`]+)`")
_HEADINGS = ("NAME", "READY", "REASON", "AGE", "EXTERNAL")
_CAUSE = "  <- first cause"
_GAP = "   "
# So many healthy leaves of one object are one line.
_MANY = 4


@dataclass(frozen=True, slots=True)
class Form:
    """How much of a tree is shown: `all` leaves, each by itself; of each `wide` what it says and where it is seen."""

    columns: int = 100
    all: bool = False
    wide: bool = False


def lines_of(tree: Node, form: Form = Form()) -> Iterator[tuple[str, bool]]:
    """Yield the lines to print, each with whether it belongs to the first cause."""
    shown = tree if form.all or form.wide else _folded(tree)
    rows = list(_rows(shown, "", ""))
    cells = [_cells(node, branch) for node, branch, _ in rows]
    heading, *lines = table([_HEADINGS, *cells], _GAP)
    is_narrow = max(len(_marked(node, line)) for (node, _, _), line in zip(rows, lines, strict=True)) > form.columns
    if is_narrow:
        heading, *lines = table([_HEADINGS[:-1], *(row[:-1] for row in cells)], _GAP)
    yield heading, False
    width = min(form.columns, _LONGEST_LINE)
    for (node, _, indent), line in zip(rows, lines, strict=True):
        yield _marked(node, line), node.is_cause
        if is_narrow and node.external:
            yield from ((part, False) for part in _wrapped(node.external, indent, width))
        for text in _explanation(node, form):
            yield from ((part, node.is_cause) for part in _wrapped(text, indent, width))


def _marked(node: Node, line: str) -> str:
    return f"{line}{_CAUSE}" if node.is_cause else line


def _folded(node: Node) -> Node:
    """Return a node with those of its leaves that are well in one."""
    leaves = [child for child in node.children if _is_at_rest(child)]
    children = tuple(_folded(child) for child in node.children if len(leaves) < _MANY or child not in leaves)
    if len(leaves) < _MANY:
        return replace(node, children=children)
    kinds = Counter(child.kind for child in leaves)
    named = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in kinds.items())
    summary = Node("", f"{len(leaves)} are well (--all): {named}", "True", "", "", None)
    return replace(node, children=(*children, summary))


def _is_at_rest(node: Node) -> bool:
    return node.is_healthy and not node.children and not node.drift and not node.events and not node.is_cause


def _rows(node: Node, branch: str, indent: str) -> Iterator[tuple[Node, str, str]]:
    yield node, branch, indent + ("│" if node.children else " ")
    for child in node.children:
        last = child is node.children[-1]
        yield from _rows(child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))


def _cells(node: Node, branch: str) -> tuple[str, ...]:
    if not node.kind:
        return (f"{branch}{readable(node.name)}", "", "", "", "")
    ready = node.ready if node.is_current else f"{node.ready} (old)"
    shown = (f"{node.kind}/{node.name}", ready, node.reason, age_text(node.age), node.external)
    name, *rest = map(readable, shown)
    return (f"{branch}{name}", *rest)


def _explanation(node: Node, form: Form) -> Iterator[str]:
    if node.is_cause:
        yield from _cause(node)
    elif form.wide and node.message:
        yield node.message
    for drift in node.drift:
        text = f"drift: {drift.path} should be {drift.desired or '-'}, was {drift.observed or '-'}: {drift.action}"
        yield text if drift.age is None else f"{text} {age_text(drift.age)} ago"
    for event in node.events:
        yield f"{event.type} {event.reason}, {age_text(event.age)} ago: {event.note}"
    if node.owner:
        yield f"of claim {node.owner}: fairlead trace {node.owner}"
    if node.console and (form.wide or node.is_cause):
        yield node.console


def _cause(node: Node) -> Iterator[str]:
    if not node.is_current:
        yield "the conditions speak of an older spec; the newest one was not looked at yet"
    if node.message:
        yield node.message
    # Once more, to be copied: within the message they may be broken over lines.
    yield from (f"{_PROMPT}{command}" for command in _COMMAND.findall(node.message))
    move = next_actor(node.reason)
    if move:
        yield f"next move: {move}"
    if needs_a_person(node.reason):
        yield f"more: fairlead explain {node.reason}"


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    """Return a text below its node; what goes on is set in deeper, so that a text of others begins no line of ours."""
    begin = f"{indent}   "
    if text.startswith(_PROMPT):
        return [f"{begin}{readable(text)}"]
    return fitted(readable(text), width, begin=begin, then=f"{begin}  ")


def dot_of(tree: Node) -> Iterator[str]:
    """Yield a tree as a graph in DOT (graphviz.org/doc/info/lang.html); the first cause is red."""
    yield "digraph {"
    yield "  node [shape=box];"
    yield from _dot(tree, "n")
    yield "}"


def _dot(node: Node, place: str) -> Iterator[str]:
    label = f"{node.kind}/{node.name}\n{node.ready} {node.reason}"
    colour = ', color="red"' if node.is_cause else ""
    yield f"  {place} [label={_quoted(label)}{colour}];"
    for number, child in enumerate(node.children):
        below = f"{place}_{number}"
        yield f"  {place} -> {below};"
        yield from _dot(child, below)


def _quoted(text: str) -> str:
    lines = [readable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
