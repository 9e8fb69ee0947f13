"""The whole way, as a person takes it: `fairlead demo` on its own platform, interrupted, run again, taken down.

`make faults` has the stories of the other simulated clouds, and what `fairlead down --keep-data` leaves of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcloud.controlplane import Programs

pytestmark = [pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 420
# What a shell starts in the background ignores Ctrl-C, and so does all that it starts: here somebody presses it.
_HEEDS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
_COMMAND = (sys.executable, "-c", f"{_HEEDS_CTRL_C}; from fairlead.cli import main; main()")


@dataclass(frozen=True)
class Shell:
    """A shell of a user whose cache holds nothing but the control plane's programs."""

    environment: dict[str, str]

    def fairlead(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )

    def interrupted(self, *arguments: str, after: str) -> tuple[int, str]:
        """Press Ctrl-C when a line with that text is shown; return the exit code and the errors."""
        with subprocess.Popen(
            [*_COMMAND, *arguments],
            env=self.environment | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            seen = any(after in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=_LIMIT_S)
            assert seen, errors
            return process.returncode, errors


@pytest.fixture
def shell(tmp_path: Path, control_plane_programs: Programs) -> Iterator[Shell]:
    ours = {"XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": str(control_plane_programs.kubectl.parent)}
    kept = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "FAIRLEAD_POSTGRES"}}
    made = Shell(kept | ours)
    yield made
    made.fairlead("down", "--yes")


def test_the_story_is_interrupted_run_again_goes_on_in_a_simulated_cloud_and_ends(shell: Shell) -> None:
    _on_prem(shell)
    in_clouds(shell, {"aws": "RDSInstance/orders-instance"})

    assert shell.fairlead("down", "--yes").returncode == 0
    assert "not up" in shell.fairlead("env").stderr


def in_clouds(shell: Shell, children: dict[str, str]) -> None:
    """Have the story played in simulated clouds, each of which shows its child."""
    demo = shell.fairlead("demo", "--clouds", ",".join(children))
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Done: every step above was seen to happen" in demo.stdout
    assert [child for child in children.values() if child not in demo.stdout] == []


def _on_prem(shell: Shell) -> None:
    code, errors = shell.interrupted("demo", after="Somebody drops the database")
    assert code == 130
    assert errors.splitlines()[-1].startswith("fairlead: interrupted; what was started stays")
    assert "Traceback" not in errors

    demo = shell.fairlead("demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "the platform is up already" in demo.stderr
    assert "Done: every step above was seen to happen" in demo.stdout
    assert "DatabaseLost" in demo.stdout
    assert "did you mean 'postgres-onprem'" in demo.stdout

    ready = shell.fairlead("env")
    assert "export KUBECONFIG=" in ready.stdout
    kubeconfig = ready.stdout.split("KUBECONFIG=")[1].splitlines()[0].strip("'")
    answer = shell.fairlead("psql", "orders", "-n", "demo", "--kubeconfig", kubeconfig, "--", "-Atc", "SELECT 6 * 7")
    assert (answer.returncode, answer.stdout) == (0, "42\n"), answer.stderr
