"""YAML files with the places of everything in them, for errors that name file, line and column.

Anchors and aliases are refused: a few lines of them may stand for gigabytes, and no file of ours needs any.
"""

from __future__ import annotations

import codecs
import functools
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

from fairlead import plain_yaml
from fairlead.exits import CommandError, Exit
from fairlead.kubectl_yaml import differences, read
from runtime.objects import Object

_SIZE_LIMIT_BYTES = 1 << 20
_SHOWN_CHARACTERS = 40
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
# An anchor or an alias has a name and begins a token, never the rest of a word. To look for tokens takes as long as to
# read the file, and most have no such place.
_MAY_REFER = re.compile(r"(?<![\w.])[&*][^\s,\[\]{}]")
_TEXT, _OBJECT = "a text", "an object"
# The head of every object, which is read before a schema is known. Of each type the first that fits: a truth value is a
# number, too.
_SHAPE: Mapping[str, str] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": _OBJECT,
    "metadata.name": _TEXT,
    "metadata.namespace": _TEXT,
    "metadata.labels": _OBJECT,
    "metadata.annotations": _OBJECT,
}
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, _TEXT),
    (CommentedMap, _OBJECT),
    (CommentedSeq, "a list"),
)
_QUOTED = frozenset({"true or false", "a number"})


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; line and column count from 1."""

    path: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: plain data, and where each part of it stands."""

    path: Path
    content: Object
    marked: Callable[[], CommentedMap]

    @classmethod
    def written(cls, path: Path, content: Object) -> Document:
        """Return a document that is part of another one: of places it knows the file alone."""
        marked = CommentedMap()
        marked.lc.line = marked.lc.col = 0
        return cls(path, content, lambda: marked)

    def place(self, json_path: str, column: int = 0) -> Place:
        """Return where a JSON path (`spec.resources[0].name`) stands, or the nearest part above it that exists.

        `column` counts from 1 within the text at that path, where it is written on one line.
        """
        line, start, value = _walk(self.marked(), json_path, to_value=column > 0)
        if column and isinstance(value, DoubleQuotedScalarString | SingleQuotedScalarString):
            start += column
        elif column and isinstance(value, str) and "\n" not in value and not isinstance(value, LiteralScalarString):
            start += column - 1
        return Place(self.path, line + 1, start + 1)


def invalid(place: Place | Path, message: str) -> CommandError:
    """Return the error for bad input at a place."""
    return CommandError(f"{place}: {message}", exit_code=Exit.INVALID_INPUT)


def files_in(path: Path) -> Iterator[Path]:
    """Yield a file itself, or all YAML and JSON files of a folder in the order of their names.

    Folders called `tests` below it are passed over: what lies there is no part of what they test.

    Raises CommandError (invalid input) for a folder without any: whoever names it expects something in it.
    """
    if not path.is_dir():
        yield path
        return
    files = [file for file in sorted(path.rglob("*")) if file.suffix in _SUFFIXES and file.is_file()]
    if not files:
        raise invalid(path, f"holds no file that ends in {', '.join(sorted(_SUFFIXES)[:-1])} or {max(_SUFFIXES)}")
    yield from (file for file in files if "tests" not in file.relative_to(path).parts)


def documents_in(path: Path) -> Iterator[Document]:
    """Read the documents of a file, or of all files of a folder; those in a List of `kubectl get -o yaml` one by one.

    Raises CommandError (invalid input) with the place of what is wrong.
    """
    for file in files_in(path):
        yield from _documents_of(file)


def _documents_of(path: Path) -> Iterator[Document]:
    text = _text(path)
    lines: dict[tuple[str, ...], int] = {}
    try:
        _refuse_aliases(path, text)
        for document, line in _plain_documents(path, text) or _undoubted_documents(path, text):
            _refuse_second(document, line + 1, lines)
            yield document
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


def _plain_documents(path: Path, text: str) -> list[tuple[Document, int]]:
    """Return the documents of a text and the lines from 0 where they begin; none where a reader with places is needed.

    Their places are looked for when somebody wants one.
    """
    try:
        read = plain_yaml.documents(text)
    except plain_yaml.DoubtError:
        return []
    if not all(_has_head(plain.content) for plain in read):
        return []
    return [
        (Document(path, plain.content, functools.partial(_read_again, path, text, number)), plain.line)
        for number, plain in enumerate(read)
    ]


def _read_again(path: Path, text: str, number: int) -> CommentedMap:
    return _all_marked(path, text)[number]


@functools.lru_cache(maxsize=8)
def _all_marked(path: Path, text: str) -> tuple[CommentedMap, ...]:
    """Return all documents of a text with their places; a file with many faults is read once for all of them."""
    return tuple(document.marked() for document, _ in _marked_documents(path, text))


def _undoubted_documents(path: Path, text: str) -> list[tuple[Document, int]]:
    """Return documents that are no others for kubectl. Raises CommandError with each scalar that is."""
    documents = list(_marked_documents(path, text))
    faults = [str(invalid(Place(path, fault.line, fault.column), str(fault))) for fault in differences(text)]
    if faults:
        raise CommandError("\n".join(faults), exit_code=Exit.INVALID_INPUT)
    return documents


class _Constructor(RoundTripConstructor):
    """Leaves times as they are written, as kubectl does: JSON has none."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", RoundTripConstructor.construct_yaml_str)


def _marked_documents(path: Path, text: str) -> Iterator[tuple[Document, int]]:
    yaml = YAML()
    yaml.Constructor = _Constructor
    # A place within a quoted text counts from behind the quote.
    yaml.preserve_quotes = True
    for marked in yaml.load_all(text):
        if marked is not None:
            yield from ((document, document.marked().lc.line) for document in _unlisted(path, marked))


def _refuse_second(document: Document, line: int, lines: dict[tuple[str, ...], int]) -> None:
    """Refuse an object that stands in its file already; `lines` are those of the objects before, by what they are."""
    content = document.content
    meta = content.get("metadata") or {}
    if not meta.get("name"):
        return
    group = content["apiVersion"].rpartition("/")[0]
    home = str(meta.get("namespace") or "")
    first = lines.setdefault((group, content["kind"], home, meta["name"]), line)
    if first != line:
        name = "/".join(filter(None, (home, meta["name"])))
        text = f"{content['kind']} {name} is in this file already, in line {first}: kubectl would apply the last"
        raise invalid(document.place(""), text)


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
    document = Document(path, content, lambda: marked)
    for json_path, wants in _SHAPE.items():
        _refuse_other_than(document, marked, json_path, wants)
    yield document


def _has_head(content: Any) -> bool:
    """Return whether plain data begin as an object does: with names that are texts, and objects of labels."""
    if not isinstance(content, dict) or not (content.get("apiVersion") and content.get("kind")):
        return False
    values: dict[str, Any] = {"": content}
    for json_path, wants in _SHAPE.items():
        above, _, name = json_path.rpartition(".")
        values[json_path] = value = (values[above] or {}).get(name)
        if value is not None and not isinstance(value, str if wants == _TEXT else dict):
            return False
    return True


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


def objects_in(folder: Path, names: str) -> list[Object]:
    """Read the reviewed objects of ours in the files of a folder whose names match a pattern, without their places."""
    return [document.content for file in sorted(folder.glob(names)) for document in _documents_of(file)]


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > _SIZE_LIMIT_BYTES:
            raise invalid(path, "larger than 1 MiB, which no API server accepts")
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise invalid(path, "this is UTF-16: save it as UTF-8")
        text = data.decode()
    except OSError as error:
        raise invalid(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise invalid(path, f"no text: not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise invalid(path, f"no text: a zero byte at byte {data.index(0)}")
    return text


def _refuse_aliases(path: Path, text: str) -> None:
    if not _MAY_REFER.search(text) or not plain_yaml.may_refer(text):
        return
    for token in YAML(typ="safe", pure=True).scan(io.StringIO(text)):
        if isinstance(token, AnchorToken | AliasToken):
            mark = token.start_mark
            raise invalid(Place(path, mark.line + 1, mark.column + 1), "anchors and aliases are refused: write it out")


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
