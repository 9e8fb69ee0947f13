"""What the import contracts cannot say: pure modules, clouds that do not know one another, names."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import grimp

from tests.architecture import tree

CONTRACTS = tree.pyproject()["tool"]["importlinter"]["contracts"]
PURE_CONTRACT = next(contract for contract in CONTRACTS if contract["id"] == "pure")


def _says(path: Path, word: str) -> bool:
    return re.search(rf"\b{word}\b", ast.get_docstring(tree.parse(path)) or "") is not None


@functools.cache
def _pure_of_clouds() -> frozenset[Path]:
    """Return the modules of clouds that are pure: all but the wiring and those whose docstring says `Impure`."""
    return frozenset(
        path
        for cloud in tree.clouds("providers")
        for path in tree.modules(f"providers/{cloud}")
        if path.name != "__init__.py" and not _says(path, "Impure")
    )


def _pure_of_rooms() -> set[Path]:
    """Return the modules of the rooms that the contract names: pure as a whole."""
    return {
        path
        for name in PURE_CONTRACT["source_modules"]
        for path in tree.ROOT.glob(re.sub(r"\*\*$", "**/*", name.replace(".", "/")) + ".py")
    }


@functools.cache
def _saying_pure() -> frozenset[Path]:
    modules = tree.modules(*tree.PACKAGES)
    return frozenset(path for path in modules if path.name != "__init__.py" and _says(path, "Pure"))


@functools.cache
def _pure() -> list[Path]:
    return sorted(_saying_pure() | _pure_of_clouds() | _pure_of_rooms())


@functools.cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(*tree.PACKAGES, include_external_packages=True, exclude_type_checking_imports=True)


def test_clouds_do_not_know_one_another() -> None:
    graph = _graph()
    chains = {
        f"{package}.{cloud} -> {package}.{other}"
        for package in ("providers", "devcloud")
        for cloud, other in itertools.permutations(tree.clouds(package), 2)
        if graph.find_shortest_chains(f"{package}.{cloud}", f"{package}.{other}", as_packages=True)
    }

    assert chains == set()


def test_the_generic_part_of_providers_knows_no_cloud() -> None:
    graph = grimp.build_graph("providers", "apis", "runtime")
    clouds = {f"providers.{cloud}" for cloud in tree.clouds("providers")}

    def of_a_cloud(module: str) -> bool:
        return ".".join(module.split(".")[:2]) in clouds

    known = {
        f"{module} -> {imported}"
        for module in graph.modules
        if not of_a_cloud(module)
        for imported in graph.find_modules_directly_imported_by(module)
        if of_a_cloud(imported)
    }

    assert known == set()


def _impure_chains(graph: grimp.ImportGraph) -> set[str]:
    """Return how pure modules reach what they may not."""
    forbidden = {name for name in PURE_CONTRACT["forbidden_modules"] if name in graph.modules}
    reached = ((module, graph.find_upstream_modules(module) & forbidden) for module in map(tree.module_name, _pure()))
    chains = (graph.find_shortest_chain(module, name) for module, names in reached for name in names)
    return {" -> ".join(chain) for chain in chains if chain}


def test_pure_modules_reach_no_event_loop_no_sdk_no_clock_and_no_system() -> None:
    # Most say so themselves; who takes it out of a docstring takes a module out of this test.
    assert len(_saying_pure()) > 120
    assert _impure_chains(_graph()) == set()


CLOCKS = frozenset({"now", "utcnow", "today", "monotonic", "perf_counter", "time_ns", "monotonic_ns"})


def test_pure_modules_do_not_read_the_clock() -> None:
    reads = [
        f"{tree.name_of(path)}:{node.lineno} {ast.unparse(node)}"
        for path in _pure()
        for node in tree.nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
    ]

    assert reads == []


def test_pure_modules_hold_no_coroutine() -> None:
    coroutines = [
        f"{tree.name_of(path)}:{node.lineno} {node.name}"
        for path in _pure()
        for node in tree.nodes(path)
        if isinstance(node, ast.AsyncFunctionDef)
    ]

    assert coroutines == []


FOREIGN_TO_THE_RUNTIME = re.compile(
    r"postgres|database|\bsql\b|\brds\b|\baws\b|\bgcp\b|azure|on-?prem|fairlead|jinja"
    r"|\bclaims\b|\b(a|the) claim\b|\bcompositions?\b|\bcomposer\b",
    re.IGNORECASE,
)


def test_the_runtime_would_fit_another_project() -> None:
    foreign = [
        f"{path.name}:{number}: {line}"
        for path in tree.modules("runtime")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FOREIGN_TO_THE_RUNTIME.search(line)
    ]

    assert foreign == []


BANNED_VERBS = re.compile(r"^_?(handle|process|do)(_|$)|(^|_)(helpers?|utils?)$")
BANNED_NOUNS = re.compile(r"(helper|util|handler|processor|(?<!^)manager)s?$", re.IGNORECASE)


def _vague(path: Path) -> Iterator[str]:
    if BANNED_NOUNS.search(path.stem):
        yield path.name
    for node in tree.nodes(path):
        match node:
            case ast.ClassDef(name=name) if BANNED_NOUNS.search(name):
                yield f"{path.name}:{node.lineno} {name}"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if BANNED_VERBS.search(name):
                yield f"{path.name}:{node.lineno} {name}"
            case _:
                continue


def test_names_say_what_they_mean() -> None:
    assert [name for path in tree.modules(*tree.PACKAGES) for name in _vague(path)] == []
