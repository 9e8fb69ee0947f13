"""A cloud is added with new files alone: the contracts hold, its CRDs are its models, its names are on a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import new_cloud

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = new_cloud.copy_checkout(tmp_path_factory.mktemp("grown"))
    assert len(new_cloud.add_cloud(root)) > len(("package", "two CRDs", "composition"))
    return root


def _run(root: Path, *arguments: str, code: int = 0) -> str:
    """Run Python in the copy; return what it printed, its complaints where it is to end with another code than 0."""
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result.stderr if code else result.stdout


def test_the_process_finds_it(grown: Path) -> None:
    source = (
        f"from providers.process import provider_of; p = provider_of('{new_cloud.CLOUD}');"
        "print(p.cloud, *(word for k in p.kinds for word in (k.resource.kind, k.logins is not None)))"
    )

    assert _run(grown, "-c", source) == "toy ToyDatabase True Shelf False\n"


def test_the_command_line_offers_it(grown: Path) -> None:
    assert "onprem, toy" in _run(grown, "-c", "from fairlead.cli import Clouds; print(Clouds.__metadata__[0].help)")
    assert _run(grown, "-c", "from fairlead.platform import names_in; print(names_in('toy'))") == "('toy',)\n"

    complaint = _run(grown, "-m", "fairlead", "up", "--clouds", "nosuch", code=64)
    assert "no cloud 'nosuch' can be simulated here, only " in complaint
    assert "onprem, toy" in complaint


def test_the_demo_has_its_story(grown: Path) -> None:
    source = "from devcloud.clouds import all_clouds, default; d = default(); print(d.name, d.story.namespace);"
    source += "print(*(c.story.namespace for c in all_clouds() if c.name == 'toy'))"

    assert _run(grown, "-c", source) == "onprem demo\ndemo-toy\n"


def test_the_contracts_hold(grown: Path) -> None:
    _run(grown, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache")


def test_the_house_rules_hold(grown: Path) -> None:
    chosen = "crd or prefixed_names or kinds_are or do_not_know or generic_part or pure_modules"
    files = [f"tests/architecture/test_{part}.py" for part in ("contracts", "crds", "names")]

    _run(grown, "-m", "pytest", "--noconftest", "-p", "no:cacheprovider", "-k", chosen, *files)


def test_the_house_rules_see_it(grown: Path) -> None:
    looked_at = (
        "print(*(name for name in (*crds._crds(), *map(names.tree.name_of, names._sources())) if 'toy' in name))"
    )
    names = _run(grown, "-c", f"from tests.architecture import test_crds as crds, test_names as names; {looked_at}")

    assert {"ToyDatabase.toy.fairlead.dev", "Shelf.toy.fairlead.dev", "providers/toy/__init__.py"} <= {*names.split()}
