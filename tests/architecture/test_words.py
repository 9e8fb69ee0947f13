"""Retired words stay away: names and docstrings of product and tests say the field's."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import msgspec
import pytest

from tests.architecture import tree

# Product and tests.
ROOTS = (*tree.PACKAGES, "benchmarks", "tests")


class Retired(msgspec.Struct, frozen=True):
    """Words that gave way to the field's."""

    words: tuple[str, ...]
    "Retired as parts of names and in docstrings; of two words, both in this order."
    instead: str
    names: tuple[str, ...] = ()
    "Retired as the whole of a name, spelled so: the field has other uses of the word."


RETIRED = (
    Retired(("tell", "tells", "told", "telling", "teller"), "return, emit, report"),
    Retired(("spoken",), "teardown instruction", ("speaks", "word_of")),
    Retired(("news", "steers", "heard"), "event, predicate"),
    Retired(("wayback", "way back"), "rollback"),
    Retired(("offence", "offences", "fight", "fights"), "field conflict, yielded until"),
    Retired(("brake", "brakes"), "destroy rate limit, prune guard"),
    Retired(("words wait",), "debounce"),
    Retired(("workshop", "jail", "jailed", "lane", "lanes", "suspect", "suspects"), "render pool, seccomp, throttle"),
    Retired((), "add, remove", ("count_in",)),
    Retired(
        ("gravity", "gravest"),
        "Snapshot, ObservedChild, Inputs, Constraints, Dependencies, Summary, ReasonClass",
        ("View", "Known", "Scene", "Bounds", "Around", "Beside", "Verdict", "beside"),
    ),
    Retired(("futile", "sift", "sifted"), "rejected, in flight"),
    Retired(("let go",), "Orphan, Delete, RemoveFinalizer"),
    Retired(("asked anew",), "reconcile requested, propagate", ("pass_on",)),
    Retired(("birth", "births", "born", "newborn", "reborn"), "create, recreate"),
    Retired(("translator", "advice", "objection", "objections"), "client_for, warnings, refusal"),
    Retired((), "external reference, renames, invariants, last seen", ("Marks", "marks", "moves", "guarded", "looks")),
    Retired(("crew", "breathe", "nudge", "nudged"), "Manager, yield to loop, retry now"),
    Retired((), "connectivity, stalled for", ("Reach", "stands_for")),
    Retired(("door", "doors", "fronts", "occurrence", "occurrences"), "control API, TLS proxy, RDS events"),
    Retired((), "TLS proxy, jobs, offerings", ("Front", "front", "works", "Offers", "offers")),
)
# What says nothing of a value: it is named after the thing that it is.
NO_NAMES = frozenset({"found", "one", "each", "given", "what", "told", "asked"})
_NAMES = {name: retired.instead for retired in RETIRED for name in retired.names}
_WORDS = {word: retired.instead for retired in RETIRED for word in retired.words}
_WORD = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b")


@functools.cache
def _complaints(name: str) -> tuple[str, ...]:
    """Return what to write instead of a name, for each retired word in it; a name is looked at once in a process."""
    whole = name.strip("_")
    vague = ("name it after the thing that it is",) if whole in NO_NAMES else ()
    retired = (_NAMES[whole],) if whole in _NAMES else ()
    return (*vague, *retired, *(_WORDS[word] for word in _WORD.findall(_parts(name))))


def _parts(name: str) -> str:
    """Return the words of a name, apart and in small letters."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("_", " ")


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
    for node in ast.walk(tree.parsed(source)):
        name = _bound(node)
        line = getattr(node, "lineno", 1)
        yield from (f"{line}: {name}: {instead}" for instead in _complaints(name))
        prose = " ".join(_docstring(node).lower().split())
        if prose:
            yield from (f"{line}: docstring, {word}: {_WORDS[word]}" for word in _WORD.findall(prose))


def test_a_module_uses_no_retired_word() -> None:
    wrong = [
        f"{tree.name_of(path)}:{place}"
        for path in tree.modules(*ROOTS)
        for source in (f"{path.stem.removeprefix('__')} = 0\n", path.read_text(encoding="utf-8"))
        for place in retired_in(source)
    ]

    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "for each in x: pass",
        "def f(_told): pass",
        "class DoorOfAll: pass",
        'def f():\n    """Tell whether it is so."""',
        'class Rollback:\n    """The way\n    back."""',
        "self.nudge = 1",
        "import a as news",
        "_words_wait = 1",
        "class LetGo: pass",
        "class _Scene: pass",
        "def pass_on(x): pass",
    ],
)
def test_a_retired_word_is_noticed(source: str) -> None:
    assert list(retired_in(source))


@pytest.mark.parametrize("source", ["known = marks_of(scene)", "class Outdoor: pass", "pass_on_success = one_day"])
def test_a_word_of_the_field_stays(source: str) -> None:
    assert list(retired_in(source)) == []
