"""The checkout as the architecture tests see it: packages, modules, clouds, documents."""

from __future__ import annotations

import ast
import functools
import gc
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import yaml_texts

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fairlead", "devcloud", "composer", "providers", "apis", "runtime")
CRDS = ROOT / "crds"
DEPLOY = ROOT / "deploy"
# What is installed, once: the chart and the one file are generated from it.
KUSTOMIZE = DEPLOY / "kustomize"


def modules(*folders: str) -> list[Path]:
    """Return the Python files below the folders, in a stable order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name under which a file of a package is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def clouds(package: str) -> list[str]:
    """Return the sub-packages of `providers` or `devcloud` that a cloud brings: those of providers with a PROVIDER."""
    exporting = {path.parent.name for path in (ROOT / "providers").glob("*/__init__.py") if _exports_provider(path)}
    return sorted(name for name in exporting if (ROOT / package / name / "__init__.py").exists())


def _exports_provider(path: Path) -> bool:
    targets = (node.target for node in parse(path).body if isinstance(node, ast.AnnAssign))
    return any(isinstance(target, ast.Name) and target.id == "PROVIDER" for target in targets)


def name_of(path: Path) -> str:
    """Return a file's path as a message names it: from the checkout on."""
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a module, parsed once in a process."""
    return parsed(path.read_text(encoding="utf-8"))


def parsed(source: str) -> ast.Module:
    """Return the syntax tree of a source; nobody keeps it."""
    # A tree is new objects and no garbage: collections while it is built would take twice what the parser takes.
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the nodes of a module's syntax tree."""
    return tuple(ast.walk(parse(path)))


def strings(path: Path) -> Iterator[str]:
    """Yield every string constant of a module that is not a docstring, the parts of f-strings included."""
    prose = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def documents(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every object of the YAML files below a folder, with its file; a copy, which may be changed."""
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml_texts.load_all(path):
            if isinstance(document, dict):
                yield path, document


@functools.cache
def pyproject() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@functools.cache
def locked() -> list[dict[str, Any]]:
    """Return the packages of uv.lock."""
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    return packages


def words(text: str) -> set[str]:
    """Return what stands in back-quotes in a Markdown text."""
    return set(re.findall(r"`([^`\n]+)`", text))
