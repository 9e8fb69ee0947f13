"""How resources wait, repeat and disappear; what a Composition is refused for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from composer.check import CheckRequest, check
from composer.kinds import Catalog, KindFacts
from composer.problems import CompositionError
from composer.render import Observed, Rendered, Request, render
from runtime.objects import Object, Resource
from tests.composer.factories import CLAIMS, claim

IDENTITY = "claim-uid@shop/orders"
READY = [{"type": "Ready", "status": "True"}]
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


def _render(composition: dict[str, Any], *observed: Observed, **spec: Any) -> Rendered:
    return render(Request("c", composition, claim(**spec), IDENTITY, observed=observed))


def _observed(name: str, status: Object | None = None, key: str = "") -> Observed:
    obj = {
        **DATABASE,
        "metadata": {"name": name, "generation": 1},
        "status": {"observedGeneration": 1, **(status or {})},
    }
    return Observed(name, key, obj)


def _made(rendered: Rendered) -> list[str]:
    return [child.resource for child in rendered.children]


PAIR = _composition(
    _resource("user", _with(username="{{ resources.net.status.id }}")),
    _resource("net"),
)


def test_what_reads_a_status_waits_for_it_and_says_so() -> None:
    rendered = _render(PAIR)

    assert _made(rendered) == ["net"]
    assert [str(each) for each in rendered.waiting] == ["resource 'user' waits for resources.net.status.id"]


def test_it_is_made_when_the_status_is_there() -> None:
    rendered = _render(PAIR, _observed("net", {"id": "n1"}))

    assert _made(rendered) == ["net", "user"]
    assert rendered.children[1].object["spec"]["forProvider"]["username"] == "n1"
    assert rendered.children[1].depends_on == ("net",)


def test_a_variable_passes_the_waiting_on() -> None:
    composition = _composition(
        _resource("user", _with(username="{{ vars.id }}")),
        _resource("net"),
        variables={"id": "{{ resources.net.status.id }}"},
    )

    assert _made(_render(composition)) == ["net"]
    assert _render(composition, _observed("net", {"id": "x"})).children[1].depends_on == ("net",)


def test_a_variable_that_nobody_reads_holds_nobody_up() -> None:
    composition = _composition(_resource("a"), _resource("net"), variables={"id": "{{ resources.net.status.id }}"})

    assert _made(_render(composition)) == ["a", "net"]


@pytest.mark.parametrize(
    ("conditions", "made"),
    [(None, ["a"]), ([{"type": "Ready", "status": "False"}], ["a"]), (READY, ["a", "b"])],
    ids=["absent", "not ready", "ready"],
)
def test_depends_on_waits_for_ready(conditions: Any, made: list[str]) -> None:
    composition = _composition(_resource("b", dependsOn=["a"]), _resource("a"))
    observed = () if conditions is None else (_observed("a", {"conditions": conditions}),)

    assert _made(_render(composition, *observed)) == made


def test_ready_when_decides_where_it_is_given() -> None:
    composition = _composition(_resource("a", readyWhen="{{ resources.a.status.phase == 'Up' }}"))

    assert not _render(composition, _observed("a", {"conditions": READY})).children[0].ready
    assert not _render(composition, _observed("a", {"phase": "Down"})).children[0].ready
    assert _render(composition, _observed("a", {"phase": "Up"})).children[0].ready


def test_when_leaves_a_resource_out() -> None:
    composition = _composition(
        _resource("a", _with(username="{{ resources.b.status.x | or_else('none') }}")),
        _resource("b", when="{{ claim.spec.size == 'large' }}"),
    )

    assert _made(_render(composition)) == ["a"]
    assert _made(_render(composition, size="large")) == ["b", "a"]


def test_for_each_makes_one_for_each() -> None:
    composition = _composition(_resource("a", _with(username="{{ each.key }}"), forEach="{{ claim.spec.extensions }}"))
    rendered = _render(composition, extensions=["x", "y"])

    assert [(child.key, child.object["spec"]["forProvider"]["username"]) for child in rendered.children] == [
        ("x", "x"),
        ("y", "y"),
    ]
    assert len({child.object["metadata"]["name"] for child in rendered.children}) == 2
    assert rendered.children[0].object["metadata"]["annotations"]["fairlead.dev/key"] == "x"


def test_for_each_of_a_map_gives_its_values() -> None:
    composition = _composition(
        _resource("a", _with(username="{{ each.value }}"), forEach="{{ claim.spec.parameters }}")
    )

    (child,) = _render(composition, parameters={"k": "v"}).children

    assert (child.key, child.object["spec"]["forProvider"]["username"]) == ("k", "v")


def test_foreign_kinds_with_data_carry_our_finalizer_and_no_owner() -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}
    request = Request(
        "c", _composition(_resource("a", volume)), claim(), IDENTITY, stateful_foreign=("PersistentVolumeClaim",)
    )

    meta = render(request).children[0].object["metadata"]

    assert meta["finalizers"] == ["fairlead.dev/teardown"]
    assert "ownerReferences" not in meta


def test_no_annotation_of_others_is_copied_down() -> None:
    tracked = claim(annotations={"argocd.argoproj.io/tracking-id": "x", "fairlead.dev/adopt": "none"})
    (child,) = render(Request("c", _composition(_resource("a")), tracked, IDENTITY)).children

    assert sorted(child.object["metadata"]["annotations"]) == [
        "fairlead.dev/adopt",
        "fairlead.dev/claim-name",
        "fairlead.dev/composition",
        "fairlead.dev/resource",
    ]


class Refusal(msgspec.Struct, frozen=True):
    composition: dict[str, Any]
    reason: str
    path: str = ""
    spec: dict[str, Any] = {}


RENDERS = {
    "nothing composed": Refusal(_composition(_resource("a", when="{{ false }}")), "EmptyResult"),
    "when that is no condition": Refusal(_composition(_resource("a", when="{{ 'yes' }}")), "RenderFailed"),
    "forEach over a number": Refusal(_composition(_resource("a", forEach="{{ 3 }}")), "RenderFailed"),
    "forEach with the same key twice": Refusal(
        _composition(_resource("a", forEach="{{ ['x', 'x'] }}")), "DuplicateResource"
    ),
    "forEach with an empty key": Refusal(_composition(_resource("a", forEach="{{ [''] }}")), "RenderFailed"),
    "more children than there may be": Refusal(
        _composition(_resource("a", forEach="{{ claim.spec.extensions }}")),
        "RenderLimit",
        spec={"extensions": [f"x{number}" for number in range(200)]},
    ),
}


@pytest.mark.parametrize("case", RENDERS.values(), ids=RENDERS)
def test_a_render_is_refused_whole(case: Refusal) -> None:
    with pytest.raises(CompositionError) as caught:
        _render(case.composition, **case.spec)

    assert [each.reason for each in caught.value.problems] == [case.reason]


STATUS: dict[str, Any] = {
    "type": "object",
    "default": {"observedGeneration": -1},
    "properties": {
        "conditions": {"x-kubernetes-list-type": "map"},
        **{name: {} for name in ("inventory", "composition", "identity", "binding")},
        "endpoint": {"type": "string"},
    },
}
SPEC = {"type": "object", "properties": {"size": {"type": "string"}, "extensions": {"type": "array"}}}
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
        "PostgreSQLInstance", "database.fairlead.dev", SPEC, STATUS, stateful=False, abstract=True
    ),
    "PostgresDatabase.onprem.fairlead.dev": _facts(
        "PostgresDatabase", "onprem.fairlead.dev", CHILD_SPEC, CHILD_STATUS, stateful=True
    ),
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
CHECKS = {
    "a misspelt field of the claim, under a default": Refusal(
        _composition(_resource("a", _with(username="{{ claim.spec.sise | default('x') }}"))),
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
    "data declared as none": Refusal(_composition(_resource("a", stateful=False)), "TemplateInvalid"),
    "a connection from nowhere": Refusal(_composition(_resource("a"), connection={"from": "aa"}), "TemplateInvalid"),
    "a password in a template": Refusal(
        _composition(_resource("a"), connection={"from": "a", "password": "x"}), "TemplateForbidden"
    ),
    "an unknown field of the claim's status": Refusal(
        _composition(_resource("a"), status={"endpont": "x"}), "SchemaMismatch", "spec.status.endpont"
    ),
    "a rollout that would not be kept": Refusal(
        _composition(_resource("a"), rollout={"waves": ["1"]}), "TemplateInvalid"
    ),
    "a move that would not be made": Refusal(_composition(_resource("a", movedFrom=["b"])), "TemplateInvalid"),
    "no resources": Refusal(_composition(), "EmptyResult"),
    "another shape": Refusal({"resources": 3}, "SchemaMismatch"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKS.values(), ids=CHECKS)
def test_a_composition_is_refused_at_load(case: Refusal) -> None:
    problems = check(CheckRequest(case.composition, CATALOG))

    assert [each.reason for each in problems][:1] == [case.reason]
    assert case.path in problems[0].path
    assert len(str(problems[0])) <= 400


def test_an_abstract_kind_that_lacks_something_is_named() -> None:
    bare = _facts("PostgreSQLInstance", "database.fairlead.dev", SPEC, {"type": "object"}, stateful=False)

    (problem,) = check(CheckRequest(_composition(_resource("a")), {**CATALOG, bare.resource.group_kind: bare}))

    assert problem.reason == "ApiIncomplete"
    assert "status.inventory" in problem.message


def test_a_good_composition_is_accepted() -> None:
    composition = _composition(
        _resource("a", _with(username="{{ claim.spec.size }}", connectionLimit="{{ 5 }}")),
        _resource(
            "b", _with(username="{{ resources.a.status.host }}"), readyWhen="{{ resources.b.status.host != '' }}"
        ),
        connection={"from": "a"},
        status={"endpoint": "{{ resources.a.status.host }}"},
    )

    assert check(CheckRequest(composition, CATALOG)) == ()
