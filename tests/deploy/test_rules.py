"""The rules for Prometheus, judged by its own promtool: their form, and when each alert fires."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support import go_tools

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "observability" / "rules" / "fairlead.yaml"
CASES = Path(__file__).with_name("rules_test.yaml")


@pytest.fixture(scope="session")
def promtool() -> Path:
    return go_tools.program("promtool")


def _load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


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


def test_each_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    alerts = {rule["alert"] for group in _load(RULES)["groups"] for rule in group["rules"]}
    checks = [check for case in _load(CASES)["tests"] for check in case["alert_rule_test"]]

    assert {check["alertname"] for check in checks if check["exp_alerts"]} == alerts
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == alerts
