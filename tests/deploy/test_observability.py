"""Dashboards and alerts read metrics and labels that the processes have, and each alert is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import apis.metrics
import composer.workers.pool
import providers.accounts.rate_limit
import providers.managed.drift
from fairlead.explanations import explanations
from runtime import metrics, writes

ROOT = Path(__file__).resolve().parents[2]
OBSERVABILITY = ROOT / "deploy" / "observability"
DASHBOARDS = sorted((OBSERVABILITY / "dashboards").glob("*.json"))
RULES = sorted((OBSERVABILITY / "rules").glob("*.yaml"))
# Modules that define a metric of ours beside those of the runtime.
DEFINING = (
    apis.metrics,
    composer.workers.pool,
    metrics,
    providers.accounts.rate_limit,
    providers.managed.drift,
    writes,
)
# What Prometheus adds to each series that it scrapes from a Pod.
OF_THE_TARGET = {"instance", "namespace", "pod", "job"}
# PromQL: operators, modifiers and the functions that are used here.
LANGUAGE = {
    "absent",
    "by",
    "group_left",
    "histogram_quantile",
    "increase",
    "max",
    "on",
    "rate",
    "sum",
}
_LABELS = re.compile(r"\{([^}]*)\}")
_GROUPED = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")


def _series() -> dict[str, set[str]]:
    """Return the labels of each series by its name, as a scrape shows them."""
    series: dict[str, set[str]] = {}
    for metric in [value for module in DEFINING for value in vars(module).values() if hasattr(value, "_labelnames")]:
        for family in metric.describe():
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
            for suffix in suffixes:
                extra = {"le"} if suffix == "_bucket" else set()
                series[family.name + suffix] = {*metric._labelnames, *extra}
    for family in metrics.REGISTRY.collect():
        if family.name.startswith("process_"):
            series |= {sample.name: set() for sample in family.samples}
    return series | {"fairlead_objects": {"resource", "state"}, "controller_write_loops": {"resource"}}


def _alerts() -> list[dict[str, Any]]:
    groups = [group for path in RULES for group in YAML(typ="safe", pure=True).load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def _panels() -> Iterator[tuple[str, str, str]]:
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"], target["legendFormat"]


EXPRESSIONS = [
    *(pytest.param(alert["expr"], id=alert["alert"]) for alert in _alerts()),
    *(pytest.param(expression, id=place) for place, expression, _ in _panels()),
]


def _read(expression: str) -> tuple[set[str], set[str]]:
    """Return the series and the labels that an expression names."""
    labels = {
        re.split(r"[=!~]", part)[0].strip() for text in _LABELS.findall(expression) for part in text.split(",") if part
    }
    labels |= {label.strip() for text in _GROUPED.findall(expression) for label in text.split(",")}
    bare = _GROUPED.sub(" ", _LABELS.sub(" ", re.sub(r"\[[^\]]*\]", " ", expression)))
    return set(re.findall(r"[a-z_:][a-z0-9_:]*", bare)) - LANGUAGE, labels


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_reads_series_and_labels_that_there_are(expression: str) -> None:
    series = _series()
    names, labels = _read(expression)

    assert names
    assert names - series.keys() == set()
    assert labels - OF_THE_TARGET - set().union(*(series[name] for name in names)) == set()


@pytest.mark.parametrize("text", ["rate(workqueue_dept[5m])", "sum by (colour) (workqueue_depth)", 'up{x="y"} > 0'])
def test_a_series_or_label_that_there_is_not_would_be_seen(text: str) -> None:
    names, labels = _read(text)
    series = _series()

    unknown = names - series.keys()
    assert unknown or labels - set().union(*(series[name] for name in names))


def test_states_and_codes_that_are_asked_for_are_those_that_are_counted() -> None:
    asked_for = {state for alert in _alerts() for state in re.findall(r'state="(\w+)"', alert["expr"])}
    asked_for |= {state for _, expression, _ in _panels() for state in re.findall(r'state="(\w+)"', expression)}

    assert asked_for
    assert asked_for - set(apis.metrics.STATES) == set()


@pytest.mark.parametrize("alert", _alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_in_words_what_it_is_and_where_its_page_is(alert: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    name = alert["alert"]

    assert alert["annotations"]["runbook"] == f"fairlead explain {name}"
    assert explanations(page)[name].cure not in {"Nothing.", ""}
    assert alert["labels"]["severity"] in {"warning", "critical"}
    _, labels = _read(alert["expr"])
    used = set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"]))
    assert used <= labels


def test_dashboards_have_panels_that_do_not_overlap_and_legends_of_known_labels() -> None:
    known = set().union(*_series().values()) | OF_THE_TARGET
    for path in DASHBOARDS:
        board = json.loads(path.read_text(encoding="utf-8"))
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]}
        assert len(places) == len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        assert board["uid"] == path.stem
    for place, _, legend in _panels():
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= known, place
