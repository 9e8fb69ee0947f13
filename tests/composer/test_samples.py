"""What a Composition is refused for because claims that its API allows could not be rendered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.check import CheckRequest, check, remarks
from composer.kinds import Catalog, KindFacts
from composer.sampling import samples
from composer.values import Pending
from runtime.objects import Resource
from tests.composer.factories import CLAIMS
from tests.composer.test_check import STATUS

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["version"],
    "x-kubernetes-validations": [
        {"rule": "has(self.size) != has(self.cpu)"},
        {"rule": "has(self.cpu) == has(self.memoryGiB)"},
        {"rule": "!has(self.cpu) || self.cpu > 0"},
    ],
    "properties": {
        "version": {"type": "string", "enum": ["15", "16"]},
        "size": {"type": "string", "enum": ["small", "large"]},
        "cpu": {"type": "integer", "minimum": 2},
        "memoryGiB": {"type": "integer", "minimum": 1, "maximum": 64},
        "storageGiB": {"type": "integer", "default": 20},
        "startTime": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        "owner": {"type": "string", "description": "Who pays. Example: team-a."},
        "note": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
CHILD: dict[str, Any] = {
    "type": "object",
    "required": ["version"],
    "properties": {
        "version": {"type": "string"},
        "connections": {"type": "integer"},
        "owner": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
PATH = "spec.resources[0].template.spec"


def _facts(kind: str, group: str, spec: dict[str, Any], *, abstract: bool) -> KindFacts:
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": spec, "status": STATUS}
    resource = Resource(group, "v1alpha1", kind, f"{kind.lower()}s")
    return KindFacts(
        resource,
        stateful=not abstract,
        gaps=() if abstract else ("status.inventory",),
        allowed=not abstract,
        schema={"type": "object", "properties": properties},
    )


CATALOG: Catalog = {
    each.resource.group_kind: each
    for each in (
        _facts(CLAIMS.kind, CLAIMS.group, SPEC, abstract=True),
        _facts("PostgresDatabase", "onprem.fairlead.dev", CHILD, abstract=False),
    )
}


def _problems(**spec: Any) -> list[str]:
    return [f"{each.reason} {each}" for each in check(CheckRequest(_composition(**spec), CATALOG))]


def _composition(*, when: str = "", environments: tuple[str, ...] = (), **spec: Any) -> dict[str, Any]:
    template = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "PostgresDatabase",
        "spec": {"version": "{{ claim.spec.version }}", **spec},
    }
    return {
        "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
        "environments": list(environments),
        "resources": [
            {"name": "database", "template": template, "when": when},
            {
                "name": "second",
                "template": {**template, "spec": {"version": "{{ resources.database.spec.version | or_else('15') }}"}},
            },
            {"name": "third", "template": {**template, "spec": {"version": "15"}}},
        ],
    }


class Refusal(msgspec.Struct, frozen=True):
    spec: dict[str, Any]
    says: str


REFUSALS = {
    "a number for a text": Refusal(
        {"owner": "{{ claim.spec.storageGiB }}"},
        f"SchemaMismatch {PATH}.owner: for a claim with all that goes together: wants string, found a whole number",
    ),
    "a text for a number": Refusal(
        {"connections": "{{ claim.spec.version }}"},
        f"SchemaMismatch {PATH}.connections: for a claim with all that goes together: wants integer, found a text",
    ),
    "a text for a number in some claims": Refusal(
        {"connections": "{{ {'small': 20}[claim.spec.size] | or_else('many') }}"},
        f"SchemaMismatch {PATH}.connections: for a claim with size: large: wants integer, found a text",
    ),
    "a map whose values are of another type": Refusal(
        {"labels": "{{ {'a': claim.spec.storageGiB} }}"},
        f"SchemaMismatch {PATH}.labels.a: for a claim with all that goes together: wants string, found a whole number",
    ),
    "a condition that is no condition": Refusal({"when": "{{ claim.spec.version }}"}, "must be true or false"),
    "what fails for every claim": Refusal({"owner": "{{ 1 / 0 }}"}, "cannot be computed: division by zero"),
    "what the kind wants and no claim gives": Refusal(
        {"version": "{{ none }}"}, f"SchemaMismatch {PATH}: for a claim with all that goes together: version is missing"
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_a_composition_that_suits_no_claim_or_makes_the_wrong_shape_for_one_is_refused(case: Refusal) -> None:
    found = _problems(**case.spec)

    assert found
    assert case.says in found[0]


REMARKS = {
    "a size that the composition forgot": Refusal(
        {"connections": "{{ {'small': 20}[claim.spec.size | default('small')] }}"},
        f"RenderFailed {PATH}.connections:4: for a claim with size: large: 'large' is undefined",
    ),
    "a field that not every claim has": Refusal(
        {"owner": "{{ claim.spec.size }}"},
        f"RenderFailed {PATH}.owner:4: for a claim with cpu: 2: 'size' is undefined",
    ),
    "a field that the kind wants and that may be left out": Refusal(
        {"version": "{{ claim.spec.owner | default(none) }}"},
        f"SchemaMismatch {PATH}: for a claim with version: 15: version is missing",
    ),
}


@pytest.mark.parametrize("case", REMARKS.values(), ids=REMARKS)
def test_a_composition_that_fails_for_some_claims_is_accepted_and_says_for_which(case: Refusal) -> None:
    request = CheckRequest(_composition(**case.spec), CATALOG)
    said = [f"{each.reason} {each}" for each in remarks(request)]

    assert check(request) == ()
    assert [each for each in said if case.says in each]


ACCEPTED: dict[str, dict[str, Any]] = {
    "what fails for no claim that is allowed": {
        "owner": "{{ 'x' if claim.spec.size is defined or claim.spec.cpu is defined else 1 / 0 }}"
    },
    "a text that nobody can make up": {"owner": "{{ claim.spec.note | default('none') | lower }}"},
    "a text of the pattern": {"owner": "{{ claim.spec.startTime[:2] if claim.spec.startTime is defined else '' }}"},
    "the settings of the platform": {"owner": "{{ env.defaults.owner }}", "environments": ("defaults",)},
    "one resource less for some claims": {"when": "{{ claim.spec.version == '16' }}"},
    "a value that another resource will report": {"owner": "{{ resources.third.status.endpoint | lower }}"},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_a_composition_is_accepted_with(spec: dict[str, Any]) -> None:
    assert _problems(**spec) == []


def test_each_value_of_a_list_is_taken_once_and_what_excludes_itself_never_together() -> None:
    found = [each.spec for each in samples(SPEC)]

    assert {each["version"] for each in found} == {"15", "16"}
    assert {each["size"] for each in found if "size" in each} == {"small", "large"}
    assert all(("size" in each) != ("cpu" in each and "memoryGiB" in each) for each in found)
    assert all(each["storageGiB"] == 20 for each in found)
    assert {each["owner"] for each in found if "owner" in each} == {"team-a"}
    assert all(isinstance(each["note"], Pending) for each in found)


def test_a_composition_of_many_resources_is_checked_with_fewer_claims() -> None:
    template = {
        "apiVersion": "onprem.fairlead.dev/v1alpha1",
        "kind": "PostgresDatabase",
        "spec": {"version": "{{ claim.spec.version }}"},
    }
    composition = {
        "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
        "resources": [{"name": f"r{number}", "template": template} for number in range(128)],
    }

    assert check(CheckRequest(composition, CATALOG)) == ()
