"""The claim that comes closest to what is there, by the shipped Compositions."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.assets import assets
from fairlead.imports.fitting import Candidate, Wanted, best_fit
from fairlead.imports.thing import Thing
from fairlead.rendering import compositions_in, shipped_kinds

CLAIM = shipped_kinds("database.fairlead.dev_*.yaml")["PostgreSQLInstance.database.fairlead.dev"]
DATABASE = shipped_kinds("onprem.fairlead.dev_*.yaml")["PostgresDatabase.onprem.fairlead.dev"].resource
(ONPREM,) = compositions_in(assets("compositions") / "postgres-onprem.yaml")
CANDIDATES = [Candidate("postgres-onprem", ONPREM.content["spec"], {})]
MEDIUM: dict[str, Any] = {
    "databaseName": "shop", "username": "shop_app", "version": "16", "connectionLimit": 50,
    "parameters": {"work_mem": "8MB"},
}  # fmt: skip


def _wanted(**fields: Any) -> Wanted:
    return Wanted(DATABASE, Thing("PostgresDatabase", "Shop"), "team", {**MEDIUM, **fields}, {})


@pytest.mark.parametrize(
    ("fields", "size", "differences"),
    [
        ({}, "medium", []),
        ({"connectionLimit": 77}, "large", ["connectionLimit: 77 -> 100"]),
        ({"connectionLimit": 500}, "xlarge", ["connectionLimit: 500 -> 200"]),
        ({"parameters": {"work_mem": "9MB"}, "extensions": ["citext"]}, "medium", []),
    ],
)
def test_the_size_that_changes_least_is_taken_and_what_differs_is_said(
    fields: dict[str, Any], size: str, differences: list[str]
) -> None:
    fit = best_fit(_wanted(**fields), CANDIDATES, CLAIM.resource, CLAIM.schema or {})

    assert fit is not None
    assert fit.claim["spec"]["size"] == size
    texts = [str(difference) for difference in fit.differences]
    assert [text[: len(begin)] for text, begin in zip(texts, differences, strict=True)] == differences
