"""Prints what expressions give that put every filter on every kind of value: for two processes to be compared."""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import msgspec

from composer.render.errors import CompositionError, PendingError
from composer.render.filters import EXPRESSION_FILTERS
from composer.render.template import compile_tree, fill
from composer.render.values import Status

_CONTENT = {"id": {"v4": "10.0.0.0/8", "tags": ["b", "a", "b"]}, "gib": "20Gi", "zone": "a", "ready": True}
_SCOPE: dict[str, Any] = {
    "claim": {"spec": {"list": ["b", "a", "b"], "map": {"x": 1, "y": [2]}, "text": "a,b", "number": 3}},
    "resources": {"net": {"status": Status("net", "resources.net.status", _CONTENT)}},
}
_VALUES = (
    "resources.net.status",
    "resources.net.status.id",
    "resources.net.status.id.tags",
    "[resources.net.status, resources.net.status.id]",
    "{'a': resources.net.status}",
    "claim.spec.list",
    "claim.spec.map",
    "claim.spec.text",
    "claim.spec.number",
    "claim",
)
_ARGUMENTS = {"combine": "{}", "or_else": "1", "replace": "'a', 1"}
_FILTERS = tuple(f"{name}({_ARGUMENTS.get(name, '')})" for name in sorted(EXPRESSION_FILTERS))
_BEFORE_ANOTHER = ("default({})", "list", "unique", "sort", "combine({})")


def _expressions() -> list[str]:
    chains = [f"{value} | {filter_}" for value, filter_ in product(_VALUES, _FILTERS)]
    twice = [
        f"{value} | {filter_} | {second}" for value, filter_, second in product(_VALUES[:3], _BEFORE_ANOTHER, _FILTERS)
    ]
    texts = [f"({text}) ~ '!'" for text in (*_VALUES, *chains)]
    return [*_VALUES, *chains, *twice, *texts]


def _evaluated(expression: str) -> Any:
    try:
        return fill(compile_tree("{{ " + expression + " }}", "x"), _SCOPE)
    except CompositionError as error:
        return [str(error)]
    except PendingError as error:
        return [str(error)]


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode({expression: _evaluated(expression) for expression in _expressions()}))
