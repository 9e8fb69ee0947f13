"""Retired words stay away: the packages that are clean of them, in names and docstrings. The list of packages grows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.architecture import tree

CLEAN = ("apis", "runtime", "devcloud", "fairlead", "benchmarks")


class Retired(msgspec.Struct, frozen=True):
    """Words that gave way to the field's: as parts of names, and in docstrings."""

    words: tuple[str, ...]
    instead: str


RETIRED = (
    Retired(("tell", "tells", "told", "telling", "teller"), "return, emit, report"),
    Retired(("news", "steers", "heard"), "event, predicate"),
    Retired(("wayback", "workshop", "jail", "lane", "suspect"), "rollback, render pool, seccomp, throttle"),
    Retired(("offence", "brake", "futile", "sift"), "field conflict, destroy rate limit, rejected, in flight"),
    Retired(("birth", "births", "born", "newborn", "reborn"), "creation, created"),
    Retired(("translator", "objection", "gravity"), "client_for, refusal, ReasonClass"),
    Retired(("crew", "breathe", "nudge"), "Manager, yield to loop, retry now"),
    Retired(("door", "doors", "fronts", "occurrence", "occurrences"), "control API, TLS proxy, RDS events"),
)
# What says nothing of a value: it is named after the thing that it is.
NO_NAMES = frozenset({"found", "one", "each", "given", "what", "told", "asked"})
_WORDS = {word: retired.instead for retired in RETIRED for word in retired.words}


def _parts(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def _bound(node: ast.AST) -> str:
    """Return the name that a node binds, empty for none."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)):
            return name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case _:
            return ""


def _docstring(node: ast.AST) -> str:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    return ast.get_docstring(node) or ""


def retired_in(source: str) -> Iterator[str]:
    """Yield what a source names or says with a retired word, with what to write instead."""
    for node in ast.walk(ast.parse(source)):
        name = _bound(node)
        line = getattr(node, "lineno", 1)
        if name.strip("_") in NO_NAMES:
            yield f"{line}: {name}: name it after the thing that it is"
        yield from (f"{line}: {name}: {_WORDS[part]}" for part in _parts(name) if part in _WORDS)
        for word in re.findall(r"[a-z]+", _docstring(node).lower()):
            if word in _WORDS:
                yield f"{line}: docstring, {word}: {_WORDS[word]}"


@pytest.mark.parametrize("path", tree.modules(*CLEAN), ids=lambda path: str(path.relative_to(tree.ROOT)))
def test_words_that_are_retired_are_not_used(path: Path) -> None:
    assert list(retired_in(f"{path.stem.removeprefix('__')} = 0\n")) == []
    assert list(retired_in(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "for each in x: pass",
        "def f(_told): pass",
        "class DoorOfAll: pass",
        'def f():\n    """Tell whether it is so."""',
        "self.nudge = 1",
        "import a as news",
    ],
)
def test_words_that_are_retired_are_seen(source: str) -> None:
    assert list(retired_in(source))
