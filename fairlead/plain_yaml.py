"""YAML by the parser in C, where what a file says is beyond doubt; a tenth of the time of one that keeps the places.

Whatever two readers, or two versions of YAML, might take differently is left to the other reader: it decides, and says
what is wrong with it and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from runtime.objects import Object

_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
# What some version of YAML takes for a number or a time: what has digits and no letter but those of numbers, uids left
# out; and a few words, of which some are true or false for kubectl.
_DOUBTFUL: Final = re.compile(
    r"(?!\w{8}(?:-\w{4}){3}-\w{12}$)[-+]?\.?[0-9][-+.:_0-9a-fA-FoOxXTtZz ]*|[-+]?\.(?:inf|nan)?|=|<<|y|n|yes|no|on|off",
    re.IGNORECASE,
)
_MOST_LEVELS: Final = 100
# Ends of lines in YAML 1.1 alone, and what only one of the readers accepts.
_ODD_CHARACTERS: Final = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\ufeff]|^%", re.MULTILINE)


class DoubtError(Exception):
    """What the text says depends on who reads it."""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """One document of a text, and the line from 0 in which it begins."""

    content: Any
    line: int


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]  # PyYAML ships no types
    """Takes every scalar for a text: what it stands for is decided here."""

    yaml_implicit_resolvers: Final[dict[str, Any]] = {}


def documents(text: str) -> list[PlainDocument]:
    """Return the documents of a text without the empty ones, those in a `List` one by one.

    Raises DoubtError where another reader is needed.
    """
    if _ODD_CHARACTERS.search(text):
        raise DoubtError
    try:
        _refuse_depth(text)
        roots = [root for root in yaml.compose_all(text, _Loader) if root is not None]
        return [document for root in roots if not _is_empty(root) for document in _unlisted(root)]
    except yaml.YAMLError as error:
        raise DoubtError from error


def _refuse_depth(text: str) -> None:
    """Raise DoubtError for what is nested deeply: PyYAML's composer in C calls itself until its stack is full."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_LEVELS:
            raise DoubtError


def may_refer(text: str) -> bool:
    """Return whether a text may hold an anchor or an alias: it does, or it cannot be read by this parser."""
    try:
        return any(getattr(event, "anchor", None) for event in yaml.parse(text, _Loader))
    except yaml.YAMLError:
        return True


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and _plain(node, set()) is None


def _unlisted(node: Any) -> Iterator[PlainDocument]:
    content = _plain(node, set())
    if isinstance(content, dict) and (content.get("apiVersion"), content.get("kind")) == ("v1", "List"):
        items = next((value for key, value in node.value if key.value == "items"), None)
        if isinstance(items, yaml.SequenceNode):
            for item in items.value:
                yield from _unlisted(item)
            return
    yield PlainDocument(content, node.start_mark.line)


def _plain(node: Any, seen: set[int]) -> Any:
    """Return what a node stands for; `seen` are the nodes before it, by identity: one that comes again is an alias."""
    if id(node) in seen:
        raise DoubtError
    seen.add(id(node))
    if node.tag != f"{_TAG}{_KINDS[type(node)]}":
        raise DoubtError
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else _scalar(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, seen) for item in node.value]
    content: Object = {}
    for key, value in node.value:
        name = _plain(key, seen)
        if not isinstance(name, str) or name in content:
            raise DoubtError
        content[name] = _plain(value, seen)
    return content


_KINDS: Final[dict[type, str]] = {yaml.ScalarNode: "str", yaml.SequenceNode: "seq", yaml.MappingNode: "map"}


def _scalar(text: str) -> str | int | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return int(text)
    if _DOUBTFUL.fullmatch(text):
        raise DoubtError
    return text
