"""What a Composition is refused for before any claim uses it, and where it says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.kinds.catalog import Catalog, KindFacts
from composer.validation.validate import CheckRequest, check
from runtime.objects import Resource
from tests.composer.factories import CLAIMS, TEMPLATE, composition_of, resource_of, template_of


class Refusal(msgspec.Struct, frozen=True):
    composition: dict[str, Any]
    reason: str
    path: str = ""


STATUS: dict[str, Any] = {
    "type": "object",
    "default": {"observedGeneration": -1},
    "properties": {
        "conditions": {"x-kubernetes-list-type": "map"},
        **{name: {} for name in ("inventory", "composition", "identity", "binding")},
        "endpoint": {"type": "string"},
    },
}
BACKUP = {"type": "object", "properties": {"startTime": {"type": "string"}}}
SPEC = {
    "type": "object",
    "properties": {"size": {"type": "string"}, "extensions": {"type": "array"}, "backup": BACKUP},
}
CHILD_SPEC = {
    "type": "object",
    "properties": {
        "forProvider": {
            "type": "object",
            "properties": {
                "databaseName": {"type": "string"},
                "connectionLimit": {"type": "integer"},
                "username": {"type": "string"},
            },
        }
    },
}
CHILD_STATUS = {"type": "object", "properties": {"host": {"type": "string"}}}


def _facts(kind: str, group: str, spec: Any, status: Any, **fields: Any) -> KindFacts:
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": spec, "status": status}
    resource = Resource(group, "v1alpha1", kind, f"{kind.lower()}s")
    return KindFacts(resource, schema={"type": "object", "properties": properties}, **fields)


CATALOG: Catalog = {
    "PostgreSQLInstance.database.fairlead.dev": _facts(
        "PostgreSQLInstance", "database.fairlead.dev", SPEC, STATUS, stateful=False, gaps=()
    ),
    "PostgresDatabase.onprem.fairlead.dev": _facts(
        "PostgresDatabase", "onprem.fairlead.dev", CHILD_SPEC, CHILD_STATUS, stateful=True, allowed=True
    ),
}
NAMED = {"resource": "a", "name": "{{ resources.a.metadata.name }}", "keys": {"password": "password"}}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
MANY = "{{ claim.spec.extensions }}"


def alone(reason: str, path: str = "", *, template: Any = None, whole: Any = None, **fields: Any) -> Refusal:
    """Refuse a composition of one resource; `whole` is what stands beside the resources."""
    return Refusal(composition_of(resource_of("a", template, **fields), **(whole or {})), reason, path)


def reads(expression: str, reason: str, *, path: str = "", **fields: Any) -> Refusal:
    """Refuse a resource whose template reads what it cannot."""
    return alone(reason, path, template=template_of(username=f"{{{{ {expression} }}}}"), **fields)


def reads_a(expression: str, reason: str, *, path: str = "", **fields: Any) -> Refusal:
    """Refuse a resource that reads of its neighbour `a` what it cannot."""
    reader = resource_of("b", template_of(username=f"{{{{ {expression} }}}}"))
    return Refusal(composition_of(resource_of("a", **fields), reader), reason, path)


def marked(metadata: Any, reason: str, path: str = "") -> Refusal:
    return alone(reason, path, template={**TEMPLATE, "metadata": metadata})


def connected(connection: dict[str, Any], reason: str, path: str = "") -> Refusal:
    """Refuse a connection; `path` is the place below it."""
    return alone(reason, f"spec.connection{path}", whole={"connection": connection})


USERNAME = "spec.resources[0].template.spec.forProvider.username"
INVALID, FORBIDDEN, CYCLE = "TemplateInvalid", "TemplateForbidden", "DependencyCycle"
MOVED = "spec.resources[0].movedFrom"
ELEMENTS = "{{ ['x'] }}"
CLAIM_KIND = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind}
NOT_INSTALLED = {"apiVersion": "aws.fairlead.dev/v1alpha1", "kind": "RDSInstance"}
NO_KIND = {"compositeTypeRef": {"apiVersion": "x.dev/v1", "kind": "X"}}
OWN_NAME = {"variables": {"name": "{{ resources.a.metadata.name }}"}}
CIRCLE = {"variables": {"x": "{{ vars.y }}", "y": "{{ vars.x }}"}}
POD = {"kind": "Pod", "name": "a", "key": "b"}
COMPUTED_HOST = {"from": "a", "host": "{{ resources[claim.spec.size].status.host }}"}

CHECKS = {
    "a misspelt field of the claim, under a default": reads(
        "claim.spec.sise | default('x')", "RenderFailed", path=USERNAME
    ),
    "a field that a map of the claim does not have, under a default": reads(
        "claim.spec.backup.retention | default('x')", "RenderFailed", path=USERNAME
    ),
    "a misspelt map of the claim, under a default": reads(
        "claim.spec.bakcup.startTime | default('x')", "RenderFailed", path=USERNAME
    ),
    "a misspelt variable": reads("vars.clas", "RenderFailed", whole={"variables": {"class": "x"}}),
    "an unknown environment": reads("env.x.y", "RenderFailed"),
    "an unknown root": reads("calim.spec.size", "RenderFailed"),
    "a status that the kind does not have": reads_a("resources.a.status.hots", "RenderFailed"),
    "an unknown field": alone(
        "SchemaMismatch", USERNAME.replace("username", "conectionLimit"), template=template_of(conectionLimit=1)
    ),
    "a text for a number": alone("SchemaMismatch", template=template_of(connectionLimit="5")),
    "a text with an expression for a number": alone("SchemaMismatch", template=template_of(connectionLimit="5{{ 0 }}")),
    "a number for a text": alone("SchemaMismatch", template=template_of(username=16.1)),
    "a cluster role": alone("KindNotAllowed", template=ROLE),
    "a claim within a claim": alone("KindNotAllowed", template=CLAIM_KIND),
    "a kind that is not installed": alone("KindNotInstalled", template=NOT_INSTALLED),
    "another version": alone("KindNotInstalled", template={**TEMPLATE, "apiVersion": "onprem.fairlead.dev/v1"}),
    "an unknown kind of claim": Refusal(
        {**composition_of(resource_of("a")), **NO_KIND}, "KindNotInstalled", "spec.compositeTypeRef"
    ),
    "a name of its own": marked({"name": "x"}, "NameNotAllowed"),
    "a generated name": marked({"generateName": "x-"}, "NameNotAllowed"),
    "a list": alone("KindNotAllowed", template={"apiVersion": "v1", "kind": "List", "items": []}),
    "a kind that an expression makes": alone(INVALID, template={**ROLE, "kind": "{{ 'Cluster' ~ 'Role' }}"}),
    "another namespace": marked({"namespace": "x"}, "NamespaceNotAllowed"),
    "our own label": marked({"labels": {"fairlead.dev/claim": "x"}}, FORBIDDEN),
    "an owner of its own": marked({"ownerReferences": []}, "SchemaMismatch"),
    "labels that an expression makes": marked(
        {"labels": "{{ claim.metadata.labels }}"}, INVALID, "spec.resources[0].template.metadata.labels"
    ),
    "metadata that an expression makes": marked("{{ claim.metadata }}", INVALID),
    "a name twice": Refusal(composition_of(resource_of("a"), resource_of("a")), "DuplicateResource"),
    "a cycle": Refusal(composition_of(resource_of("a", dependsOn=["b"]), resource_of("b", dependsOn=["a"])), CYCLE),
    "a cycle of variables": alone(CYCLE, whole=CIRCLE),
    "itself": reads("resources.a.status.host", CYCLE),
    "its own labels": reads("resources.a.metadata.labels", CYCLE),
    "its own name where it says whether it is made": alone(CYCLE, when="{{ resources.a.metadata.name == 'a' }}"),
    "its own name through a variable": reads("vars.name", CYCLE, whole=OWN_NAME),
    "the name of many": reads("resources.a.metadata.name", CYCLE, forEach=MANY),
    "an unknown neighbour": alone(INVALID, dependsOn=["bb"]),
    "a computed neighbour": reads("resources[claim.spec.size].status.host", INVALID),
    "a neighbour's labels": reads_a("resources.a.metadata.labels", INVALID),
    "a neighbour that is many": reads_a("resources.a.status.host", INVALID, forEach=MANY),
    "an element without what of it is read": reads_a("resources.a['x']", INVALID, forEach=MANY),
    "an element's labels": reads_a("resources.a[claim.spec.size].metadata.labels", INVALID, forEach=MANY),
    "elements as a list": reads_a("(resources.a | first).status.host", INVALID, forEach=MANY),
    "a status that an element's kind does not have": reads_a(
        "resources.a[claim.spec.size].status.hots", "RenderFailed", path="spec.resources[1]", forEach=MANY
    ),
    "an element of itself": reads("resources.a['x'].status.host", CYCLE, forEach=MANY),
    "resources that read each other's elements": Refusal(
        composition_of(
            resource_of("a", template_of(username="{{ resources.b['x'].status.host }}"), forEach=ELEMENTS),
            resource_of("b", template_of(username="{{ resources.a['x'].status.host }}"), forEach=ELEMENTS),
        ),
        CYCLE,
    ),
    "a resource that is no element, by a key": reads_a("resources.a['x'].status.host", INVALID),
    "moved by key and none of many": alone(INVALID, MOVED, movedFrom=["a{{ each.key }}"]),
    "moved from whatever there is": alone(INVALID, MOVED, forEach=ELEMENTS, movedFrom=["{{ each.key }}"]),
    "moved from a computed name": alone(INVALID, MOVED, forEach=ELEMENTS, movedFrom=["{{ 'a' ~ each.key }}"]),
    "moved by key from one that is there": Refusal(
        composition_of(resource_of("many", forEach=ELEMENTS, movedFrom=["a{{ each.key }}"]), resource_of("ax")),
        INVALID,
        MOVED,
    ),
    "a computed neighbour in the connection": connected(COMPUTED_HOST, INVALID, ".host"),
    "a computed neighbour in the status": alone(
        INVALID, "spec.status.endpoint", whole={"status": {"endpoint": "{{ (resources | first).status.host }}"}}
    ),
    "a computed variable": reads("vars[claim.spec.size]", INVALID, whole={"variables": {"small": "x"}}),
    "each where nothing is repeated": reads("each.key", INVALID),
    "each in what decides on the repetition": alone(
        INVALID, "spec.resources[0].when", forEach=MANY, when="{{ each.key == 'x' }}"
    ),
    "a spec that the kind does not have": reads_a(
        "resources.a.spec.forProvider.databaseNam", "RenderFailed", path="spec.resources[1]"
    ),
    "data declared as none": alone(INVALID, stateful=False),
    "a connection from a resource and a Secret": connected({"from": "a", "secretRef": {}}, INVALID),
    "a Secret of no resource": connected({"secretRef": {**NAMED, "resource": "b"}}, INVALID, ".secretRef.resource"),
    "a Secret that gives too little": connected({"secretRef": NAMED}, INVALID, ".secretRef"),
    "keys of a Secret as expressions": connected(
        {"secretRef": {**NAMED, "keys": {"host": "{{ claim.spec.size }}"}}}, INVALID, ".secretRef.keys"
    ),
    "an authority of another kind": connected({"from": "a", "caRef": POD}, INVALID, ".caRef.kind"),
    "a connection from nowhere": connected({"from": "aa"}, INVALID),
    "a password in a template": connected({"from": "a", "password": "x"}, FORBIDDEN),
    "another host beside a resource": connected({"from": "a", "host": "evil.example.com"}, FORBIDDEN, ".host"),
    "no TLS beside a resource": connected({"from": "a", "sslmode": "{{ 'disable' }}"}, FORBIDDEN, ".sslmode"),
    "a port beside a resource": connected({"from": "a", "port": 1}, FORBIDDEN, ".port"),
    "certificates beside a resource": connected({"from": "a", "certificates": "x"}, FORBIDDEN, ".certificates"),
    "an unknown field of the claim's status": alone(
        "SchemaMismatch", "spec.status.endpont", whole={"status": {"endpont": "x"}}
    ),
    "no resources": Refusal(composition_of(), "EmptyResult"),
    "another shape": Refusal({"resources": 3}, "SchemaMismatch"),
}


@pytest.mark.parametrize("case", CHECKS.values(), ids=CHECKS)
def test_a_composition_is_refused_at_load(case: Refusal) -> None:
    problems = check(CheckRequest(case.composition, CATALOG))

    assert [problem.reason for problem in problems][:1] == [case.reason]
    assert case.path in problems[0].path
    assert len(str(problems[0])) <= 400


def test_an_abstract_kind_that_lacks_something_is_named() -> None:
    lacking = tuple(f"status.{name}" for name in ("inventory", "identity", "b", "c", "d", "e", "f"))
    bare = _facts("PostgreSQLInstance", "database.fairlead.dev", SPEC, STATUS, stateful=False, gaps=lacking)

    (problem,) = check(CheckRequest(composition_of(resource_of("a")), {**CATALOG, bare.resource.group_kind: bare}))

    assert problem.reason == "ApiIncomplete"
    assert "status.inventory" in problem.message
    assert "and 1 more" in problem.message


def test_a_good_composition_is_accepted() -> None:
    composition = composition_of(
        resource_of("a", template_of(username="{{ claim.spec.size }}", connectionLimit="{{ 5 }}")),
        resource_of(
            "b", template_of(username="{{ resources.a.status.host }}"), readyWhen="{{ resources.b.status.host != '' }}"
        ),
        resource_of("many", forEach=MANY, movedFrom=["old{{ each.key }}"]),
        resource_of("c", template_of(username="{{ resources.many[claim.spec.size].status.host }}")),
        resource_of("d", template_of(username="{{ resources.many['x'].metadata.name }}")),
        connection={"from": "a"},
        status={"endpoint": "{{ resources.a.status.host }}"},
    )

    assert check(CheckRequest(composition, CATALOG)) == ()
