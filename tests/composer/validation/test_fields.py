"""What no Composition may set of other operators' kinds, and no claim may give: on the Composition, on the claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apis import names
from apis.identity import Identity
from composer.kinds.catalog import Catalog, catalog
from composer.render.errors import Problem
from composer.render.passwords import secret_names
from composer.render.request import Request
from composer.validation.fields import refusals
from composer.validation.samples import all_ready
from composer.validation.validate import CheckRequest, check
from fairlead.rendering import shipped_kinds
from tests.composer.test_operator_compositions import composition_of
from tests.support.operators.played import ALL, crds

_ENVIRONMENTS = {operator.name: dict(operator.environment) for operator in ALL if operator.environment}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SECRET = {"secretKeyRef": {"name": "tenants-own", "key": "token"}}
_POD: list[Any] = [{"name": "any", "image": "any", "securityContext": {"privileged": True}}]


def _kinds(operator: str, fields: str = "") -> Catalog:
    """Return the kinds of claims and of an operator, whose CRDs know every field, with an annotation of `fields`."""
    definitions = list(crds(operator))
    for crd in definitions:
        crd["metadata"]["annotations"] = {names.COMPOSABLE_FIELDS: fields}
        for version in crd["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = _OPEN
    return {**shipped_kinds("database.fairlead.dev_*.yaml"), **catalog(definitions)}


def _changed(operator: str, resource: str, path: str, value: object) -> dict[str, Any]:
    spec = composition_of(operator)
    template: Any = next(item["template"] for item in spec["resources"] if item["name"] == resource)
    *steps, last = path.split("|")
    for step in steps:
        template = template.setdefault(step, {})
    template[last] = value
    return spec


def _checked(operator: str, resource: str, path: str, value: object, fields: str = "") -> tuple[Problem, ...]:
    spec = _changed(operator, resource, path, value)
    return check(CheckRequest(spec, _kinds(operator, fields), _ENVIRONMENTS))


_REFUSED = [
    ("zalando", "cluster", "spec|sidecars", [{"name": "a", "env": [{"name": "T", "valueFrom": _SECRET}]}]),
    ("zalando", "cluster", "spec|initContainers", _POD),
    ("zalando", "cluster", "spec|additionalVolumes", [{"name": "a", "volumeSource": {"hostPath": {"path": "/"}}}]),
    ("zalando", "cluster", "spec|dockerImage", "{{ 'any' }}"),
    ("zalando", "cluster", "spec|users", {"evil": ["superuser"]}),
    ("zalando", "cluster", "spec|users", {"standby": []}),
    ("zalando", "cluster", "spec|databases", {"app": "postgres"}),
    ("zalando", "cluster", "spec|postgresql|parameters", {"archive_command": "sh"}),
    ("cnpg", "cluster", "spec|imageName", "example.org/any:1"),
    ("cnpg", "cluster", "spec|enableSuperuserAccess", "{{ true }}"),
    ("cnpg", "cluster", "spec|serviceAccountTemplate", {"metadata": {"annotations": {"role": "admin"}}}),
    ("cnpg", "cluster", "spec|superuserSecret", {"name": "tenants-own"}),
    ("cnpg", "cluster", "spec|projectedVolumeTemplate", {"sources": [{"secret": {"name": "tenants-own"}}]}),
    ("cnpg", "cluster", "spec|bootstrap|initdb|secret", {"name": "tenants-own"}),
    ("cnpg", "cluster", "spec|bootstrap|initdb|postInitApplicationSQL", ["CREATE ROLE evil SUPERUSER"]),
    ("cnpg", "cluster", "spec|bootstrap|initdb|postInitSQL", ["SELECT 1"]),
    ("cnpg", "cluster", "spec|postgresql|shared_preload_libraries", ["evil"]),
    ("cnpg", "cluster", "spec|postgresql|pg_hba", ["host all all all trust"]),
    ("cnpg", "cluster", "spec|backup", "{{ {'barmanObjectStore': {'endpointURL': 'any'}} }}"),
    ("cnpg", "cluster", "metadata|annotations|cnpg.io/podPatch", "[]"),
    ("ack", "instance", "spec|masterUserPassword|namespace", "of-others"),
    ("ack", "instance", "spec|masterUserPassword|name", "tenants-own"),
    ("ack", "instance", "spec|publiclyAccessible", True),
    ("ack", "instance", "spec|dbSnapshotIdentifier", "of-others"),
    ("ack", "instance", "spec|dbInstanceIdentifier", "of-others"),
    ("kcc", "instance", "spec|resourceID", "of-others"),
    ("aso", "server", "spec|azureName", "of-others"),
    ("kcc", "instance", "spec|settings|ipConfiguration|authorizedNetworks", [{"value": "0.0.0.0/0"}]),
    ("kcc", "user", "spec|instanceRef", {"external": "of-others"}),
    ("kcc", "user", "spec|instanceRef|name", "of-others"),
    ("aso", "server", "metadata|annotations|serviceoperator.azure.com/credential-from", "tenants-own"),
    ("aso", "server", "spec|identity", {"type": "UserAssigned"}),
    ("aso", "server", "spec|administratorLoginPassword|name", "tenants-own"),
    ("aso", "database", "spec|owner", {"armId": "/of/others"}),
]


@pytest.mark.parametrize(
    ("operator", "resource", "path", "value"),
    _REFUSED,
    ids=[f"{row[0]} {row[2].replace('|', '.')}" for row in _REFUSED],
)
def test_a_field_that_reaches_further_than_a_database_is_refused_by_name_and_allowed_by_the_platform(
    operator: str, resource: str, path: str, value: object
) -> None:
    problems = _checked(operator, resource, path, value)

    (problem,) = problems
    assert problem.reason in {"TemplateForbidden", "InvalidValue"}
    allowed = problem.message.rpartition(f"{names.COMPOSABLE_FIELDS}=")[2].rstrip("`'")
    assert path.replace("|", ".") in problem.path
    assert problem.resource == resource
    assert _checked(operator, resource, path, value, allowed) == ()


def _refused(operator: str, **spec: object) -> list[str]:
    """Return what a claim may not give to the shipped Composition of an operator."""
    identity = Identity("00000000-0000-0000-0000-000000000000", "shop", "orders")
    composition = composition_of(operator)
    request = Request(
        f"postgres-{operator}",
        composition,
        {
            "apiVersion": "database.fairlead.dev/v1alpha1",
            "kind": "PostgreSQLInstance",
            "metadata": {"name": "orders", "namespace": "shop"},
            "spec": {"version": "16", "size": "small", **spec},
        },
        str(identity),
        environments={operator: _ENVIRONMENTS[operator]} if operator in _ENVIRONMENTS else {},
    )
    request = msgspec.structs.replace(request, passwords=secret_names(composition, identity, request.claim))
    problems = tuple(refusals(request, all_ready(request), _kinds(operator)))
    assert {problem.reason for problem in problems} <= {"InvalidValue"}
    return [problem.path.rpartition("].template.spec.")[2] for problem in problems]


@pytest.mark.parametrize("name", ["archive_command", "ssl_passphrase_command", "Shared_Preload_Libraries", "hba_file"])
@pytest.mark.parametrize("operator", ["cnpg", "zalando"])
def test_no_parameter_of_a_claim_runs_a_command_loads_a_library_or_names_a_file(operator: str, name: str) -> None:
    assert _refused(operator, parameters={name: "any", "work_mem": "64MB"}) == [f"postgresql.parameters.{name}"]


@pytest.mark.parametrize(
    ("operator", "spec", "places"),
    [
        ("zalando", {"username": "standby"}, ["databases.orders", "users.standby"]),
        ("zalando", {"username": "pooler"}, ["databases.orders", "users.pooler"]),
        ("cnpg", {"username": "streaming_replica"}, ["bootstrap.initdb.owner"]),
        ("ack", {"username": "rdsadmin"}, ["masterUsername"]),
        ("kcc", {"username": "cloudsqlsuperuser"}, ["resourceID"]),
        ("aso", {"username": "azure_pg_admin"}, ["administratorLogin"]),
        ("cnpg", {"extensions": ["pgcrypto", "plpython3u"]}, ["bootstrap.initdb.postInitApplicationSQL[1]"]),
        ("cnpg", {"extensions": ["file_fdw", "vector"]}, ["bootstrap.initdb.postInitApplicationSQL[0]"]),
    ],
)
def test_no_claim_has_a_login_of_an_operator_or_an_extension_that_reaches_files_or_programs(
    operator: str, spec: dict[str, Any], places: list[str]
) -> None:
    assert _refused(operator, **spec) == places
    assert _refused(operator, username="orders_app") == []
