"""Starts the longest files first where several workers share them: else the last file runs long after all others ended.

What a file took is kept in pytest's cache. On a fresh checkout the files that took longest when they were measured come
first, then those of the folders with a platform: pytest-xdist's own order, by the number of tests, has those last that
are few and take minutes.

Files that go on with the same composer and provider come one after the other, behind those that end or replace them:
each change is a start of both. Files without processes of a platform are the last; those that need no control plane
either are what the last of many workers does meanwhile, by the way: it begins at the end, and others go first. At the
very end are those that compute all the time.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support.own_planes import AT_WORK

_KEY: Final = "fairlead/seconds of files"
_WITH_RIGS: Final = ("tests/system/", "tests/security/", "tests/apiserver/")
_READERS: Final = "tests/architecture/"
_RIG_SECONDS: Final = 60.0
MEASURED: Final = {
    "tests/system/test_every_cloud.py": 200.0,
    "tests/fairlead/test_demo.py": 140.0,
    "tests/system/test_rotations.py": 55.0,
    "tests/devcloud/test_up.py": 45.0,
    "tests/postgres/test_hostile_tenants.py": 55.0,
    "tests/deploy/test_installed.py": 55.0,
    "tests/postgres/test_contract.py": 50.0,
}
"""What the longest files took, in seconds of a worker on cores that others used, too."""
SPLIT: Final = frozenset({"tests/simulation/test_lives.py"})
"""Files of many long tests that share nothing: several workers take them."""
_TEST_SECONDS: Final = 1.0
_MANY: Final = 4
"""Of so many workers the last takes what the others have not come to, from the end, at a low priority."""
_NICE: Final = 10
_took: defaultdict[str, float] = defaultdict(float)


class Group(IntEnum):
    """Which files come first."""

    OWN_PROCESSES = 0
    AT_WORK = 1
    NO_PROCESSES = 2
    NO_PLANE = 3


def in_order(files: Iterable[str], took: Mapping[str, float], groups: Mapping[str, Group] | None = None) -> list[str]:
    """Return files (one for each test) in the order in which they begin: by group, then those that took most first."""
    tests = Counter(files)

    def seconds(file: str) -> float:
        rig = _RIG_SECONDS if file.startswith(_WITH_RIGS) else 0.0
        return took.get(file, MEASURED.get(file, rig + tests[file] * _TEST_SECONDS))

    def group(file: str) -> Group:
        return (groups or {}).get(file, Group.OWN_PROCESSES)

    return sorted(tests, key=lambda file: (group(file), file in SPLIT, -seconds(file), file))


def _group_of(file: str, fixtures: set[str]) -> Group:
    """Return the group of a file by the fixtures of its tests."""
    if file in AT_WORK or ("running" in fixtures and not file.startswith("tests/system/")):
        return Group.AT_WORK
    has_own = file in MEASURED or file.startswith("tests/system/") or "alone" in fixtures
    if has_own:
        return Group.OWN_PROCESSES
    return Group.NO_PROCESSES if "shared_system" in fixtures else Group.NO_PLANE


def scope_of(nodeid: str) -> str:
    """Return what a worker takes together: a file; all that read every module; a test where a file shares nothing."""
    file = _file_of(nodeid)
    if file in SPLIT:
        return nodeid
    return _READERS if file.startswith(_READERS) else file


class _Files(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """A file goes to one worker; those that read every module of ours go to the same, which parses each once."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if self.numnodes >= _MANY and node.gateway.id == f"gw{self.numnodes - 1}":
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def pytest_configure(config: pytest.Config) -> None:
    """Let the last of many workers run where the others wait."""
    worker = getattr(config, "workerinput", {})
    last = int(worker.get("workercount", 0)) - 1
    if last + 1 >= _MANY and worker["workerid"] == f"gw{last}":
        os.nice(_NICE)


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
    fixtures: defaultdict[str, set[str]] = defaultdict(set)
    for file, item in zip(files, items, strict=True):
        fixtures[file] |= set(getattr(item, "fixturenames", ()))
    groups = {file: _group_of(file, names) for file, names in fixtures.items()}
    order = {file: number for number, file in enumerate(in_order(files, _recorded(config), groups))}
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
