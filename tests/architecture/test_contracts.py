"""The import contracts hold, and would be seen broken; what they cannot say is checked here."""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

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


def _copy(into: Path) -> Path:
    for package in tree.PACKAGES:
        shutil.copytree(tree.ROOT / package, into / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(tree.ROOT / "pyproject.toml", into)
    return into


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


class Seed(NamedTuple):
    """An import that breaks a contract, in a module of its own; `contract` is how the linter names it."""

    breach: str
    contract: str
    import_: str
    more: tuple[str, str] | None = None
    "The import of a second module by which the breach comes about."


_LAYERS = "fairlead > devcloud > composer | providers > apis > runtime BROKEN"
_MACHINE = "devcloud knows runtime and apis alone BROKEN"
_SIMULATED = "The rooms of the simulated RDS: server > simulator > api > lifecycle > state BROKEN"
_PURE = "Pure modules reach no event loop, no SDK, no clock, no system BROKEN"
_EXTERNAL = "A cloud knows of the providers its external side alone BROKEN"
_BELOW = "Rooms of the providers: each knows those below BROKEN"
_CLIENT = "One module of the runtime speaks to kubernetes_asyncio BROKEN"
_PLAN = "providers.managed.decisions.plan"
SEEDS = (
    Seed("the runtime imports the composer", _LAYERS, "runtime.seed -> composer"),
    Seed("a provider imports the composer", _LAYERS, "providers.seed -> composer"),
    Seed("the machine's platform imports a provider", _MACHINE, "devcloud.aws.api.seed -> providers.external.client"),
    Seed(
        "a room of devcloud imports one above it", "what they share BROKEN", "devcloud.postgres.seed -> devcloud.clouds"
    ),
    Seed(
        "the simulators' frame imports a cloud",
        "what they share BROKEN",
        "devcloud.simulator.seed -> devcloud.aws.refusals",
    ),
    Seed("a lifecycle imports the API", _SIMULATED, "devcloud.aws.lifecycle.seed -> devcloud.aws.api.wire"),
    Seed(
        "a pure module reaches asyncio over a second one",
        _PURE,
        "apis.pause -> runtime.impure_seed",
        ("runtime.impure_seed", "asyncio"),
    ),
    Seed("a cloud imports the generic reconciler", _EXTERNAL, f"providers.aws.seed -> {_PLAN}"),
    Seed("accounts know the reconciler that uses them", _BELOW, f"providers.accounts.seed -> {_PLAN}"),
    Seed("a controller imports the Kubernetes client", _CLIENT, "composer.seed -> kubernetes_asyncio"),
)


_LAYERS = "fairlead > devcloud > composer | providers > apis > runtime BROKEN"


@pytest.fixture(scope="module")
def report_of_breaches(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the linter prints about a copy with all breaches; each stands in a module of its own."""
    root = _copy(tmp_path_factory.mktemp("breaches"))
    for seed in SEEDS:
        importer, _, imported = seed.import_.partition(" -> ")
        for name, what_it_imports in ((importer, imported), *([seed.more] if seed.more else [])):
            (root / f"{name.replace('.', '/')}.py").write_text(f"import {what_it_imports}\n", encoding="utf-8")
    result = _lint(root)
    assert result.returncode != 0
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.breach)
def test_a_breach_is_seen(seed: Seed, report_of_breaches: str) -> None:
    assert seed.contract in report_of_breaches
    _, _, broken = report_of_breaches.partition("Broken contracts")
    sections = re.split(r"\n(?=[^\n]+\n-{3,}\n)", broken)
    section = next(part for part in sections if seed.contract.removesuffix(" BROKEN") in part.strip().splitlines()[0])
    assert seed.import_ in section


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


@pytest.mark.parametrize("cloud", tree.clouds("providers"))
def test_a_pure_module_of_a_cloud_that_reaches_asyncio_is_seen(cloud: str) -> None:
    graph = copy.deepcopy(_graph())
    importer = next(
        name for name in map(tree.module_name, sorted(_pure_of_clouds())) if name.startswith(f"providers.{cloud}.")
    )
    graph.add_import(importer=importer, imported="providers.external.login")

    assert f"{importer} -> providers.external.login -> asyncio" in _impure_chains(graph)


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
