"""Starts the longest files first where several workers share them: else the last file runs long after all others ended.

What a file took is kept in pytest's cache. On a fresh checkout the files that took longest when they were measured come
first, then those of the folders with a platform: pytest-xdist's own order, by the number of tests, has those last that
are few and take minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # pytest-xdist ships no types

_KEY: Final = "fairlead/seconds of files"
_WITH_RIGS: Final = ("tests/system/", "tests/security/", "tests/apiserver/")
_READERS: Final = "tests/architecture/"
_RIG_SECONDS: Final = 60.0
MEASURED: Final = {
    "tests/fairlead/test_demo.py": 300.0,
    "tests/providers/azure/test_contract.py": 180.0,
    "tests/system/test_upgrades.py": 160.0,
    "tests/system/test_rotations.py": 150.0,
    "tests/system/test_every_cloud.py": 140.0,
    "tests/security/test_ways_to_lose.py": 140.0,
    "tests/devcloud/test_up.py": 130.0,
    "tests/system/test_clouds.py": 130.0,
    "tests/postgres/test_contract.py": 110.0,
    "tests/simulation/test_lives.py": 100.0,
}
"""What the longest files took, in seconds of a worker among three."""
_TEST_SECONDS: Final = 1.0
_took: defaultdict[str, float] = defaultdict(float)


def in_order(files: Iterable[str], took: Mapping[str, float]) -> list[str]:
    """Return files (one for each test) in the order in which they begin: by seconds, those that took most first."""
    tests = Counter(files)

    def seconds(file: str) -> float:
        rig = _RIG_SECONDS if file.startswith(_WITH_RIGS) else 0.0
        return took.get(file, MEASURED.get(file, rig + tests[file] * _TEST_SECONDS))

    return sorted(tests, key=lambda file: (-seconds(file), file))


class _Files(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """A file goes to one worker; those that read every module of ours go to the same, which parses each once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _READERS if file.startswith(_READERS) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Return who shares files among workers, where files are what is shared."""
    return _Files(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files in order, in each worker alike; tests of a file keep theirs."""
    if not hasattr(config, "workerinput"):
        return
    files = [_file_of(item.nodeid) for item in items]
    order = {file: number for number, file in enumerate(in_order(files, _recorded(config)))}
    items.sort(key=lambda item: order[_file_of(item.nodeid)])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what a file takes, set-up and clean-up included."""
    _took[_file_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what files took: by the markers that were run, since quick and slow tests of a file run apart."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly or not config.getoption("numprocesses", None):
        return
    if has_cache(config):
        config.cache.set(f"{_KEY}/{_run_of(config)}", _recorded(config) | {f: round(s, 1) for f, s in _took.items()})


def _recorded(config: pytest.Config) -> dict[str, float]:
    recorded = config.cache.get(f"{_KEY}/{_run_of(config)}", None) if has_cache(config) else None
    return dict(recorded or {})


def has_cache(config: pytest.Config) -> bool:
    """Return whether this run has a cache (`-p no:cacheprovider` takes it away)."""
    return config.pluginmanager.has_plugin("cacheprovider")


def _run_of(config: pytest.Config) -> str:
    return "quick" if "not " in config.option.markexpr else "slow"


def _file_of(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).as_posix()
