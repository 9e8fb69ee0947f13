"""What a Composition offers, what it refuses of a claim, and whether the two agree with what is rendered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.models import FieldOffering, OfferedField, OfferedValue
from composer.render.errors import UNSUPPORTED_VALUE, CompositionError
from composer.render.offerings import refusals
from composer.render.render import render
from composer.render.request import Request
from composer.validation import offered_fields
from composer.validation.offerings import offerings
from composer.validation.validate import CheckRequest
from fairlead.rendering import shipped_kinds
from tests.composer.factories import CLAIMS as CLAIM_API
from tests.composer.validation import claim_fields
from tests.composer.validation.test_samples import SPEC

DECLARED = {
    "version": FieldOffering(values=("16",)),
    "cpu": FieldOffering(minimum=2, maximum=8),
    "labels": FieldOffering(values=("team", "a.b")),
    "labels.team": FieldOffering(minimum=1),
    "labels.a.b": FieldOffering(values=("x",)),
    "owner": FieldOffering(refused="ask the platform team"),
}
CLAIMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "what is served": ({"version": "16", "cpu": 8, "labels": {"team": "7", "a.b": "x"}}, ()),
    "everything else at once": (
        {"version": "15", "cpu": 9, "labels": {"team": "b", "a.b": "y", "c": "d"}, "owner": "me"},
        (
            "version: 15 is not offered; offered: 16",
            "cpu: 9 is not offered; 2 to 8 is",
            "labels: c is not offered; offered: team, a.b",
            "labels.team: b is no whole number; 1 and more is offered",
            "labels.a.b: y is not offered; offered: x",
            "owner: ask the platform team",
        ),
    ),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_a_claim_is_refused_all_that_is_not_offered(case: str) -> None:
    spec, sentences = CLAIMS[case]

    assert tuple(str(refusal) for refusal in refusals(DECLARED, spec)) == sentences


def test_nothing_is_rendered_of_a_claim_that_asks_for_more() -> None:
    declared = {"version": {"values": ["16"]}, "cpu": {"refused": "name a size"}}
    composition = {**claim_fields.COMPOSITIONS["onprem"], "offers": declared}
    meta = {"name": "orders", "namespace": "shop", "uid": "uid"}
    spec = {"version": "15", "cpu": 2, "memoryGiB": 4}
    claim = {"apiVersion": CLAIM_API.api_version, "kind": CLAIM_API.kind, "metadata": meta, "spec": spec}

    with pytest.raises(CompositionError) as caught:
        render(Request("c", composition, claim, "uid@shop/orders"))

    refused = {"version: 15 is not offered; offered: 16", "cpu: name a size"}
    assert {(problem.reason, problem.message) for problem in caught.value.problems} == {
        (UNSUPPORTED_VALUE, sentence) for sentence in refused
    }


FAULTS = {
    "a field that the schema has": ("version", FieldOffering(values=("16",)), ""),
    "a name in a map": ("labels.a.b", FieldOffering(minimum=1), ""),
    "a field that it has not": ("versoin", FieldOffering(values=("16",)), "did you mean 'version'"),
    "a field below one that it has not": ("size.cpu", FieldOffering(values=("1",)), "unknown field 'cpu'"),
    "a value that the schema refuses": ("version", FieldOffering(values=("9",)), "'9' is no value of it"),
    "nothing at all": ("version", FieldOffering(), "give one of"),
    "a range of a text": ("size", FieldOffering(minimum=1), "has no minimum"),
    "a range upside down": ("cpu", FieldOffering(minimum=3, maximum=2), "minimum 3 is more than maximum 2"),
    "numbers that are none": ("cpu", FieldOffering(values=("two",)), "whole numbers"),
    "a field that every claim has": ("storageGiB", FieldOffering(refused="no"), "none would be served"),
    "values without the default": ("storageGiB", FieldOffering(values=("30",)), "20 is missing"),
    "a field of the composer": ("deletionPolicy", FieldOffering(values=("Orphan",)), "deletionPolicies"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_an_offer_fits_the_schema_of_its_claims(case: str) -> None:
    path, offering, says = FAULTS[case]
    messages = [problem.message for problem in offered_fields.faults({path: offering}, SPEC)]

    assert (len(messages), says in "".join(messages)) == (bool(says), True), messages


def _offered(composition: str, **declared: Any) -> dict[str, OfferedField]:
    content = {**claim_fields.COMPOSITIONS[composition], **({"offers": declared} if declared else {})}
    request = CheckRequest(content, dict(shipped_kinds("*.yaml")), claim_fields.ENVIRONMENTS)
    return {field.path: field for field in offerings(request).fields}


@pytest.mark.parametrize("composition", claim_fields.COMPOSITIONS)
def test_what_is_refused_and_noted_is_what_the_page_of_fields_says(composition: str) -> None:
    cells = {field: claim_fields.cell(composition, field) for field in claim_fields.FIELDS}
    offered = _offered(composition)

    assert {path for path in cells if offered[path].refused} == {
        path for path, text in cells.items() if text.startswith("refused: ")
    }
    assert {path for path, text in cells.items() if text.startswith("note: ") and not offered[path].note} == set()


def test_numbers_are_those_that_render_and_sizes_have_those_of_their_table() -> None:
    offered = _offered("azure", version={"values": ["16", "17"]}, storageGiB={"maximum": 512}, cpu={"refused": "no"})

    assert offered["size"].values[0] == OfferedValue("small", "cpu 2, memoryGiB 4, storageGiB 32")
    assert [value.value for value in offered["version"].values] == ["16", "17"]
    assert (offered["storageGiB"].minimum, offered["storageGiB"].maximum) == (1, 512)
    assert offered["cpu"].refused == "no"
    assert _offered("azure")["memoryGiB"].maximum == 672
    assert {value.value for value in offered["deletionPolicy"].values} == {"Orphan", "Delete"}
    assert msgspec.json.encode(offered["version"]).startswith(b'{"path":"version","type":"string","required":true')
