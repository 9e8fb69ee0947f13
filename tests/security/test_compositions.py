"""What a Composition's author cannot compose: rights, processes, secrets, external references, other namespaces."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.support.api import ApiError, JsonObject
from tests.support.kinds import COMPOSITION, DATABASE, SECRET, composition, condition
from tests.support.system import System
from tests.support.tenants import Person

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

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
)
_METADATA: dict[str, JsonObject] = {
    "namespace": {"namespace": "alice"},
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


def _template(api_version: str, kind: str, **more: object) -> JsonObject:
    return {"name": "resource", "template": {"apiVersion": api_version, "kind": kind, **more}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(running: System, platform: Person) -> dict[str, str]:
    """Return the reason that each Composition got; `refused` where the API server took it not."""
    spec = {"forProvider": {"databaseName": "app", "username": "app"}}
    bodies = {f"kind-{n}": composition(f"kind-{n}", _template(*kind.split(" ", 1))) for n, kind in enumerate(_KINDS)}
    for name, metadata in _METADATA.items():
        resource = _template(DATABASE.api_version, DATABASE.kind, metadata=metadata, spec=spec)
        bodies[f"metadata-{name}"] = composition(f"metadata-{name}", resource)
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
    allowed = {"refused", "NameNotAllowed", "NamespaceNotAllowed", "SchemaMismatch", "TemplateForbidden"}
    assert judged[f"metadata-{name}"] in allowed


async def test_the_platforms_role_reads_no_secret(platform: Person) -> None:
    for path in (
        SECRET.path(),
        SECRET.path("fairlead-onprem", "onprem-admin"),
        SECRET.path("fairlead-system"),
        SECRET.path("platform-team"),
    ):
        assert await platform.is_refused("GET", path), path
