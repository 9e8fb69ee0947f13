"""What a Composition is refused for before any claim uses it, and where it says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.kinds.catalog import Catalog, KindFacts
from composer.validation.validate import CheckRequest, check
from runtime.objects import Resource
from tests.composer.factories import CLAIMS

DATABASE: dict[str, Any] = {
    "apiVersion": "onprem.fairlead.dev/v1alpha1",
    "kind": "PostgresDatabase",
    "spec": {"forProvider": {"databaseName": "app"}},
}


def _with(**fields: Any) -> dict[str, Any]:
    return {**DATABASE, "spec": {"forProvider": {**DATABASE["spec"]["forProvider"], **fields}}}


def _resource(name: str, template: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "template": template or DATABASE, **fields}


def _composition(*resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    ref = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind}
    return {"compositeTypeRef": ref, "resources": list(resources), **spec}


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
CHECKS = {
    "a misspelt field of the claim, under a default": Refusal(
        _composition(_resource("a", _with(username="{{ claim.spec.sise | default('x') }}"))),
        "RenderFailed",
        "spec.resources[0].template.spec.forProvider.username",
    ),
    "a field that a map of the claim does not have, under a default": Refusal(
        _composition(_resource("a", _with(username="{{ claim.spec.backup.retention | default('x') }}"))),
        "RenderFailed",
        "spec.resources[0].template.spec.forProvider.username",
    ),
    "a misspelt map of the claim, under a default": Refusal(
        _composition(_resource("a", _with(username="{{ claim.spec.bakcup.startTime | default('x') }}"))),
        "RenderFailed",
        "spec.resources[0].template.spec.forProvider.username",
    ),
    "a misspelt variable": Refusal(
        _composition(_resource("a", _with(username="{{ vars.clas }}")), variables={"class": "x"}), "RenderFailed"
    ),
    "an unknown environment": Refusal(_composition(_resource("a", _with(username="{{ env.x.y }}"))), "RenderFailed"),
    "an unknown root": Refusal(_composition(_resource("a", _with(username="{{ calim.spec.size }}"))), "RenderFailed"),
    "a status that the kind does not have": Refusal(
        _composition(_resource("a"), _resource("b", _with(username="{{ resources.a.status.hots }}"))), "RenderFailed"
    ),
    "an unknown field": Refusal(
        _composition(_resource("a", _with(conectionLimit=1))),
        "SchemaMismatch",
        "spec.resources[0].template.spec.forProvider.conectionLimit",
    ),
    "a text for a number": Refusal(_composition(_resource("a", _with(connectionLimit="5"))), "SchemaMismatch"),
    "a text with an expression in it for a number": Refusal(
        _composition(_resource("a", _with(connectionLimit="5{{ 0 }}"))), "SchemaMismatch"
    ),
    "a number for a text": Refusal(_composition(_resource("a", _with(username=16.1))), "SchemaMismatch"),
    "a cluster role": Refusal(_composition(_resource("a", ROLE)), "KindNotAllowed"),
    "a claim within a claim": Refusal(
        _composition(_resource("a", {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind})), "KindNotAllowed"
    ),
    "a kind that is not installed": Refusal(
        _composition(_resource("a", {"apiVersion": "aws.fairlead.dev/v1alpha1", "kind": "RDSInstance"})),
        "KindNotInstalled",
    ),
    "another version": Refusal(
        _composition(_resource("a", {**DATABASE, "apiVersion": "onprem.fairlead.dev/v1"})), "KindNotInstalled"
    ),
    "an unknown kind of claim": Refusal(
        {**_composition(_resource("a")), "compositeTypeRef": {"apiVersion": "x.dev/v1", "kind": "X"}},
        "KindNotInstalled",
        "spec.compositeTypeRef",
    ),
    "a name of its own": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": {"name": "x"}})), "NameNotAllowed"
    ),
    "another namespace": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": {"namespace": "x"}})), "NamespaceNotAllowed"
    ),
    "our own label": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": {"labels": {"fairlead.dev/claim": "x"}}})),
        "TemplateForbidden",
    ),
    "an owner of its own": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": {"ownerReferences": []}})), "SchemaMismatch"
    ),
    "labels that an expression makes": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": {"labels": "{{ claim.metadata.labels }}"}})),
        "TemplateInvalid",
        "spec.resources[0].template.metadata.labels",
    ),
    "metadata that an expression makes": Refusal(
        _composition(_resource("a", {**DATABASE, "metadata": "{{ claim.metadata }}"})), "TemplateInvalid"
    ),
    "a name twice": Refusal(_composition(_resource("a"), _resource("a")), "DuplicateResource"),
    "a cycle": Refusal(
        _composition(_resource("a", dependsOn=["b"]), _resource("b", dependsOn=["a"])), "DependencyCycle"
    ),
    "a cycle of variables": Refusal(
        _composition(_resource("a"), variables={"x": "{{ vars.y }}", "y": "{{ vars.x }}"}), "DependencyCycle"
    ),
    "itself": Refusal(
        _composition(_resource("a", _with(username="{{ resources.a.status.host }}"))), "DependencyCycle"
    ),
    "its own labels": Refusal(
        _composition(_resource("a", _with(username="{{ resources.a.metadata.labels }}"))), "DependencyCycle"
    ),
    "its own name where it says whether it is made": Refusal(
        _composition(_resource("a", when="{{ resources.a.metadata.name == 'a' }}")), "DependencyCycle"
    ),
    "its own name through a variable": Refusal(
        _composition(
            _resource("a", _with(username="{{ vars.name }}")), variables={"name": "{{ resources.a.metadata.name }}"}
        ),
        "DependencyCycle",
    ),
    "the name of many": Refusal(
        _composition(
            _resource("a", _with(username="{{ resources.a.metadata.name }}"), forEach="{{ claim.spec.extensions }}")
        ),
        "DependencyCycle",
    ),
    "an unknown neighbour": Refusal(_composition(_resource("a", dependsOn=["bb"])), "TemplateInvalid"),
    "a computed neighbour": Refusal(
        _composition(_resource("a", _with(username="{{ resources[claim.spec.size].status.host }}"))), "TemplateInvalid"
    ),
    "a neighbour's labels": Refusal(
        _composition(_resource("a"), _resource("b", _with(username="{{ resources.a.metadata.labels }}"))),
        "TemplateInvalid",
    ),
    "a neighbour that is many": Refusal(
        _composition(
            _resource("a", forEach="{{ claim.spec.extensions }}"),
            _resource("b", _with(username="{{ resources.a.status.host }}")),
        ),
        "TemplateInvalid",
    ),
    "an element without what of it is read": Refusal(
        _composition(
            _resource("a", forEach="{{ claim.spec.extensions }}"),
            _resource("b", _with(username="{{ resources.a['x'] }}")),
        ),
        "TemplateInvalid",
    ),
    "an element's labels": Refusal(
        _composition(
            _resource("a", forEach="{{ claim.spec.extensions }}"),
            _resource("b", _with(username="{{ resources.a[claim.spec.size].metadata.labels }}")),
        ),
        "TemplateInvalid",
    ),
    "elements as a list": Refusal(
        _composition(
            _resource("a", forEach="{{ claim.spec.extensions }}"),
            _resource("b", _with(username="{{ (resources.a | first).status.host }}")),
        ),
        "TemplateInvalid",
    ),
    "a status that an element's kind does not have": Refusal(
        _composition(
            _resource("a", forEach="{{ claim.spec.extensions }}"),
            _resource("b", _with(username="{{ resources.a[claim.spec.size].status.hots }}")),
        ),
        "RenderFailed",
        "spec.resources[1]",
    ),
    "an element of itself": Refusal(
        _composition(
            _resource("a", _with(username="{{ resources.a['x'].status.host }}"), forEach="{{ claim.spec.extensions }}")
        ),
        "DependencyCycle",
    ),
    "resources that read each other's elements": Refusal(
        _composition(
            _resource("a", _with(username="{{ resources.b['x'].status.host }}"), forEach="{{ ['x'] }}"),
            _resource("b", _with(username="{{ resources.a['x'].status.host }}"), forEach="{{ ['x'] }}"),
        ),
        "DependencyCycle",
    ),
    "a resource that is no element, by a key": Refusal(
        _composition(_resource("a"), _resource("b", _with(username="{{ resources.a['x'].status.host }}"))),
        "TemplateInvalid",
    ),
    "a resource that is moved by key and is none of many": Refusal(
        _composition(_resource("a", movedFrom=["a{{ each.key }}"])), "TemplateInvalid", "spec.resources[0].movedFrom"
    ),
    "a resource that is moved from whatever there is": Refusal(
        _composition(_resource("a", forEach="{{ ['x'] }}", movedFrom=["{{ each.key }}"])),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a resource that is moved from a computed name": Refusal(
        _composition(_resource("a", forEach="{{ ['x'] }}", movedFrom=["{{ 'a' ~ each.key }}"])),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a resource that is moved by key from one that is there": Refusal(
        _composition(_resource("many", forEach="{{ ['x'] }}", movedFrom=["a{{ each.key }}"]), _resource("ax")),
        "TemplateInvalid",
        "spec.resources[0].movedFrom",
    ),
    "a computed neighbour in the connection": Refusal(
        _composition(_resource("a"), connection={"from": "a", "host": "{{ resources[claim.spec.size].status.host }}"}),
        "TemplateInvalid",
        "spec.connection.host",
    ),
    "a computed neighbour in the status": Refusal(
        _composition(_resource("a"), status={"endpoint": "{{ (resources | first).status.host }}"}),
        "TemplateInvalid",
        "spec.status.endpoint",
    ),
    "a computed variable": Refusal(
        _composition(_resource("a", _with(username="{{ vars[claim.spec.size] }}")), variables={"small": "x"}),
        "TemplateInvalid",
    ),
    "each where nothing is repeated": Refusal(
        _composition(_resource("a", _with(username="{{ each.key }}"))), "TemplateInvalid"
    ),
    "each in what decides on the repetition": Refusal(
        _composition(_resource("a", forEach="{{ claim.spec.extensions }}", when="{{ each.key == 'x' }}")),
        "TemplateInvalid",
        "spec.resources[0].when",
    ),
    "a spec that the kind does not have": Refusal(
        _composition(_resource("a"), _resource("b", _with(username="{{ resources.a.spec.forProvider.databaseNam }}"))),
        "RenderFailed",
        "spec.resources[1]",
    ),
    "data declared as none": Refusal(_composition(_resource("a", stateful=False)), "TemplateInvalid"),
    "a connection from a resource and a Secret": Refusal(
        _composition(_resource("a"), connection={"from": "a", "secretRef": {}}), "TemplateInvalid", "spec.connection"
    ),
    "a Secret of no resource": Refusal(
        _composition(_resource("a"), connection={"secretRef": {**NAMED, "resource": "b"}}),
        "TemplateInvalid",
        "spec.connection.secretRef.resource",
    ),
    "a Secret that gives too little": Refusal(
        _composition(_resource("a"), connection={"secretRef": NAMED}), "TemplateInvalid", "spec.connection.secretRef"
    ),
    "keys of a Secret as expressions": Refusal(
        _composition(_resource("a"), connection={"secretRef": {**NAMED, "keys": {"host": "{{ claim.spec.size }}"}}}),
        "TemplateInvalid",
        "spec.connection.secretRef.keys",
    ),
    "an authority of another kind": Refusal(
        _composition(_resource("a"), connection={"from": "a", "caRef": {"kind": "Pod", "name": "a", "key": "b"}}),
        "TemplateInvalid",
        "spec.connection.caRef.kind",
    ),
    "a connection from nowhere": Refusal(_composition(_resource("a"), connection={"from": "aa"}), "TemplateInvalid"),
    "a password in a template": Refusal(
        _composition(_resource("a"), connection={"from": "a", "password": "x"}), "TemplateForbidden"
    ),
    "another host beside a resource": Refusal(
        _composition(_resource("a"), connection={"from": "a", "host": "evil.example.com"}),
        "TemplateForbidden",
        "spec.connection.host",
    ),
    "no TLS beside a resource": Refusal(
        _composition(_resource("a"), connection={"from": "a", "sslmode": "{{ 'disable' }}"}),
        "TemplateForbidden",
        "spec.connection.sslmode",
    ),
    "a port beside a resource": Refusal(
        _composition(_resource("a"), connection={"from": "a", "port": 1}), "TemplateForbidden", "spec.connection.port"
    ),
    "certificates beside a resource": Refusal(
        _composition(_resource("a"), connection={"from": "a", "certificates": "x"}),
        "TemplateForbidden",
        "spec.connection.certificates",
    ),
    "an unknown field of the claim's status": Refusal(
        _composition(_resource("a"), status={"endpont": "x"}), "SchemaMismatch", "spec.status.endpont"
    ),
    "no resources": Refusal(_composition(), "EmptyResult"),
    "another shape": Refusal({"resources": 3}, "SchemaMismatch"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKS.values(), ids=CHECKS)
def test_a_composition_is_refused_at_load(case: Refusal) -> None:
    problems = check(CheckRequest(case.composition, CATALOG))

    assert [problem.reason for problem in problems][:1] == [case.reason]
    assert case.path in problems[0].path
    assert len(str(problems[0])) <= 400


def test_an_abstract_kind_that_lacks_something_is_named() -> None:
    lacking = tuple(f"status.{name}" for name in ("inventory", "identity", "b", "c", "d", "e", "f"))
    bare = _facts("PostgreSQLInstance", "database.fairlead.dev", SPEC, STATUS, stateful=False, gaps=lacking)

    (problem,) = check(CheckRequest(_composition(_resource("a")), {**CATALOG, bare.resource.group_kind: bare}))

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
    (problem,) = check(CheckRequest(_composition(_resource("a", _with(username=f"{{{{ {path} | d }}}}"))), CATALOG))

    assert problem.message == says


def test_a_good_composition_is_accepted() -> None:
    composition = _composition(
        _resource("a", _with(username="{{ claim.spec.size }}", connectionLimit="{{ 5 }}")),
        _resource(
            "b", _with(username="{{ resources.a.status.host }}"), readyWhen="{{ resources.b.status.host != '' }}"
        ),
        _resource("many", forEach="{{ claim.spec.extensions }}", movedFrom=["old{{ each.key }}"]),
        _resource("c", _with(username="{{ resources.many[claim.spec.size].status.host }}")),
        _resource("d", _with(username="{{ resources.many['x'].metadata.name }}")),
        connection={"from": "a"},
        status={"endpoint": "{{ resources.a.status.host }}"},
    )

    assert check(CheckRequest(composition, CATALOG)) == ()
