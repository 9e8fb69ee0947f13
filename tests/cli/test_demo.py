"""The whole way, as a person takes it: `fairlead demo` on a platform of its own, told twice, then taken down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcloud.controlplane import Programs

pytestmark = [pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 420


@dataclass(frozen=True)
class Shell:
    """A shell of a user whose cache holds nothing but the control plane's programs."""

    environment: dict[str, str]

    def fairlead(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from fairlead.cli import main; main()", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )


@pytest.fixture
def shell(tmp_path: Path, control_plane_programs: Programs) -> Iterator[Shell]:
    ours = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(control_plane_programs.kubectl.parent)}
    kept = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "FAIRLEAD_POSTGRES"}}
    made = Shell(kept | ours)
    yield made
    made.fairlead("down")


def test_the_story_is_told_twice_and_the_platform_taken_down(shell: Shell) -> None:
    first = shell.fairlead("demo")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Done: every step above was seen to happen" in first.stdout
    assert "DatabaseLost" in first.stdout
    assert "did you mean 'postgres-onprem'" in first.stdout

    # An interrupted or finished telling is no obstacle to the next one.
    second = shell.fairlead("demo")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "the platform is up already" in second.stderr

    ready = shell.fairlead("env")
    assert "export KUBECONFIG=" in ready.stdout
    kubeconfig = ready.stdout.split("KUBECONFIG=")[1].splitlines()[0].strip("'")
    answer = shell.fairlead("psql", "orders", "-n", "demo", "--kubeconfig", kubeconfig, "--", "-Atc", "SELECT 6 * 7")
    assert (answer.returncode, answer.stdout) == (0, "42\n"), answer.stderr

    assert shell.fairlead("down").returncode == 0
    assert "not up" in shell.fairlead("env").stderr
