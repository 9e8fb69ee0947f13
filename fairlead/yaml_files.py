"""YAML files with the places of everything in them, for errors that name file, line and column.

Anchors and aliases are refused: a few lines of them may stand for gigabytes, and no file of ours needs any.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead import plain_yaml
from fairlead.exits import CommandError, Exit
from runtime.objects import Object

_SIZE_LIMIT_BYTES = 1 << 20
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
# An anchor or an alias has a name and begins a token, never the rest of a word. To look for tokens takes as long as to
# read the file, and most have no such place.
_MAY_REFER = re.compile(r"(?<![\w.])[&*][^\s,\[\]{}]")
TEXT, OBJECT = "a text", "an object"
# The head of every object, which is read before a schema is known.
SHAPE: Mapping[str, str] = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": OBJECT,
    "metadata.name": TEXT,
    "metadata.namespace": TEXT,
    "metadata.labels": OBJECT,
    "metadata.annotations": OBJECT,
}


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
    where: Callable[[str, int], tuple[int, int]]

    @classmethod
    def written(cls, path: Path, content: Object) -> Document:
        """Return a document that is part of another one: of places it knows the file alone."""
        return cls(path, content, lambda _path, _column: (1, 1))

    def place(self, json_path: str, column: int = 0) -> Place:
        """Return where a JSON path (`spec.resources[0].name`) stands, or the nearest part above it that exists.

        `column` counts from 1 within the text at that path, where it is written on one line.
        """
        return Place(self.path, *self.where(json_path, column))


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
    if _MAY_REFER.search(text) and plain_yaml.may_refer(text):
        from fairlead import marked_yaml

        marked_yaml.refuse_aliases(path, text)
    for document, line in _plain_documents(path, text) or _marked_documents(path, text):
        _refuse_second(document, line + 1, lines)
        yield document


def _marked_documents(path: Path, text: str) -> list[tuple[Document, int]]:
    from fairlead import marked_yaml

    return marked_yaml.documents(path, text)


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


def _read_again(path: Path, text: str, number: int, json_path: str, column: int) -> tuple[int, int]:
    from fairlead import marked_yaml

    return marked_yaml.all_documents(path, text)[number].where(json_path, column)


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


def _has_head(content: Any) -> bool:
    """Return whether plain data begin as an object does: with names that are texts, and objects of labels."""
    if not isinstance(content, dict) or not (content.get("apiVersion") and content.get("kind")):
        return False
    values: dict[str, Any] = {"": content}
    for json_path, wants in SHAPE.items():
        above, _, name = json_path.rpartition(".")
        values[json_path] = value = (values[above] or {}).get(name)
        if value is not None and not isinstance(value, str if wants == TEXT else dict):
            return False
    return True


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


def dump(obj: Object) -> str:
    """Write one object as YAML, fields in their order, lines unbroken; kubectl reads the same."""
    from fairlead import marked_yaml

    return marked_yaml.dump(obj)
