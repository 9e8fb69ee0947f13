"""Programs of a Go module of ours: built once for its sources, with the folders that are copied beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devcloud.controlplane import modules, toolchain
from devcloud.controlplane.modules import GoModule
from devcloud.errors import DevcloudError

# As `go` does for a build; what it is asked is in the file `asked` beside it.
_GO = """#!/bin/bash
here=$(dirname "$0"); echo "$*" >> "$here/asked"
case "$1 $2" in
  "env GOVERSION") echo go1.25.3 ;;
  "list -m") echo "$here/required" ;;
  "build -v")
    if [ -e "$here/broken" ]; then echo "x.go:1: syntax error" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\n' > "$2program"; chmod +x "$2program" ;;
esac
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a Go that has one module, with a read-only folder in it as Go's cache has them."""
    folder = tmp_path / "go"
    crds = folder / "required" / "crds"
    crds.mkdir(parents=True)
    (crds / "kind.yaml").write_text("kind: Kind\n")
    (crds / "kind.yaml").chmod(0o444)
    (folder / "go").write_text(_GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def _module(folder: Path) -> GoModule:
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text("module example.org/tool\n\ngo 1.25.0\n")
    copies = {"crds": ("example.org/required", "crds")}
    return GoModule(folder, ("tool",), ("go.mod",), "tool", "Tool", copies)


def _builds(go: Path) -> int:
    return sum(line.startswith("build") for line in (go / "asked").read_text().splitlines())


def _ignore(_line: str) -> None:
    """Take a line of progress."""


async def test_a_module_is_built_once_with_its_copies(go: Path, tmp_path: Path) -> None:
    module = _module(tmp_path / "module")

    folder = await modules.ensure(module, _ignore)
    again = await modules.ensure(module, _ignore)

    assert again == folder
    assert _builds(go) == 1
    assert os.access(folder / "program", os.X_OK)
    assert (folder / "crds" / "kind.yaml").read_text() == "kind: Kind\n"
    # Whoever removes the cache may.
    assert (folder / "crds" / "kind.yaml").stat().st_mode & 0o200


async def test_other_sources_are_another_build(go: Path, tmp_path: Path) -> None:
    module = _module(tmp_path / "module")
    first = await modules.ensure(module, _ignore)
    (module.folder / "go.mod").write_text("module example.org/tool\n\ngo 1.25.1\n")

    second = await modules.ensure(module, _ignore)

    assert first != second
    assert _builds(go) == 2


async def test_a_failed_build_leaves_no_programs_and_says_whose_it_is(go: Path, tmp_path: Path) -> None:
    module = _module(tmp_path / "module")
    (go / "broken").touch()

    with pytest.raises(DevcloudError, match=r"^Tool: .*syntax error"):
        await modules.ensure(module, _ignore)

    assert not module.built().exists()


def test_the_oldest_go_is_the_one_that_the_module_names(tmp_path: Path) -> None:
    module = _module(tmp_path / "module")

    assert toolchain.required(module.folder) == (1, 25)
    (module.folder / "go.mod").write_text("module example.org/tool\n\ngo 1.21\n")
    assert toolchain.required(module.folder) == (1, 24)
