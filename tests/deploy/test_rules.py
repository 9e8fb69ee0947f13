"""The rules for Prometheus: each alert has its cases, which `make faults` has promtool judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "observability" / "rules" / "fairlead.yaml"
CASES = Path(__file__).with_name("rules_test.yaml")


def _load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


def test_each_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    alerts = {rule["alert"] for group in _load(RULES)["groups"] for rule in group["rules"]}
    checks = [check for case in _load(CASES)["tests"] for check in case["alert_rule_test"]]

    assert {check["alertname"] for check in checks if check["exp_alerts"]} == alerts
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == alerts
