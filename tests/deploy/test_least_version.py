"""No CEL expression of ours needs a newer API server than the chart says.

Source: "Common Expression Language in Kubernetes", the libraries and the versions since which each may be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import yaml_texts

_ROOT = Path(__file__).resolve().parents[2]
# An API server takes a new expression by the libraries of the version before its own.
_NEWER = re.compile(r"\b(ip|isIP|cidr|isCIDR|masked|prefixLength|containsCIDR|containsIP|semver|isSemver)\(|\bformat\.")
_PLACES = ("crds", "deploy/kustomize", "install.yaml")
_FILES = sorted(
    path
    for place in _PLACES
    for path in ([_ROOT / place] if place.endswith(".yaml") else (_ROOT / place).rglob("*.yaml"))
    if path.exists()
)


def test_the_chart_asks_for_the_version_that_this_is_about() -> None:
    chart = yaml_texts.load(_ROOT / "deploy" / "helm" / "fairlead" / "Chart.yaml")

    assert chart["kubeVersion"] == ">=1.30.0-0"


def _expressions(value: Any) -> Iterator[str]:
    """Yield each CEL expression of a manifest, wherever it stands."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in {"rule", "expression", "messageExpression"} and isinstance(part, str):
                yield part
            yield from _expressions(part)
    elif isinstance(value, list):
        for part in value:
            yield from _expressions(part)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_no_expression_calls_a_function_of_a_newer_version(path: Path) -> None:
    expressions = [text for document in yaml_texts.load_all(path) for text in _expressions(document)]

    assert [text for text in expressions if _NEWER.search(text)] == []
