"""The installs are accepted by a real API server, and their pods by the restricted Pod Security Standard."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from devcloud.controlplane.plane import Plane
from tests.support.api import Api, ApiError, JsonObject

KUSTOMIZE = Path(__file__).resolve().parents[3] / "deploy" / "kustomize"


async def built(plane: Plane, folder: str) -> list[JsonObject]:
    answer = await plane.kubectl.run(
        "apply", "--server-side", "--dry-run=server", "--output=json", "--kustomize", str(KUSTOMIZE / folder)
    )
    items: list[JsonObject] = msgspec.json.decode(answer)["items"]
    return items


async def test_applying_the_base_again_changes_nothing(base: Plane) -> None:
    command = ("apply", "--server-side", "--output=json", "--kustomize", str(KUSTOMIZE / "base"))
    versions = []
    for _ in range(2):
        items = msgspec.json.decode(await base.kubectl.run(*command))["items"]
        versions.append({(obj["kind"], obj["metadata"]["name"]): obj["metadata"]["resourceVersion"] for obj in items})

    assert versions[0] == versions[1]


async def test_the_base_holds_no_crd_and_no_secret(base: Plane) -> None:
    kinds = {obj["kind"] for obj in await built(base, "base")}

    assert not kinds & {"CustomResourceDefinition", "Secret", "ConfigMap"}


async def test_every_deployment_runs_under_an_account_of_the_base(base: Plane) -> None:
    items = await built(base, "cluster")
    accounts = {
        (account["metadata"]["namespace"], account["metadata"]["name"])
        for account in items
        if account["kind"] == "ServiceAccount"
    }
    deployments = [obj for obj in items if obj["kind"] == "Deployment"]

    running = {
        (deployment["metadata"]["namespace"], deployment["spec"]["template"]["spec"]["serviceAccountName"])
        for deployment in deployments
    }
    assert running == accounts
    # Names made by rule: the process, its account and its image are called the same.
    assert all(
        deployment["metadata"]["name"] == deployment["spec"]["template"]["spec"]["serviceAccountName"]
        for deployment in deployments
    )


@pytest.mark.parametrize(
    ("namespace", "name"), [("fairlead-system", "fairlead-composer"), ("fairlead-onprem", "fairlead-provider-onprem")]
)
async def test_a_pod_of_ours_meets_the_restricted_standard(base: Plane, api: Api, namespace: str, name: str) -> None:
    items = await built(base, "cluster")
    (deployment,) = [obj for obj in items if (obj["kind"], obj["metadata"]["name"]) == ("Deployment", name)]
    template = deployment["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": namespace, "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    }

    # The namespace enforces the standard: a pod that breaks it is refused, dry run or not.
    accepted = await api.create(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
    loose = pod | {"spec": template["spec"] | {"hostNetwork": True}}
    with pytest.raises(ApiError, match="violates PodSecurity"):
        await api.create(f"/api/v1/namespaces/{namespace}/pods", loose, dryRun="All")

    assert accepted["spec"]["serviceAccountName"] == name


@pytest.mark.parametrize("scope", ["claim-namespace", "all-namespaces"])
@pytest.mark.parametrize("cloud", ["", "clouds/aws/"])
async def test_a_prepared_namespace_lets_in_the_composer_and_one_clouds_provider(
    base: Plane, scope: str, cloud: str
) -> None:
    folder = KUSTOMIZE / f"{cloud}{scope}"
    answer = await base.kubectl.run(
        *("apply", "--namespace=default", "--server-side", "--dry-run=server", "--output=json"),
        *("--kustomize", str(folder)),
    )
    items = msgspec.json.decode(answer)["items"]

    accounts = {binding["subjects"][0]["name"] for binding in items}
    assert accounts == {"fairlead-composer", f"fairlead-provider-{'aws' if cloud else 'onprem'}"}
    wanted = "RoleBinding" if scope == "claim-namespace" else "ClusterRoleBinding"
    assert {binding["kind"] for binding in items} == {wanted}
    namespaces = {binding["metadata"].get("namespace") for binding in items}
    assert namespaces == ({"default"} if wanted == "RoleBinding" else {None})
