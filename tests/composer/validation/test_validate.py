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


def reads(expression: str, reason: str, *, path: str = "", **fields: Any) -> Refusal:
    """Refuse a resource whose template reads what it cannot."""
    return Refusal(
        composition_of(resource_of("a", template_of(username=f"{{{{ {expression} }}}}"), **fields)), reason, path
    )


def reads_a(expression: str, reason: str, *, path: str = "", **fields: Any) -> Refusal:
    """Refuse a resource that reads of its neighbour `a` what it cannot."""
    reader = resource_of("b", template_of(username=f"{{{{ {expression} }}}}"))
    return Refusal(composition_of(resource_of("a", **fields), reader), reason, path)


def marked(metadata: Any, reason: str, path: str = "") -> Refusal:
    return Refusal(composition_of(resource_of("a", {**TEMPLATE, "metadata": metadata})), reason, path)


def connected(connection: dict[str, Any], reason: str, path: str = "") -> Refusal:
    return Refusal(composition_of(resource_of("a"), connection=connection), reason, path)


CHECKS = {
    "a misspelt field of the claim, under a default": reads(
        "claim.spec.sise | default('x')", "RenderFailed", path="spec.resources[0].template.spec.forProvider.username"
    ),
    "a field that a map of the claim does not have, under a default": reads(
        "claim.spec.backup.retention | default('x')",
        "RenderFailed",
        path="spec.resources[0].template.spec.forProvider.username",
    ),
    "a misspelt map of the claim, under a default": reads(
        "claim.spec.bakcup.startTime | default('x')",
        "RenderFailed",
        path="spec.resources[0].template.spec.forProvider.username",
    ),
    "a misspelt variable": Refusal(
        composition_of(resource_of("a", template_of(username="{{ vars.clas }}")), variables={"class": "x"}),
        "RenderFailed",
    ),
    "an unknown environment": reads("env.x.y", "RenderFailed"),
    "an unknown root": reads("calim.spec.size", "RenderFailed"),
    "a status that the kind does not have": reads_a("resources.a.status.hots", "RenderFailed"),
    "an unknown field": Refusal(
        composition_of(resource_of("a", template_of(conectionLimit=1))),
        "SchemaMismatch",
        "spec.resources[0].template.spec.forProvider.conectionLimit",
    ),
    "a text for a number": Refusal(
        composition_of(resource_of("a", template_of(connectionLimit="5"))), "SchemaMismatch"
    ),
    "a text with an expression in it for a number": Refusal(
        composition_of(resource_of("a", template_of(connectionLimit="5{{ 0 }}"))), "SchemaMismatch"
    ),
    "a number for a text": Refusal(composition_of(resource_of("a", template_of(username=16.1))), "SchemaMismatch"),
    "a cluster role": Refusal(composition_of(resource_of("a", ROLE)), "KindNotAllowed"),
    "a claim within a claim": Refusal(
        composition_of(resource_of("a", {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind})), "KindNotAllowed"
    ),
    "a kind that is not installed": Refusal(
        composition_of(resource_of("a", {"apiVersion": "aws.fairlead.dev/v1alpha1", "kind": "RDSInstance"})),
        "KindNotInstalled",
    ),
    "another version": Refusal(
        composition_of(resource_of("a", {**TEMPLATE, "apiVersion": "onprem.fairlead.dev/v1"})), "KindNotInstalled"
    ),
    "an unknown kind of claim": Refusal(
        {**composition_of(resource_of("a")), "compositeTypeRef": {"apiVersion": "x.dev/v1", "kind": "X"}},
        "KindNotInstalled",
        "spec.compositeTypeRef",
    ),
    "a name of its own": marked({"name": "x"}, "NameNotAllowed"),
    "another namespace": marked({"namespace": "x"}, "NamespaceNotAllowed"),
    "our own label": marked({"labels": {"fairlead.dev/claim": "x"}}, "TemplateForbidden"),
    "an owner of its own": marked({"ownerReferences": []}, "SchemaMismatch"),
    "labels that an expression makes": marked(
        {"labels": "{{ claim.metadata.labels }}"}, "TemplateInvalid", "spec.resources[0].template.metadata.labels"
    ),
    "metadata that an expression makes": marked("{{ claim.metadata }}", "TemplateInvalid"),
    "a name twice": Refusal(composition_of(resource_of("a"), resource_of("a")), "DuplicateResource"),
    "a cycle": Refusal(
        composition_of(resource_of("a", dependsOn=["b"]), resource_of("b", dependsOn=["a"])), "DependencyCycle"
    ),
    "a cycle of variables": Refusal(
        composition_of(resource_of("a"), variables={"x": "{{ vars.y }}", "y": "{{ vars.x }}"}), "DependencyCycle"
    ),
    "itself": reads("resources.a.status.host", "DependencyCycle"),
    "its own labels": reads("resources.a.metadata.labels", "DependencyCycle"),
    "its own name where it says whether it is made": Refusal(
        composition_of(resource_of("a", when="{{ resources.a.metadata.name == 'a' }}")), "DependencyCycle"
    ),
    "its own name through a variable": Refusal(
        composition_of(
            resource_of("a", template_of(username="{{ vars.name }}")),
            variables={"name": "{{ resources.a.metadata.name }}"},
        ),
        "DependencyCycle",
    ),
    "the name of many": reads("resources.a.metadata.name", "DependencyCycle", forEach=MANY),
    "an unknown neighbour": Refusal(composition_of(resource_of("a", dependsOn=["bb"])), "TemplateInvalid"),
    "a computed neighbour": reads("resources[claim.spec.size].status.host", "TemplateInvalid"),
    "a neighbour's labels": reads_a("resources.a.metadata.labels", "TemplateInvalid"),
    "a neighbour that is many": reads_a("resources.a.status.host", "TemplateInvalid", forEach=MANY),
    "an element without what of it is read": reads_a("resources.a['x']", "TemplateInvalid", forEach=MANY),
    "an element's labels": reads_a("resources.a[claim.spec.size].metadata.labels", "TemplateInvalid", forEach=MANY),
    "elements as a list": reads_a("(resources.a | first).status.host", "TemplateInvalid", forEach=MANY),
    "a status that an element's kind does not have": reads_a(
        "resources.a[claim.spec.size].status.hots", "RenderFailed", path="spec.resources[1]", forEach=MANY
    ),
    "an element of itself": reads("resources.a['x'].status.host", "DependencyCycle", forEach=MANY),
    "resources that read each other's elements": Refusal(
        composition_of(
            resource_of("a", template_of(username="{{ resources.b['x'].status.host }}"), forEach="{{ ['x'] }}"),
            resource_of("b", template_of(username="{{ resources.a['x'].status.host }}"), forEach="{{ ['x'] }}"),
        ),
        "DependencyCycle",
    ),
    "a resource that is no element, by a key": reads_a("resources.a['x'].status.host", "TemplateInvalid"),
    "a resource that is moved by key and is none of many": Refusal(
        composition_of(resource_of("a", movedFrom=["a{{ each.key }}"])),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a resource that is moved from whatever there is": Refusal(
        composition_of(resource_of("a", forEach="{{ ['x'] }}", movedFrom=["{{ each.key }}"])),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a resource that is moved from a computed name": Refusal(
        composition_of(resource_of("a", forEach="{{ ['x'] }}", movedFrom=["{{ 'a' ~ each.key }}"])),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a resource that is moved by key from one that is there": Refusal(
        composition_of(resource_of("many", forEach="{{ ['x'] }}", movedFrom=["a{{ each.key }}"]), resource_of("ax")),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a computed neighbour in the connection": connected(
        {"from": "a", "host": "{{ resources[claim.spec.size].status.host }}"}, "TemplateInvalid", "spec.connection.host"
    ),
    "a computed neighbour in the status": Refusal(
        composition_of(resource_of("a"), status={"endpoint": "{{ (resources | first).status.host }}"}),
        "TemplateInvalid",
        "spec.status.endpoint",
    ),
    "a computed variable": Refusal(
        composition_of(resource_of("a", template_of(username="{{ vars[claim.spec.size] }}")), variables={"small": "x"}),
        "TemplateInvalid",
    ),
    "each where nothing is repeated": reads("each.key", "TemplateInvalid"),
    "each in what decides on the repetition": Refusal(
        composition_of(resource_of("a", forEach=MANY, when="{{ each.key == 'x' }}")),
        "TemplateInvalid",
        "spec.resources[0].when",
    ),
    "a spec that the kind does not have": reads_a(
        "resources.a.spec.forProvider.databaseNam", "RenderFailed", path="spec.resources[1]"
    ),
    "data declared as none": Refusal(composition_of(resource_of("a", stateful=False)), "TemplateInvalid"),
    "a connection from a resource and a Secret": connected(
        {"from": "a", "secretRef": {}}, "TemplateInvalid", "spec.connection"
    ),
    "a Secret of no resource": connected(
        {"secretRef": {**NAMED, "resource": "b"}}, "TemplateInvalid", "spec.connection.secretRef.resource"
    ),
    "a Secret that gives too little": connected({"secretRef": NAMED}, "TemplateInvalid", "spec.connection.secretRef"),
    "keys of a Secret as expressions": connected(
        {"secretRef": {**NAMED, "keys": {"host": "{{ claim.spec.size }}"}}},
        "TemplateInvalid",
        "spec.connection.secretRef.keys",
    ),
    "an authority of another kind": connected(
        {"from": "a", "caRef": {"kind": "Pod", "name": "a", "key": "b"}},
        "TemplateInvalid",
        "spec.connection.caRef.kind",
    ),
    "a connection from nowhere": connected({"from": "aa"}, "TemplateInvalid"),
    "a password in a template": connected({"from": "a", "password": "x"}, "TemplateForbidden"),
    "another host beside a resource": connected(
        {"from": "a", "host": "evil.example.com"}, "TemplateForbidden", "spec.connection.host"
    ),
    "no TLS beside a resource": connected(
        {"from": "a", "sslmode": "{{ 'disable' }}"}, "TemplateForbidden", "spec.connection.sslmode"
    ),
    "a port beside a resource": connected({"from": "a", "port": 1}, "TemplateForbidden", "spec.connection.port"),
    "certificates beside a resource": connected(
        {"from": "a", "certificates": "x"}, "TemplateForbidden", "spec.connection.certificates"
    ),
    "an unknown field of the claim's status": Refusal(
        composition_of(resource_of("a"), status={"endpont": "x"}), "SchemaMismatch", "spec.status.endpont"
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


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("claim.spec.backup.startTme", "'startTme' is undefined, did you mean 'startTime'?"),
        ("claim.spec.bakcup.startTime", "'bakcup' is undefined, did you mean 'backup'?"),
        ("claim.spec['bak' ~ 'cup'].startTime", "'bakcup' is undefined, did you mean 'backup'?"),
        ("claim.spec['backup']['startTme'].x", "'startTme' is undefined, did you mean 'startTime'?"),
    ],
)
def test_a_path_that_the_claims_schema_does_not_have_is_refused_with_the_nearest_name(path: str, says: str) -> None:
    (problem,) = check(
        CheckRequest(composition_of(resource_of("a", template_of(username=f"{{{{ {path} | d }}}}"))), CATALOG)
    )

    assert problem.message == says


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
