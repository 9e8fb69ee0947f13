"""What a Composition is refused for because claims that its API allows could not be rendered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.kinds.catalog import Catalog, KindFacts
from composer.validation.validate import CheckRequest, check
from runtime.objects import Resource
from tests.composer.factories import CLAIMS, composition_of, resource_of
from tests.composer.validation.test_validate import STATUS

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
        "deletionPolicy": {"type": "string"},
    },
}
CHILD_STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "endpoint": {"type": "string"},
        "port": {"type": "integer", "minimum": 1024},
        "phase": {"type": "string", "enum": ["Creating", "Available"]},
        "standby": {"type": "boolean"},
        "zones": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
PATH = "spec.resources[0].template.spec"


def _facts(kind: str, group: str, spec: dict[str, Any], *, abstract: bool) -> KindFacts:
    status = (
        {**STATUS, "properties": {**STATUS["properties"], "port": {"type": "integer"}}} if abstract else CHILD_STATUS
    )
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": spec, "status": status}
    resource = Resource(group, "v1alpha1", kind, f"{kind.lower()}s")
    return KindFacts(
        resource,
        stateful=not abstract,
        gaps=() if abstract else ("status.inventory",),
        allowed=not abstract,
        schema={"type": "object", "properties": properties},
    )


CATALOG: Catalog = {
    facts.resource.group_kind: facts
    for facts in (
        _facts(CLAIMS.kind, CLAIMS.group, SPEC, abstract=True),
        _facts("PostgresDatabase", "onprem.fairlead.dev", CHILD, abstract=False),
    )
}


def _problems(known: dict[str, dict[str, str]] | None = None, **spec: Any) -> list[str]:
    return [f"{fault.reason} {fault}" for fault in check(CheckRequest(_composition(**spec), CATALOG, known or {}))]


def _template(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "onprem.fairlead.dev/v1alpha1", "kind": "PostgresDatabase", "spec": spec}


def _composition(
    *, when: str = "", environments: tuple[str, ...] = (), status: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    resources = (
        resource_of("database", _template(**{"version": "{{ claim.spec.version }}", **spec}), when=when),
        resource_of("second", _template(version="{{ resources.database.spec.version | or_else('15') }}")),
        resource_of("third", _template(version="15")),
    )
    return composition_of(*resources, environments=list(environments), status=status or {})


class Refusal(msgspec.Struct, frozen=True):
    spec: dict[str, Any]
    says: str


ALL = "for a claim with all that goes together: "
EVERY = "fails for every claim: "
REPORTED = f"{ALL}once its resources report, "
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
        {"version": "{{ none }}"}, f"SchemaMismatch {PATH}: fails for every claim: version is missing"
    ),
    "what claims of required fields alone do not give": Refusal(
        {"version": "{{ claim.spec.owner | default(none) }}"},
        f"SchemaMismatch {PATH}: fails for every claim without spec.owner: version is missing",
    ),
    "a field of a map that claims of required fields alone leave out": Refusal(
        {"owner": "{{ claim.spec.labels.a }}"},
        f"RenderFailed {PATH}.owner:4: fails for every claim without spec.labels: 'labels' is undefined",
    ),
    "two faults that have every claim fail between them": Refusal(
        {"owner": "{{ {'small': claim.spec.cpu}[claim.spec.size] }}"},
        f"RenderFailed {PATH}.owner:4: fails for every claim with spec.size: small: 'cpu' is undefined",
    ),
    # What another resource reports is tried before any child reports it.
    "a number that is reported, for a text": Refusal(
        {"owner": "{{ resources.third.status.port }}"},
        f"SchemaMismatch {PATH}.owner: {REPORTED}wants string, found a whole number",
    ),
    "a text that is reported, for a number": Refusal(
        {"connections": "{{ resources.third.status.endpoint }}"},
        f"SchemaMismatch {PATH}.connections: {REPORTED}wants integer, found a text",
    ),
    "a list that is reported, in a text": Refusal(
        {"status": {"endpoint": "{{ resources.third.status.zones }}"}},
        f"SchemaMismatch spec.status.endpoint: {REPORTED}wants string, found a list",
    ),
    "a number in the claim's own status": Refusal(
        {"status": {"endpoint": "{{ resources.third.status.port }}"}},
        f"SchemaMismatch spec.status.endpoint: {REPORTED}wants string, found a whole number",
    ),
    "a text and a number added": Refusal(
        {"owner": "{{ resources.third.status.endpoint + resources.third.status.port }}"},
        f"RenderFailed {PATH}.owner:4: {REPORTED}cannot be computed",
    ),
    "what only comes once there is a standby": Refusal(
        {"connections": "{{ 'x' if resources.third.status.standby else 1 }}"},
        f"SchemaMismatch {PATH}.connections: {REPORTED}wants integer, found a text",
    ),
    "what only comes in the last phase": Refusal(
        {"connections": "{{ {'Creating': 1, 'Available': 'x'}[resources.third.status.phase] }}"},
        f"SchemaMismatch {PATH}.connections: {REPORTED}wants integer, found a text",
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_a_composition_that_suits_no_claim_or_makes_the_wrong_shape_for_one_is_refused(case: Refusal) -> None:
    problems = _problems(**case.spec)

    assert problems
    assert case.says in problems[0]


SETTINGS: dict[str, Any] = {"environments": ("defaults",)}
SETTLED = {
    "a setting that is a text, for a number": Refusal(
        {"connections": "{{ env.defaults.limit }}"},
        f"SchemaMismatch {PATH}.connections: {ALL}wants integer, found a text",
    ),
    "a setting that is not there": Refusal(
        {"owner": "{{ env.defaults.ovner }}"},
        f"RenderFailed {PATH}.owner:4: {EVERY}'ovner' is undefined, did you mean 'owner'?",
    ),
    "a setting that is no YAML": Refusal(
        {"owner": "{{ env.defaults.zones.first }}"},
        f"YamlRefused {EVERY}environment 'defaults', key 'zones.yaml': line 1",
    ),
    "a setting of another type in YAML": Refusal(
        {"owner": "{{ env.defaults.more.limit }}"},
        f"SchemaMismatch {PATH}.owner: {ALL}wants string, found a whole number",
    ),
}


@pytest.mark.parametrize("case", SETTLED.values(), ids=SETTLED)
def test_environments_that_exist_are_used_in_trials(case: Refusal) -> None:
    known = {"limit": "20", "owner": "team-a", "more.yaml": "limit: 3"}
    broken = {"zones.yaml": "{"} if "zones" in str(case.spec) else {}

    problems = _problems({"defaults": {**known, **broken}}, **SETTINGS, **case.spec)

    assert problems
    assert case.says in problems[0]
    # What nobody has written yet is no fault.
    assert _problems({}, **SETTINGS, **case.spec) == []


ACCEPTED: dict[str, dict[str, Any]] = {
    "what fails for no claim that is allowed": {
        "owner": "{{ 'x' if claim.spec.size is defined or claim.spec.cpu is defined else 1 / 0 }}"
    },
    "a text that nobody can make up": {"owner": "{{ claim.spec.note | default('none') | lower }}"},
    "a text of the pattern": {"owner": "{{ claim.spec.startTime[:2] if claim.spec.startTime is defined else '' }}"},
    "the settings of the platform": {"owner": "{{ env.defaults.owner }}", "environments": ("defaults",)},
    "one resource less for some claims": {"when": "{{ claim.spec.version == '16' }}"},
    "a value that another resource will report": {"owner": "{{ resources.third.status.endpoint | lower }}"},
    "a status for which no text can be made up": {
        "owner": "{{ {'eu-west-1': 'a'}[resources.third.status.endpoint] }}",
        "connections": "{{ resources.third.status.endpoint | gib }}",
    },
    "a part of a text that is reported": {"owner": "{{ (resources.third.status.endpoint | split('.'))[3] }}"},
    "a number made of a text that is reported": {"connections": "{{ resources.third.status.endpoint | int }}"},
    "what is kept as it comes": {"owner": "{{ resources.third.status.raw.deep.down }}"},
    "an element of what is reported": {"owner": "{{ resources.third.status.zones[0].name }}"},
    "a tag that nobody knows of": {"owner": "{{ resources.third.status.tags.team }}"},
    "a number of the claim's status": {"status": {"port": "{{ resources.third.status.port }}"}},
    "settings that fit": {
        "known": {"defaults": {"limit": "20"}},
        "environments": ("defaults",),
        "connections": "{{ env.defaults.limit | int }}",
    },
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_a_composition_without_a_certain_fault_is_accepted(spec: dict[str, Any]) -> None:
    assert _problems(**spec) == []


def test_a_composition_of_many_resources_is_checked_with_fewer_claims() -> None:
    template = _template(version="{{ claim.spec.version }}")
    composition = composition_of(*(resource_of(f"r{number}", template) for number in range(128)))

    assert check(CheckRequest(composition, CATALOG)) == ()
