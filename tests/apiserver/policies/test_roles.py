"""What the processes' accounts may do, asked of the real authorizer: no more than their work, from the first day."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, connect
from tests.support.kinds import NAMESPACE
from tests.support.prepared import prepare

COMPOSER = "system:serviceaccount:fairlead-system:fairlead-composer"
ONPREM = "system:serviceaccount:fairlead-onprem:fairlead-provider-onprem"


@dataclass(frozen=True)
class Case:
    id: str
    who: str
    verbs: str
    resource: str
    namespace: str = "shop"
    name: str = "some-name"


MAY = (
    Case(
        "the composer reads and applies claims",
        COMPOSER,
        "get list watch patch",
        "database.fairlead.dev/postgresqlinstances",
    ),
    Case("the composer writes claims' statuses", COMPOSER, "patch", "database.fairlead.dev/postgresqlinstances/status"),
    Case(
        "the composer owns children",
        COMPOSER,
        "get list watch create patch delete",
        "onprem.fairlead.dev/postgresdatabases",
    ),
    Case("the composer uses a prepared namespace's Secrets by name", COMPOSER, "get create update delete", "/secrets"),
    Case("the composer reads a prepared namespace's ConfigMaps by name", COMPOSER, "get", "/configmaps"),
    Case(
        "the composer writes revisions",
        COMPOSER,
        "get list watch create patch delete",
        "fairlead.dev/compositionrevisions",
        "",
    ),
    Case("the composer makes its Lease", COMPOSER, "create", "coordination.k8s.io/leases", "fairlead-system"),
    Case(
        "the composer holds its Lease",
        COMPOSER,
        "get watch update",
        "coordination.k8s.io/leases",
        "fairlead-system",
        "fairlead-composer",
    ),
    Case(
        "the provider holds its Lease",
        ONPREM,
        "get watch update",
        "coordination.k8s.io/leases",
        "fairlead-onprem",
        "fairlead-provider-onprem",
    ),
    Case("the composer watches its environments", COMPOSER, "list watch", "/configmaps", "fairlead-system"),
    Case(
        "the provider writes its resources' external references",
        ONPREM,
        "get list watch patch",
        "onprem.fairlead.dev/postgresdatabases",
    ),
    Case("the provider writes statuses", ONPREM, "patch", "onprem.fairlead.dev/postgresdatabases/status"),
    Case(
        "the provider reads ProviderConfigs and keeps their finalizer",
        ONPREM,
        "get list watch patch",
        "onprem.fairlead.dev/providerconfigs",
        "",
    ),
    Case("the provider uses a prepared namespace's Secrets by name", ONPREM, "get create update delete", "/secrets"),
    Case(
        "the provider watches the Secrets of its own namespace",
        ONPREM,
        "get list watch create",
        "/secrets",
        "fairlead-onprem",
    ),
)

MAY_NOT = (
    Case(
        "the composer holds no other Lease of its namespace",
        COMPOSER,
        "get list watch update patch delete",
        "coordination.k8s.io/leases",
        "fairlead-system",
    ),
    Case(
        "the provider changes no Secret of its namespace", ONPREM, "update patch delete", "/secrets", "fairlead-onprem"
    ),
    Case(
        "the composer reads no status by itself",
        COMPOSER,
        "get update",
        "database.fairlead.dev/postgresqlinstances/status",
    ),
    Case(
        "the provider reads no status by itself", ONPREM, "get update", "onprem.fairlead.dev/postgresdatabases/status"
    ),
    Case(
        "the composer makes and deletes no claims",
        COMPOSER,
        "create delete deletecollection update",
        "database.fairlead.dev/postgresqlinstances",
    ),
    Case(
        "the composer writes no child's status",
        COMPOSER,
        "patch update",
        "onprem.fairlead.dev/postgresdatabases/status",
    ),
    Case("the composer uses no other namespace's Secrets", COMPOSER, "get create update delete", "/secrets", "default"),
    Case("the composer reads no other namespace's ConfigMaps", COMPOSER, "get", "/configmaps", "default"),
    Case("the provider uses no other namespace's Secrets", ONPREM, "get create update delete", "/secrets", "default"),
    Case("the composer cannot list Secrets", COMPOSER, "list watch deletecollection patch", "/secrets"),
    Case("the composer cannot list its own namespace's Secrets", COMPOSER, "list watch", "/secrets", "fairlead-system"),
    Case("the composer knows no ProviderConfig", COMPOSER, "get list patch", "onprem.fairlead.dev/providerconfigs", ""),
    Case("the composer makes and deletes no Composition", COMPOSER, "create delete", "fairlead.dev/compositions", ""),
    Case(
        "the composer holds no other Lease", COMPOSER, "get create update", "coordination.k8s.io/leases", "kube-system"
    ),
    Case("the composer lists no other ConfigMap, writes none", COMPOSER, "list watch create update", "/configmaps"),
    Case("the provider reads no tenant's ConfigMap", ONPREM, "get list watch", "/configmaps"),
    Case("the composer changes no event", COMPOSER, "get list patch update delete", "events.k8s.io/events"),
    Case("the provider lists no CRD", ONPREM, "list watch patch", "apiextensions.k8s.io/customresourcedefinitions", ""),
    Case("the composer grants nothing", COMPOSER, "escalate bind create", "rbac.authorization.k8s.io/clusterroles", ""),
    Case("the composer becomes nobody else", COMPOSER, "impersonate", "/users", ""),
    Case("the composer gets no tokens", COMPOSER, "create", "/serviceaccounts/token", "kube-system"),
    Case("the composer starts no pods", COMPOSER, "create", "/pods"),
    Case(
        "the composer gives no consent in the platform's name", COMPOSER, "write", "fairlead.dev/protectedmetadata", ""
    ),
    Case(
        "the provider makes and deletes none",
        ONPREM,
        "create delete deletecollection",
        "onprem.fairlead.dev/postgresdatabases",
    ),
    Case("the provider makes no ProviderConfig", ONPREM, "create delete", "onprem.fairlead.dev/providerconfigs", ""),
    Case("the provider sees no claim", ONPREM, "get list watch patch", "database.fairlead.dev/postgresqlinstances"),
    Case("the provider lists no tenant's Secrets", ONPREM, "list watch", "/secrets"),
    Case("the provider grants nothing", ONPREM, "escalate bind create", "rbac.authorization.k8s.io/clusterroles", ""),
    Case("the provider becomes nobody else", ONPREM, "impersonate", "/serviceaccounts", "fairlead-system"),
    Case("the provider gives no consent in the platform's name", ONPREM, "write", "fairlead.dev/protectedmetadata", ""),
)


@pytest.fixture(scope="module")
def shop(base: Plane) -> str:
    """Return a namespace that is prepared for claims of one cloud."""

    async def make() -> None:
        async with connect(base.kubeconfig) as api:
            await api.apply(NAMESPACE.path("", "shop"), NAMESPACE.new("", "shop"))
            await prepare(api, "shop", "onprem")

    asyncio.run(make())
    return "shop"


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("case", MAY, ids=lambda case: case.id)
async def test_an_account_may_do_its_work(api: Api, case: Case) -> None:
    assert await answers(api, case) == dict.fromkeys(case.verbs.split(), True)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("case", MAY_NOT, ids=lambda case: case.id)
async def test_an_account_may_do_no_more(api: Api, case: Case) -> None:
    assert await answers(api, case) == dict.fromkeys(case.verbs.split(), False)


async def answers(api: Api, case: Case) -> dict[str, bool]:
    group, _, resource = case.resource.partition("/")
    plural, _, subresource = resource.partition("/")
    answered = {}
    for verb in case.verbs.split():
        attributes = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": case.namespace,
            # A watch of one object by a field selector names it, too.
            "name": "" if verb in {"list", "create", "deletecollection"} else case.name,
        }
        answered[verb] = await is_allowed(api, case.who, attributes)
    return answered


async def is_allowed(api: Api, who: str, attributes: dict[str, str]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": who,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    answer = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(("name", "allowed"), [("fairlead-installation", True), ("defaults", False)])
async def test_a_provider_reads_the_installation_and_no_other_config_map(api: Api, name: str, *, allowed: bool) -> None:
    attributes = {"verb": "get", "resource": "configmaps", "namespace": "fairlead-system", "name": name}

    assert await is_allowed(api, ONPREM, attributes) == allowed
