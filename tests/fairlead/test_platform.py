"""What `fairlead env` sets in a shell: above all where `fairlead` itself is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fairlead import platform


def _program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "fairlead"
    path.write_text(f"#!/bin/sh\necho {folder.name}\n")
    path.chmod(0o755)
    return path


def _shell(lines: str, path: str) -> str:
    command = f"{lines}\ncd /\nfairlead"
    ended = subprocess.run(["bash", "-c", command], env={"PATH": path}, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or ended.stderr


@pytest.mark.parametrize("called", ["as a path", "as a path from here"])
def test_a_program_that_no_shell_finds_is_found_after_env(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    ours = _program(tmp_path / "ours")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("sys.argv", [str(ours) if called == "as a path" else "ours/fairlead", "env"])

    line = platform.path_line(Path("/programs"))

    assert _shell(line, "/usr/bin:/bin") == "ours"
    # A virtual environment has a python, too: that of the shell goes on being found first.
    assert line.endswith(f':"$PATH":{ours.parent}')


def test_another_program_of_the_name_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = _program(tmp_path / "ours"), _program(tmp_path / "other")
    path = f"{other.parent}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr("sys.argv", [str(ours), "env"])

    assert _shell(platform.path_line(Path("/programs")), path) == "ours"


def test_env_names_kubectl_alone_without_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["-c", "env"])

    assert platform.path_line(Path("/pro grams")) == "export PATH='/pro grams':\"$PATH\""
