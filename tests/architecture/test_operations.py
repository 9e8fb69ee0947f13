"""docs/operations.md lists every metric, with its labels, and the fields of the lines for the audit."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.architecture import tree

_ROW = re.compile(r"^\| `(\w+)` \| ([\w, ]+) \|", re.MULTILINE)
_SUFFIX = {"Counter": "_total", "Gauge": "", "Histogram": "", "GaugeMetricFamily": ""}


def _documented() -> dict[str, list[str]]:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split("\n## Metrics\n", 1)[1].split("\n## ", 1)[0]
    return {name: labels.split(", ") for name, labels in _ROW.findall(section)}


def _calls() -> Iterator[tuple[ast.Call, str]]:
    for folder in ("runtime", "apis", "composer", "providers"):
        for path in sorted((tree.ROOT / folder).rglob("*.py")):
            for node in tree.nodes(path):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SUFFIX:
                    yield node, _SUFFIX[node.func.id]


def _defined() -> Iterator[tuple[str, list[str]]]:
    for call, suffix in _calls():
        name, labels = _metric(call)
        if name:
            yield name + suffix, labels


def _helps() -> Iterator[str]:
    """Yield the help of each metric that has a constant one."""
    for call, _ in _calls():
        texts = [argument.value for argument in call.args[:2] if isinstance(argument, ast.Constant)]
        yield from (text for text in texts[1:] if isinstance(text, str))


def _metric(call: ast.Call) -> tuple[str, list[str]]:
    """Return a metric's name and labels; an empty name for a call that only shares the function's name."""
    texts = [
        argument.value
        for argument in call.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    lists = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("labels", "labelnames"))]
    labels = [
        str(item.value)
        for list_ in lists
        if isinstance(list_, ast.List)
        for item in list_.elts
        if isinstance(item, ast.Constant)
    ]
    return (texts[0] if texts else ""), labels


def test_every_metric_is_on_the_page_with_its_labels() -> None:
    defined = dict(_defined())

    assert len(defined) > 20
    assert _documented() == defined


def test_the_page_repeats_the_help_of_each_metric() -> None:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    helps = list(_helps())

    assert len(helps) > 20
    assert [text for text in helps if f"| {text} |" not in page] == []


def _audit_of(process: str) -> list[frozenset[str]]:
    """Return the names of the fields of each kind of line for the audit, `action` left out."""
    package = {"composer": "composer", "provider": "providers"}[process]
    calls = (node for path in tree.modules(package) for node in tree.nodes(path))
    written = [node for node in calls if isinstance(node, ast.Call) and node.args]
    return [
        frozenset(str(keyword.arg) for keyword in call.keywords) - {"action"}
        for call in written
        if isinstance(call.args[0], ast.Constant) and call.args[0].value == "audit"
    ]


def _audit_rows() -> list[tuple[str, set[str], frozenset[str]]]:
    """Return the page's lines for the audit: process, actions, fields."""
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split("\n## The audit of what ends\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (composer|provider) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [(process, tree.words(actions), frozenset(tree.words(fields))) for process, actions, fields in cells]


@pytest.mark.parametrize("process", ["composer", "provider"])
def test_the_page_has_the_fields_of_each_line_for_the_audit(process: str) -> None:
    assert sorted(map(sorted, _audit_of(process))) == sorted(
        sorted(fields) for writer, _, fields in _audit_rows() if writer == process
    )


def test_the_page_has_the_calls_that_a_provider_puts_on_record() -> None:
    nodes = ast.walk(tree.parse(tree.ROOT / "providers" / "managed" / "outcome.py"))
    named = [node.args[0] for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Call"]
    (actions,) = [actions for process, actions, _ in _audit_rows() if process == "provider"]

    assert {constant.value for constant in named if isinstance(constant, ast.Constant)} == actions


def test_the_page_has_the_actions_of_the_composer() -> None:
    ends = ast.walk(tree.parse(tree.ROOT / "composer" / "claim" / "outcomes.py"))
    texts = {text for node in ends if isinstance(node, ast.Constant) for text in [node.value]}
    named = {action for process, actions, _ in _audit_rows() if process == "composer" for action in actions}

    assert named - texts == {"WorkerEnded"}


def test_a_filter_by_the_page_finds_a_line_for_the_audit() -> None:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (key, value), *_ = re.findall(r"`\"(\w+)\": \"(audit)\"`", page)
    program = (
        "import structlog; from runtime import logs; logs.configure(packages=['composer']); "
        "structlog.get_logger('composer.claim.act').info('audit', action='LetGo', why='x')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tree.ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    line = json.loads(ended.stderr)
    assert line[key] == value
    assert {name for name in line if f"`{name}`" not in page} == {"msg"}
