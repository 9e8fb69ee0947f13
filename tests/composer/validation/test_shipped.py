"""The shipped Compositions: what they make the API server takes, and no field of a claim is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from composer.render.schema import Schema
from composer.validation.validate import CheckRequest, remarks
from fairlead.rendering import shipped_kinds
from tests.composer.validation import claim_fields


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp", "onprem"])
def test_a_claim_at_the_limits_makes_what_its_kinds_allow(cloud: str) -> None:
    composition = claim_fields.COMPOSITIONS[cloud]
    request = CheckRequest(composition, dict(shipped_kinds("*.yaml")), claim_fields.ENVIRONMENTS)

    assert remarks(request) == ()


def test_each_field_of_a_claim_is_in_the_table() -> None:
    claim = shipped_kinds("database.fairlead.dev_*.yaml")["PostgreSQLInstance.database.fairlead.dev"]
    spec = (claim.schema or {})["properties"]["spec"]

    assert {*claim_fields.FIELDS, *claim_fields.BY_THE_COMPOSER} == {*_leaves(spec)}


@pytest.mark.parametrize("composition", claim_fields.COMPOSITIONS)
def test_each_field_of_a_claim_is_served_noted_or_refused_in_a_sentence(composition: str) -> None:
    cells = {field: claim_fields.cell(composition, field) for field in claim_fields.FIELDS}

    assert [field for field, text in cells.items() if not text or "undefined" in text] == []


def test_the_page_says_so() -> None:
    page = claim_fields.PAGE.read_text(encoding="utf-8")

    assert page == claim_fields.page(), "run `python -m tests.composer.validation.claim_fields`"


def _leaves(schema: Schema, path: str = "") -> Iterator[str]:
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from _leaves(below, f"{path}{name}.")
        else:
            yield f"{path}{name}"
