"""No expression of a Composition's author gets more than data out of the language, whatever notation it takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apis.identity import Identity, child_name
from composer.render.errors import CompositionError
from composer.render.request import Observed, Request
from composer.workers.pool import RenderPool
from tests.composer.factories import claim
from tests.composer.render.escapes import ESCAPES
from tests.security.expressions import CLASSES, REFUSED

_WAITS = "it waits for a status"
_REFUSALS = {"TemplateForbidden", "TemplateInvalid", "RenderFailed", "NotJson", "RenderLimit", _WAITS}
_EXPRESSIONS = [expression for expressions in CLASSES.values() for expression in expressions]
_EXPECTED = {expression: value for expressions in CLASSES.values() for expression, value in expressions.items()}
_STATUS = {"externalName": "db-1", "connection": {"host": "h", "port": 5432}, "tags": ["b", "a"]}


def _request(text: str) -> Request:
    manifest = {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "PostgresDatabase"}
    composition = {
        "compositeTypeRef": {"apiVersion": "db/v1", "kind": "K"},
        "variables": {"name": "a"},
        "resources": [
            {"name": "database", "template": {**manifest, "spec": {"x": text}}},
            {"name": "other", "template": {**manifest, "spec": {}}},
        ],
    }
    data: dict[str, Any] = {
        "text": "a,b",
        "braces": "{{ 7*7 }}",
        "number": 3,
        "list": ["b", "a", "c"],
        "map": {"x": 1, "y": [2]},
    }
    owner = claim(annotations={"fairlead.dev/identity": "claim-uid@shop/orders"}, **data)
    owner["metadata"]["labels"] = {"x": "y"}
    name = child_name(Identity("claim-uid", "shop", "orders"), "other")
    live = {**manifest, "metadata": {"name": name}, "status": _STATUS}
    return Request("c", composition, owner, "claim-uid@shop/orders", observed=(Observed("other", "", live),))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """Return what each expression gave, or why it was refused: all by one worker, which none may harm."""
    return asyncio.run(_rendered())


async def _rendered() -> dict[str, Any]:
    pool = RenderPool(workers=1)
    outcomes: dict[str, Any] = {}
    try:
        for expression in _EXPRESSIONS:
            try:
                rendered = await pool.render(_request(expression))
            except CompositionError as error:
                outcomes[expression] = {problem.reason for problem in error.problems}
            else:
                made = {child.resource: child.object for child in rendered.children}
                outcomes[expression] = made["database"]["spec"]["x"] if "database" in made else {_WAITS}
    finally:
        await pool.close()
    return outcomes


@pytest.mark.parametrize("number", range(len(_EXPRESSIONS)), ids=[text[:60] for text in _EXPRESSIONS])
def test_an_expression_gives_data_or_is_refused(outcomes: dict[str, Any], number: int) -> None:
    outcome, expected = outcomes[_EXPRESSIONS[number]], _EXPECTED[_EXPRESSIONS[number]]

    if expected is REFUSED:
        assert isinstance(outcome, set), outcome
        assert outcome <= _REFUSALS
    else:
        assert (type(outcome), outcome) == (type(expected), expected)


def test_the_expressions_are_as_many_as_the_table_of_threats_says() -> None:
    assert len(_EXPRESSIONS) == len(_EXPECTED) == 198
    assert set(_EXPRESSIONS).isdisjoint(ESCAPES.values())
