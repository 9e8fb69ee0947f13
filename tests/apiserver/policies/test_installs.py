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
