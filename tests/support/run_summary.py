"""What a run cost: the files that took longest, what set-up took, and how many control planes were started.

A worker counts the programs that it starts, by Python's audit events (library reference, "Audit events table").
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

_MOST_FILES: Final = 10
_STARTS: Final = frozenset({"subprocess.Popen", "os.posix_spawn"})
_API_SERVER: Final = "kube-apiserver"
_PLANES: Final = "fairlead_planes"
_seconds: defaultdict[str, float] = defaultdict(float)
_phases: defaultdict[str, float] = defaultdict(float)
_started = {"planes": 0}


def starts_plane(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether an audit event is the start of an API server; the second argument of both is the command."""
    if event not in _STARTS or not isinstance(arguments[1], list | tuple):
        return False
    return any(Path(str(word)).name == _API_SERVER for word in arguments[1])


def _count_planes(event: str, arguments: tuple[Any, ...]) -> None:
    # Nearly all events are others, and there are millions of them. A process that ends has no globals any more.
    if _STARTS and event in _STARTS and starts_plane(event, arguments):
        _started["planes"] += 1


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on what this process starts."""
    del config
    sys.addaudithook(_count_planes)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what each file and each phase takes, in all workers together."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration
    _phases[report.when] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's count to whoever sums them up."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_PLANES] = _started["planes"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the count of a worker that ended."""
    _started["planes"] += int(getattr(node, "workeroutput", {}).get(_PLANES, 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of the run, in seconds of workers."""
    for line in summary(_seconds, _phases, _started["planes"]):
        terminalreporter.write_line(line)


def summary(seconds: dict[str, float], phases: dict[str, float], planes: int) -> list[str]:
    """Return the lines of a summary: seconds by file and by phase (`setup`, `call`, `teardown`), and a count."""
    slowest = sorted(seconds.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_FILES]
    total = sum(phases.values())
    return [
        *(f"{took:8.1f} s  {file}" for file, took in slowest),
        f"{total:.0f} s of workers, {phases.get('setup', 0.0):.0f} s of them set-up; control planes started: {planes}",
    ]
