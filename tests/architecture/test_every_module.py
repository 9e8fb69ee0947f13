"""What is looked at in every module of product and tests, each parsed once: retired words, and sizes.

Names and docstrings say the field's words. No module has over 400 lines, no function over 60, without a reason beside
it; no folder has over 20 modules.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.architecture import tree
from tests.support.longest_first import has_cache

# Product and tests.
ROOTS = (*tree.PACKAGES, "benchmarks", "tests")
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
MOST_MODULES = 20
ROOMS = ("composer", "providers", "devcloud")
REASON = "# long: "
_REMEMBERED = "fairlead/breaches of modules"


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


# Where a node keeps the name that it binds; one with a context binds it where it is stored.
_BINDING = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.arg: "arg",
    ast.alias: "asname",
    ast.MatchAs: "name",
    ast.Name: "id",
    ast.Attribute: "attr",
}
_STORED = ast.Store()
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def retired_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what the nodes of a module name or say with a retired word, with what to write instead."""
    for node in nodes:
        kind = type(node)
        if kind in _BINDING and isinstance(getattr(node, "ctx", _STORED), ast.Store):
            name = getattr(node, _BINDING[kind]) or ""
            line = getattr(node, "lineno", 1)
            yield from (f"{line}: {name}: {instead}" for instead in _complaints(name))
        if isinstance(node, _DOCUMENTED):
            prose = " ".join((ast.get_docstring(node) or "").lower().split())
            line = getattr(node, "lineno", 1)
            yield from (f"{line}: docstring, {word}: {_WORDS[word]}" for word in _WORD.findall(prose))


def _has_reason(lines: list[str]) -> bool:
    return any(REASON in line and len(line.split(REASON, 1)[1].strip()) >= len("one sentence") for line in lines)


def oversized(source: str, nodes: Iterable[ast.AST]) -> list[str]:
    """Name the module (line 1) and functions of a source that are too long and give no reason."""
    lines = source.splitlines()
    too_long = []
    if len(lines) > LONGEST_MODULE and not _has_reason([line for line in lines if line.startswith(REASON)]):
        too_long.append(f"1: the module has {len(lines)} lines")
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONGEST_FUNCTION and not _has_reason(lines[max(0, node.lineno - 2) : node.body[0].lineno]):
            too_long.append(f"{node.lineno}: {node.name} has {length} lines")
    return too_long


@pytest.fixture(scope="module")
def breaches(pytestconfig: pytest.Config) -> dict[str, list[str]]:
    """Return the breaches of all modules; those of one that is as it was in the last run are those of then."""
    remembered = _remembered(pytestconfig)
    kept: dict[str, list[Any]] = {}
    for path in tree.modules(*ROOTS):
        name, stamp = tree.name_of(path), path.stat().st_mtime_ns
        if name in remembered and remembered[name][0] == stamp:
            kept[name] = remembered[name]
            continue
        source = path.read_text(encoding="utf-8")
        nodes = tuple(ast.walk(tree.parsed(source)))
        retired = [*retired_in(_nodes(f"{path.stem.removeprefix('__')} = 0")), *retired_in(nodes)]
        kept[name] = [stamp, retired, oversized(source, nodes)]
    if has_cache(pytestconfig):
        pytestconfig.cache.set(_REMEMBERED, {"rules": Path(__file__).stat().st_mtime_ns, "modules": kept})
    columns = enumerate(("words", "sizes"), start=1)
    return {of: [f"{name}:{place}" for name, row in kept.items() for place in row[column]] for column, of in columns}


def _remembered(config: pytest.Config) -> dict[str, list[Any]]:
    """Return when each module was looked at, and its breaches, by these rules as they are now."""
    last = config.cache.get(_REMEMBERED, None) if has_cache(config) else None
    if not last or last["rules"] != Path(__file__).stat().st_mtime_ns:
        return {}
    return dict(last["modules"])


def _nodes(source: str) -> Iterator[ast.AST]:
    return ast.walk(tree.parsed(source))


@pytest.mark.parametrize("of", ["words", "sizes"])
def test_a_module_keeps_the_rules(breaches: dict[str, list[str]], of: str) -> None:
    assert breaches[of] == []


def test_folder_has_few_modules() -> None:
    modules = (path for path in tree.modules(*ROOMS) if path.stem != "__init__")
    counts = Counter(str(path.parent.relative_to(tree.ROOT)) for path in modules)

    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}
