"""The checkout as the architecture tests see it: packages, modules, clouds, documents."""

from __future__ import annotations

import ast
import functools
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


@functools.cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def strings(path: Path) -> Iterator[str]:
    """Yield every string constant of a module that is not a docstring, the parts of f-strings included."""
    tree = parse(path)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def documents(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every object of the YAML files below a folder, with its file; a copy, which may be changed."""
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml_texts.load_all(path):
            if isinstance(document, dict):
                yield path, document


def pyproject() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked() -> list[dict[str, Any]]:
    """Return the packages of uv.lock."""
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    return packages


def words(text: str) -> set[str]:
    """Return what stands in back-quotes in a Markdown text."""
    return set(re.findall(r"`([^`\n]+)`", text))
