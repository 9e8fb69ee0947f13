"""The wheel is whole, stands alone with its base dependencies, and shares no name with what is installed beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.architecture import tree

CLAIM = """\
apiVersion: database.fairlead.dev/v1alpha1
kind: PostgreSQLInstance
metadata: {name: orders, namespace: shop}
spec: {version: "16", size: small}
"""


def _uv() -> str:
    uv = os.environ.get("UV") or shutil.which("uv", path=f"{tree.ROOT / '.bootstrap'}:{os.environ['PATH']}")
    assert uv, "uv is missing: run `make check` once, it fetches uv"
    return uv


def _run(*arguments: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=tree.ROOT)
    (built,) = folder.glob("*.whl")
    return built


def _expected() -> set[str]:
    code = {
        str(path.relative_to(tree.ROOT))
        for package in tree.PACKAGES
        for path in (tree.ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    data = {
        f"fairlead/assets/{path.relative_to(tree.ROOT)}"
        for folder in ("crds", "compositions", "deploy")
        for path in (tree.ROOT / folder).rglob("*")
        if path.is_file() and not path.name.startswith(".") and not path.is_relative_to(tree.DEPLOY / "helm")
    }
    return code | data | {"fairlead/assets/docs/troubleshooting.md"}


@pytest.mark.slow
def test_the_wheel_is_whole(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert {name for name in names if not name.rsplit("/", 1)[1].startswith(".")} == _expected()
    assert {"devcloud/controlplane/go.mod", "devcloud/controlplane/go.sum"} <= names


@pytest.mark.slow
def test_the_wheel_alone_renders(wheel: Path, tmp_path: Path) -> None:
    """Base dependencies and the command line's, by hash from the lock: no cloud's SDK, nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    python = tmp_path / "env" / "bin" / "python"
    claim = tmp_path / "claim.yaml"
    claim.write_text(CLAIM, encoding="utf-8")
    uv = _uv()
    locked = {**environment, "UV_PROJECT_ENVIRONMENT": str(python.parents[1])}
    sync = (uv, "sync", "--quiet", "--frozen", "--no-build", "--no-install-project", "--extra", "cli")
    _run(*sync, "--python", sys.executable, cwd=tree.ROOT, environment=locked)
    install = (uv, "pip", "install", "--quiet", "--offline", "--no-build", "--python", python)
    _run(*install, "--no-deps", wheel, cwd=tmp_path, environment=environment)

    rendered = _run(python.with_name("fairlead"), "render", claim, cwd=tmp_path, environment=environment)

    assert "kind: PostgresDatabase" in rendered
    assert _run(
        python, "-c", "import composer, fairlead; print(composer.__file__)", cwd=tmp_path, environment=environment
    ).startswith(str(tmp_path))


def test_a_dependency_claims_none_of_our_names() -> None:
    claimed = {
        name: sorted(set(distributions) - {"fairlead"})
        for name, distributions in metadata.packages_distributions().items()
        if name in {*tree.PACKAGES, "tests", "benchmarks"}
    }

    assert {name: others for name, others in claimed.items() if others} == {}


def test_a_locked_package_has_none_of_our_names() -> None:
    assert {package["name"] for package in tree.locked()} & {*tree.PACKAGES} == {"fairlead"}


def test_the_lock_has_a_hash_for_every_file() -> None:
    bare = [
        file["url"]
        for package in tree.locked()
        for file in [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
        if not file.get("hash", "").startswith("sha256:")
    ]

    assert bare == []


def test_every_locked_package_has_a_wheel() -> None:
    assert [package["name"] for package in tree.locked() if not package.get("wheels")] == ["fairlead"]
