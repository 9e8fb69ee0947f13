"""YAML with the place of everything in it, by the reader that keeps them: for errors, for doubts, and to write.

It is loaded when it is needed: most files are read without it.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString
from ruamel.yaml.tokens import AliasToken, AnchorToken

from fairlead.exits import CommandError, Exit
from fairlead.kubectl_yaml import differences, read
from fairlead.yaml_files import OBJECT, SHAPE, TEXT, Document, Place, invalid
from runtime.objects import Object

_SHOWN_CHARACTERS = 40
# Of each type the first that fits: a truth value is a number, too.
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, TEXT),
    (CommentedMap, OBJECT),
    (CommentedSeq, "a list"),
)
_QUOTED = frozenset({"true or false", "a number"})


def documents(path: Path, text: str) -> list[tuple[Document, int]]:
    """Return documents that are no others for kubectl, and the lines from 0 where they begin.

    Raises CommandError with each scalar that is another one, or with the place where a text is no YAML.
    """
    with _in_our_words(path, text):
        read = list(_documents(path, text))
        faults = [str(invalid(Place(path, fault.line, fault.column), str(fault))) for fault in differences(text)]
    if faults:
        raise CommandError("\n".join(faults), exit_code=Exit.INVALID_INPUT)
    return read


@contextmanager
def _in_our_words(path: Path, text: str) -> Iterator[None]:
    try:
        yield
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Place(path, mark.line + 1, mark.column + 1) if mark else path
        raise invalid(where, f"not YAML: {_in_words(error, text)}") from error
    except ReaderError as error:
        before = text[: error.position]
        where = Place(path, before.count("\n") + 1, error.position - before.rfind("\n"))
        raise invalid(where, f"not YAML: character U+{ord(text[error.position]):04X} is not allowed") from error
    except YAMLError as error:
        raise invalid(path, f"not YAML: {error}") from error


@functools.lru_cache(maxsize=8)
def all_documents(path: Path, text: str) -> tuple[Document, ...]:
    """Return all documents of a text with their places; a file with many faults is read once for all of them."""
    return tuple(document for document, _ in _documents(path, text))


class _Constructor(RoundTripConstructor):
    """Leaves times as they are written, as kubectl does: JSON has none."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", RoundTripConstructor.construct_yaml_str)


def _documents(path: Path, text: str) -> Iterator[tuple[Document, int]]:
    yaml = YAML()
    yaml.Constructor = _Constructor
    # A place within a quoted text counts from behind the quote.
    yaml.preserve_quotes = True
    for marked in yaml.load_all(text):
        if marked is not None:
            yield from ((document, document.where("", 0)[0] - 1) for document in _unlisted(path, marked))


def _unlisted(path: Path, marked: Any) -> Iterator[Document]:
    if not isinstance(marked, CommentedMap):
        raise invalid(path, f"a document is no Kubernetes object: {str(marked)[:_SHOWN_CHARACTERS]!r}")
    if not marked.get("apiVersion") or not marked.get("kind"):
        where = Place(path, marked.lc.line + 1, marked.lc.col + 1)
        raise invalid(where, "no Kubernetes object: it needs apiVersion and kind")
    if (marked["apiVersion"], marked["kind"]) == ("v1", "List") and isinstance(marked.get("items"), CommentedSeq):
        for item in marked["items"]:
            yield from _unlisted(path, item)
        return
    content: Object = _plain(marked)
    document = Document(path, content, functools.partial(_where, marked))
    for json_path, wants in SHAPE.items():
        _refuse_other_than(document, marked, json_path, wants)
    yield document


def _refuse_other_than(document: Document, marked: CommentedMap, json_path: str, wants: str) -> None:
    """Refuse what is there and is no `wants`: the API server reads the head of an object before all else."""
    value: Any = marked
    for name in json_path.split("."):
        value = value.get(name) if isinstance(value, CommentedMap) else None
    kind = next((words for type_, words in _TYPES if isinstance(value, type_)), "")
    if value is not None and kind != wants:
        hint = "; quote it" if kind in _QUOTED else ""
        text = f"{json_path}: wants {wants}, found {kind or 'something else'}{hint}"
        raise invalid(document.place(json_path), text)


def refuse_aliases(path: Path, text: str) -> None:
    """Raise CommandError with the place of the first anchor or alias."""
    with _in_our_words(path, text):
        for token in YAML(typ="safe", pure=True).scan(io.StringIO(text)):
            if isinstance(token, AnchorToken | AliasToken):
                mark = token.start_mark
                where = Place(path, mark.line + 1, mark.column + 1)
                raise invalid(where, "anchors and aliases are refused: write it out")


def _in_words(error: MarkedYAMLError, text: str) -> str:
    """Say a reader's complaint for who wrote the file."""
    problem, mark = str(error.problem or error.context), error.problem_mark
    lines = text.splitlines()
    if "<stream end>" in problem or "end of stream" in problem:
        return "the file ends before a bracket or a quote is closed"
    if mark is None or mark.line >= len(lines):
        return problem
    if lines[mark.line][mark.column : mark.column + 1] == "\t":
        return "a tab; YAML indents by spaces"
    earlier = [number for number in range(mark.line) if lines[number].strip()]
    is_nested = problem.startswith(("mapping values are not allowed", "expected <block end>"))
    before = lines[earlier[-1]] if earlier else ":"
    if is_nested and _indent(lines[mark.line]) > _indent(before) and not before.rstrip().endswith(":"):
        return f"line {mark.line + 1} is indented deeper than line {earlier[-1] + 1}, which has a value already"
    return problem


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _where(marked: CommentedMap, json_path: str, column: int) -> tuple[int, int]:
    """Return line and column from 1 of a path, or of a column within the text at that path."""
    line, start, value = _walk(marked, json_path, to_value=column > 0)
    if column and isinstance(value, DoubleQuotedScalarString | SingleQuotedScalarString):
        start += column
    elif column and isinstance(value, str) and "\n" not in value and not isinstance(value, LiteralScalarString):
        start += column - 1
    return line + 1, start + 1


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(item) for name, item in value.items()}
        case Sequence() if not isinstance(value, str):
            return [_plain(item) for item in value]
        case None | bool():
            return value
        case int() | float():
            # The reader's own number types remember how they were written.
            return int(value) if isinstance(value, int) else float(value)
        case _:
            return str(value)


def _walk(marked: CommentedMap, json_path: str, *, to_value: bool) -> tuple[int, int, Any]:
    """Follow a path as far as it goes; return line and column from 0 of the name or its value, and the value."""
    line, column = marked.lc.line, marked.lc.col
    node: Any = marked
    rest = json_path
    while rest:
        step = _step(node, rest)
        if step is None:
            break
        name, rest = step
        if isinstance(node, CommentedMap):
            line, column = node.lc.value(name) if to_value else node.lc.key(name)
        else:
            line, column = node.lc.item(name)
        node = node[name]
    return line, column, node


def _step(node: Any, path: str) -> tuple[Any, str] | None:
    """Split the first step off a path; names may hold dots, so the longest that fits is taken."""
    if isinstance(node, CommentedSeq):
        index, bracket, rest = path.removeprefix("[").partition("]")
        fits = path.startswith("[") and bracket and index.isdigit() and int(index) < len(node)
        return (int(index), rest.removeprefix(".")) if fits else None
    if isinstance(node, CommentedMap):
        fitting = [
            name for name in node if isinstance(name, str) and path.startswith(name) and path[len(name) :][:1] in "[."
        ]
        if fitting:
            name = max(fitting, key=len)
            return name, path[len(name) :].removeprefix(".")
    return None


class _Representer(RoundTripRepresenter):
    """Quotes the texts that kubectl would take for something else: `off` is false there."""

    def represent_str(self, data: str) -> ScalarNode:
        """Write a text."""
        is_ambiguous = read(data) != data
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style="'" if is_ambiguous else None)
        return node


_Representer.add_representer(str, _Representer.represent_str)


def dump(obj: Object) -> str:
    """Write one object as YAML, fields in their order, lines unbroken; kubectl reads the same."""
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.width = 4096
    sink = io.StringIO()
    yaml.dump(obj, sink)
    return sink.getvalue()
