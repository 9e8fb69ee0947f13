"""docs/names.md, the code, the CRDs, the Compositions and deploy/ use the same names."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.architecture import tree

# A cloud may bring a page of its own, with the same sections.
PAGES = [path.read_text(encoding="utf-8") for path in sorted((tree.ROOT / "docs").glob("names*.md"))]
PAGE = "\n".join(PAGES)
NAMES = tree.words(PAGE)


def _section(number: int) -> str:
    parts = [page.split(f"\n## {number}. ", 1)[1] for page in PAGES if f"\n## {number}. " in page]
    return "\n".join(part.split("\n## ", 1)[0] for part in parts)


def _promised(text: str) -> set[str]:
    """Return the names that a text reserves: those between `Reserved` and the end of its paragraph or item."""
    blocks: list[str] = re.findall(r"[Rr]eserved[:,](.*?)(?:\n\n|\n- |\Z)", text, re.DOTALL)
    return {name for block in blocks for name in tree.words(block)}


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(("| `", "| **"))]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


# Kinds


def _kind_of(crd: dict[str, Any]) -> list[str]:
    names, spec = crd["spec"]["names"], crd["spec"]
    scope = {"Namespaced": "N", "Cluster": "C"}[spec["scope"]]
    stateful = crd["metadata"].get("labels", {}).get("fairlead.dev/stateful") == "true"
    return [
        spec["group"],
        names["kind"],
        names["plural"],
        " ".join(names.get("shortNames", [])),
        scope,
        "yes" if stateful else "",
    ]


@functools.cache
def _crds() -> list[dict[str, Any]]:
    return [crd for _, crd in tree.documents(tree.CRDS) if crd["kind"] == "CustomResourceDefinition"]


def test_kinds_are_the_crds() -> None:
    assert sorted(_rows(_section(1))) == sorted(_kind_of(crd) for crd in _crds())


def test_categories_follow_the_scope() -> None:
    expected = {"Namespaced": ["fairlead"], "Cluster": ["fairlead-platform"]}
    wrong = [
        crd["metadata"]["name"]
        for crd in _crds()
        if crd["spec"]["names"].get("categories") != expected[crd["spec"]["scope"]]
    ]

    assert wrong == []


# Labels, annotations, finalizers, field managers: everything with our prefix

OURS = re.compile(r"(?:fairlead\.dev|servicebinding\.io)/[a-z][a-z-]*")
PREFIXES = {"PREFIX": "fairlead.dev/", "GROUP": "fairlead.dev"}
VERSIONS = {"fairlead.dev/v", "servicebinding.io/v"}


def _fold(node: ast.AST) -> str:
    """Return the text of an expression as far as it is constant; names of PREFIXES count as their text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return PREFIXES.get(name, "\0")
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _fold(left) + _fold(right)
        case ast.JoinedStr(values=values):
            return "".join(_fold(value) for value in values)
        case ast.FormattedValue(value=value):
            return _fold(value)
        case _:
            return "\0"


@functools.cache
def _texts(path: Path) -> tuple[str, ...]:
    if path.suffix != ".py":
        return (path.read_text(encoding="utf-8"),)
    texts = (ast.Constant, ast.BinOp, ast.JoinedStr)
    return tuple(_fold(node) for node in tree.nodes(path) if isinstance(node, texts))


@functools.cache
def _sources() -> list[Path]:
    data = [path for folder in ("crds", "compositions", "deploy") for path in (tree.ROOT / folder).rglob("*.yaml")]
    return [*tree.modules(*tree.PACKAGES), *sorted(data)]


@functools.cache
def _prefixed() -> dict[str, str]:
    """Return the names with our prefix that the sources use, each with a file that does."""
    return {name: tree.name_of(path) for path in _sources() for text in _texts(path) for name in OURS.findall(text)}


def test_prefixed_names_are_on_the_page() -> None:
    used = {name: file for name, file in _prefixed().items() if name not in VERSIONS}

    assert {name: file for name, file in used.items() if not any(_covers(name, known) for known in NAMES)} == {}


def test_every_prefixed_name_of_the_page_is_used() -> None:
    offered = {name for name in NAMES if OURS.fullmatch(name)} - _promised(PAGE)

    assert {name for name in offered if not any(_covers(text, name) for text in _prefixed())} == set()


def _covers(used: str, name: str) -> bool:
    """Return whether what stands in a source is the name, or the start that the source completes at run time."""
    return used == name or (used.endswith("-") and name.startswith(used))


# Reasons of conditions and events

TWO_HUMPS = re.compile(r"(?:[A-Z][a-z]+){2,}")
KUBERNETES = frozenset(
    {
        # kinds, reasons, types and fields of Kubernetes itself
        "ConfigMap",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "SelfSubjectAccessReview",
        "StatefulSet",
    }
)

# Fields and phases of the operators that composer/render/operators knows
OPERATORS = frozenset(
    {
        "CreateFailed",
        "DeleteFailed",
        "DependencyInvalid",
        "ManagementConflict",
        "PostActuationTransformFailed",
        "PostgresClusterStatus",
        "PreActuationTransformFailed",
        "SyncFailed",
        "UpdateFailed",
    }
)


@functools.cache
def _constants() -> frozenset[str]:
    return frozenset(text for path in tree.modules("composer", "providers") for text in tree.strings(path))


def _reasons_in_code() -> set[str]:
    return {text for text in _constants() if TWO_HUMPS.fullmatch(text)}


def _reasons_on_page() -> set[str]:
    return {row[0] for row in _rows(_section(6)) if row[0].isalpha()}


def test_reasons_in_the_code_are_on_the_page() -> None:
    assert _reasons_in_code() - NAMES == KUBERNETES | OPERATORS


def test_reasons_of_the_page_are_in_the_code() -> None:
    assert len(_reasons_on_page()) > len(_promised(_section(6)))
    assert _reasons_on_page() - _promised(_section(6)) - _constants() == set()


def test_reserved_reasons_are_not_in_the_code() -> None:
    assert _promised(_section(6)) & _constants() == set()


def test_events_of_the_page_are_in_the_code() -> None:
    assert tree.words(_section(7)) - {"events.k8s.io/v1"} - _promised(_section(7)) - _constants() == set()


# Environment, command line, make


def _variables(path: Path) -> set[str]:
    return {name for text in _texts(path) for name in re.findall(r"\bFAIRLEAD_[A-Z_]+", text)}


def test_environment_variables_are_on_the_page() -> None:
    used = {name for path in [*_sources(), tree.ROOT / "Makefile"] for name in _variables(path)}

    assert used - NAMES == set()
    assert {name for name in NAMES if name.startswith("FAIRLEAD_")} - used == set()


def test_make_targets_are_on_the_page() -> None:
    makefile = (tree.ROOT / "Makefile").read_text(encoding="utf-8")
    (item,) = [line for line in _section(9).split("\n- ") if line.startswith("make:")]
    offered = set(re.findall(r"^([a-z0-9]+):[^#]*## ", makefile, re.MULTILINE))

    assert offered == tree.words(item) - _promised(item) - {"RECORDINGS", "CRDS", "AT_REST", "LAYOUTS", "SITE"}


def test_commands_are_on_the_page() -> None:
    from fairlead.cli import app  # noqa: PLC0415 - a test of names must not fail on a broken command line alone

    (item,) = [line for line in _section(9).split("\n- ") if line.strip().startswith("`fairlead`:")]
    offered = {command for name in app if not name.startswith("-") for command in _spelled(name, app[name])}

    assert offered == tree.words(item) - _promised(item) - {"fairlead"}


def test_a_command_in_a_message_or_page_exists() -> None:
    reserved = "|".join(sorted(_promised(_section(9))))
    pages = [path for folder in ("docs", "docs/dev", ".") for path in (tree.ROOT / folder).glob("*.md")]
    wrong = {
        f"{path.relative_to(tree.ROOT)}: {command}"
        for path in [*_sources(), *pages]
        for text in _texts(path)
        for command in re.findall(rf"\bfairlead (?:{reserved})\b", text)
    }

    assert wrong == set()


def _spelled(name: str, command: Iterable[str]) -> set[str]:
    """Spell a command, or those below it where it is a group."""
    below = {word for word in command if not word.startswith("-")}
    return {f"{name} {word}" for word in below} or {name}


# What the installs create

CLUSTER_OBJECTS = frozenset(
    {"Namespace", "ServiceAccount", "ClusterRole", "ValidatingAdmissionPolicy", "ConfigMap", "Deployment"}
)


def test_names_of_the_installs_are_on_the_page() -> None:
    installed = {
        document["metadata"]["name"]
        for _, document in tree.documents(tree.KUSTOMIZE)
        if document["kind"] in CLUSTER_OBJECTS
    }

    assert installed - NAMES == set()
