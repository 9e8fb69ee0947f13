"""docs/operations.md lists every metric, with its labels, and the fields of the lines for the audit."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.architecture import tree

_ROW = re.compile(r"^\| `(\w+)` \| ([\w, ]+) \|", re.MULTILINE)
_SUFFIX = {"Counter": "_total", "Gauge": "", "Histogram": "", "GaugeMetricFamily": ""}


def _documented() -> dict[str, list[str]]:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split("\n## Metrics\n", 1)[1].split("\n## ", 1)[0]
    return {name: labels.split(", ") for name, labels in _ROW.findall(section)}


def _defined() -> Iterator[tuple[str, list[str]]]:
    for folder in ("runtime", "composer", "providers"):
        for path in sorted((tree.ROOT / folder).rglob("*.py")):
            for node in ast.walk(tree.parse(path)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SUFFIX:
                    name, labels = _metric(node)
                    if name:
                        yield name + _SUFFIX[node.func.id], labels


def _metric(call: ast.Call) -> tuple[str, list[str]]:
    """Return a metric's name and labels; an empty name for a call that only shares the function's name."""
    texts = [each.value for each in call.args[:1] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    lists = [*call.args, *(each.value for each in call.keywords if each.arg in ("labels", "labelnames"))]
    labels = [
        str(item.value)
        for each in lists
        if isinstance(each, ast.List)
        for item in each.elts
        if isinstance(item, ast.Constant)
    ]
    return (texts[0] if texts else ""), labels


def test_every_metric_is_on_the_page_with_its_labels() -> None:
    defined = dict(_defined())

    assert len(defined) > 20
    assert _documented() == defined


def _audit_fields() -> set[str]:
    """Return the names of all fields that the composer gives to a line for the audit."""
    calls = (node for path in tree.modules("composer") for node in ast.walk(tree.parse(path)))
    written = [node for node in calls if isinstance(node, ast.Call) and node.args]
    return {
        str(keyword.arg)
        for call in written
        for keyword in call.keywords
        if isinstance(call.args[0], ast.Constant) and call.args[0].value == "audit"
    }


def test_the_fields_of_the_audit_are_on_the_page() -> None:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split("\n## The audit of what ends\n", 1)[1].split("\n## ", 1)[0]

    assert len(_audit_fields()) > 4
    assert {name for name in _audit_fields() if f"`{name}`" not in section} == set()


def test_a_filter_by_the_page_finds_a_line_for_the_audit() -> None:
    page = (tree.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (key, value), *_ = re.findall(r"`\"(\w+)\": \"(audit)\"`", page)
    program = (
        "import structlog; from runtime import logs; logs.configure(packages=['composer']); "
        "structlog.get_logger('composer.act').info('audit', action='LetGo', why='x')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tree.ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert json.loads(ended.stderr)[key] == value
