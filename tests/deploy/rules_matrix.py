"""The rules for Prometheus, judged by its own promtool: their form, and when each alert fires. Run by `make faults`.

promtool has the SDKs of all clouds in it: its first build on a machine takes eight minutes of a processor.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.deploy.test_rules import CASES, RULES
from tests.support import go_tools


@pytest.fixture(scope="session")
def promtool() -> Path:
    return go_tools.program("promtool")


def _run(promtool: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False, timeout=300)


def test_the_rules_are_well_formed(promtool: Path) -> None:
    ended = _run(promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "SUCCESS: 10 rules found" in ended.stdout


def test_each_alert_fires_when_its_case_says_so_and_not_before(promtool: Path) -> None:
    ended = _run(promtool, "test", "rules", CASES)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_rule_that_fires_too_early_is_seen(promtool: Path, tmp_path: Path) -> None:
    text = RULES.read_text(encoding="utf-8")
    assert "for: 30m" in text
    (tmp_path / RULES.name).write_text(text.replace("for: 30m", "for: 20m"))
    cases = CASES.read_text(encoding="utf-8").replace("../../deploy/observability/rules/", "")
    (tmp_path / CASES.name).write_text(cases)

    ended = _run(promtool, "test", "rules", tmp_path / CASES.name)

    assert ended.returncode == 1
    assert "FairleadObjectsStalled" in ended.stdout + ended.stderr
