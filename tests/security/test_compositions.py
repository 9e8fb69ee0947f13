"""What a Composition's author cannot compose: rights, processes, secrets, external references, other namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.api import ApiError, JsonObject
from tests.support.grants import as_installed
from tests.support.kinds import CLAIM, COMPOSITION, DATABASE, SECRET, composition, condition, is_ready
from tests.support.shared import dismiss, employ
from tests.support.system import System
from tests.support.tenants import Person

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_KINDS = (
    "v1 Pod",
    "v1 Secret",
    "v1 secret",
    "v1 Secret ",
    "/v1 Secret",
    "v1/ Secret",
    "v1 List",
    "v1 Binding",
    "v1 ServiceAccount",
    "v1 Namespace",
    "v1 PersistentVolume",
    "v1 Endpoints",
    "v1 Event",
    "v1 ResourceQuota",
    "apps/v1 Deployment",
    "apps/v1 DaemonSet",
    "batch/v1 Job",
    "batch/v1 CronJob",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 RoleBinding",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apiregistration.k8s.io/v1 APIService",
    "certificates.k8s.io/v1 CertificateSigningRequest",
    "authentication.k8s.io/v1 TokenRequest",
    "coordination.k8s.io/v1 Lease",
    "networking.k8s.io/v1 Ingress",
    "fairlead.dev/v1alpha1 Composition",
    "database.fairlead.dev/v1alpha1 PostgreSQLInstance",
    "onprem.fairlead.dev/v1alpha1 ProviderConfig",
    "Onprem.fairlead.dev/v1alpha1 PostgresDatabase",
    "onprem.fairlead.dev/v1 PostgresDatabase",
    "v1 secrets",
    "v1 LimitRange",
    "v1 Node",
    "v1 PodTemplate",
    "v1 ReplicationController",
    "events.k8s.io/v1 Event",
    "rbac.authorization.k8s.io/v1 Role",
    "storage.k8s.io/v1 StorageClass",
    "scheduling.k8s.io/v1 PriorityClass",
    "authorization.k8s.io/v1 SubjectAccessReview",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "fairlead.dev/v1alpha1 CompositionRevision",
    "aws.fairlead.dev/v1alpha1 ProviderConfig",
    "x.fairlead.dev/v1 Anything",
    # Harmless, and refused as long as nobody gave the composer a right to them.
    "v1 ConfigMap",
    "v1 PersistentVolumeClaim",
    "v1 Service",
    "apps/v1 StatefulSet",
    "networking.k8s.io/v1 NetworkPolicy",
    "policy/v1 PodDisruptionBudget",
)
_METADATA: dict[str, Any] = {
    "namespace": {"namespace": "alice"},
    "namespace-of-the-claim": {"namespace": "{{ claim.metadata.namespace }}"},
    "expression": "{{ claim.metadata }}",
    "list": [],
    "null": None,
    "labels-expression": {"labels": "{{ claim.metadata.labels }}"},
    "annotations-expression": {"annotations": "{{ claim.metadata.annotations }}"},
    "key-expression": {"labels": {"{{ claim.metadata.name }}": "x"}},
    "name": {"name": "mine"},
    "generate-name": {"generateName": "mine-"},
    "uid": {"uid": "00000000-0000-4000-8000-000000000000"},
    "finalizers": {"finalizers": ["mine.example.org/held"]},
    "owner": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "00000000-0000-4000-8000-000000000000"}
        ]
    },
    "claim-label": {"labels": {"fairlead.dev/claim": "of-another"}},
    "adopt": {"annotations": {"fairlead.dev/adopt": "16384"}},
    "consent": {"annotations": {"fairlead.dev/consent": "recreate=16384"}},
    "teardown": {"annotations": {"fairlead.dev/teardown": "a/Delete"}},
    "external-name": {"annotations": {"fairlead.dev/external-name": "postgres"}},
    "subdomain": {"annotations": {"other.fairlead.dev/adopt": "none"}},
}
_REFUSALS = frozenset(
    {"refused", "NameNotAllowed", "NamespaceNotAllowed", "SchemaMismatch", "TemplateForbidden", "TemplateInvalid"}
)
_SPEC = {"forProvider": {"databaseName": "app", "username": "app"}}
_DATABASE = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": _SPEC}
_TEMPLATES: dict[str, Any] = {
    "expression": "{{ claim.spec }}",
    "apiVersion-expression": {**_DATABASE, "apiVersion": "{{ 'onprem.fairlead.dev/v1alpha1' }}"},
    "kind-expression": {**_DATABASE, "kind": "{{ 'Sec' ~ 'ret' }}"},
    "kind-null": {**_DATABASE, "kind": None},
}
# ConfigMaps that are no environments.
_ENVIRONMENTS = {"installation": "fairlead-installation", "root-certificates": "kube-root-ca.crt"}


def _resource(template: object) -> JsonObject:
    return {"name": "resource", "template": template}


def _template(api_version: str, kind: str, **more: object) -> JsonObject:
    return _resource({"apiVersion": api_version, "kind": kind, **more})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judged(running: System, platform: Person) -> AsyncIterator[dict[str, str]]:
    """Yield the reason that each Composition got; `refused` where the API server took it not."""
    async with as_installed(running):
        # What a composer has seen of its rights it believes for minutes.
        await dismiss(running)
        await employ(running)
        yield await _judge(running, platform)
    await dismiss(running)


async def _judge(running: System, platform: Person) -> dict[str, str]:
    bodies = {f"kind-{n}": composition(f"kind-{n}", _template(*kind.split(" ", 1))) for n, kind in enumerate(_KINDS)}
    for name, metadata in _METADATA.items():
        bodies[f"metadata-{name}"] = composition(f"metadata-{name}", _resource({**_DATABASE, "metadata": metadata}))
    for name, template in _TEMPLATES.items():
        bodies[f"template-{name}"] = composition(f"template-{name.lower()}", _resource(template))
    for name, config_map in _ENVIRONMENTS.items():
        bodies[f"environment-{name}"] = composition(
            f"environment-{name}", _resource(_DATABASE), environments=[config_map]
        )
    reasons = await asyncio.gather(*(_judged(running, platform, body) for body in bodies.values()))
    return dict(zip(bodies, reasons, strict=True))


async def _judged(system: System, platform: Person, body: JsonObject) -> str:
    name = body["metadata"]["name"]
    try:
        await platform.create(COMPOSITION, body)
    except ApiError as error:
        return "refused" if error.status == 422 else str(error)
    obj = await system.until(COMPOSITION, "", name, lambda obj: bool(condition(obj, "Ready")))
    ready = condition(obj, "Ready")
    return "accepted" if ready["status"] == "True" else str(ready["reason"])


@pytest.mark.parametrize("number", range(len(_KINDS)), ids=_KINDS)
async def test_a_kind_that_gives_power_is_not_composed(judged: dict[str, str], number: int) -> None:
    assert judged[f"kind-{number}"] in {"refused", "KindNotAllowed", "KindNotInstalled"}


@pytest.mark.parametrize("name", _METADATA)
async def test_metadata_of_ours_is_not_for_templates(judged: dict[str, str], name: str) -> None:
    assert judged[f"metadata-{name}"] in _REFUSALS


@pytest.mark.parametrize("name", _TEMPLATES)
async def test_what_an_object_is_is_written_out(judged: dict[str, str], name: str) -> None:
    assert judged[f"template-{name}"] in {*_REFUSALS, "KindNotAllowed"}


@pytest.mark.parametrize("name", _ENVIRONMENTS)
async def test_a_config_map_of_ours_is_no_environment(judged: dict[str, str], name: str) -> None:
    assert judged[f"environment-{name}"] in _REFUSALS


async def test_a_status_that_a_composition_writes_out_is_dropped_where_the_field_is_ours(
    running: System, platform: Person, alice: Person
) -> None:
    fields = {"identity": "forged", "inventory": [], "conditions": [], "binding": {"name": "forged"}}
    template = {**_DATABASE, "status": {"externalName": "forged"}}
    body = composition("forged", _resource(template), status=fields, connection={"from": "resource"})
    await platform.create(COMPOSITION, body)

    await alice.claim("forged", compositionRef={"name": "forged"})
    claim = await running.until(CLAIM, "alice", "forged", is_ready)
    (child,) = await running.children("alice", "forged")

    assert claim["status"]["identity"] == f"{claim['metadata']['uid']}@alice/forged"
    assert [entry["kind"] for entry in claim["status"]["inventory"]] == ["PostgresDatabase"]
    assert claim["status"]["binding"]["name"] == "forged-connection"
    assert child["status"]["externalName"].startswith("app_")


async def test_the_platforms_role_reads_no_secret(platform: Person) -> None:
    for path in (
        SECRET.path(),
        SECRET.path("fairlead-onprem", "onprem-admin"),
        SECRET.path("fairlead-system"),
        SECRET.path("platform-team"),
    ):
        assert await platform.is_refused("GET", path), path
