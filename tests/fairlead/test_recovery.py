"""`fairlead takeover` and `fairlead adopt` on a real API server, statuses written as the provider writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from devcloud.controlplane.plane import Plane
from fairlead.cli import run
from fairlead.recovery import is_provider, predecessor_of, restart
from runtime.objects import Key
from tests.support.api import Api, JsonObject

ONPREM = "onprem.fairlead.dev/v1alpha1"
FORMER = "11111111-2222-4333-8444-555555555555"
ADOPT = "fairlead.dev/adopt"


def _waiting(message: str, reason: str = "PredecessorFound", status: str = "True") -> JsonObject:
    condition = {
        "type": "Stalled",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-22T10:00:00Z",
        "observedGeneration": 1,
    }
    return {"status": {"conditions": [condition]}}


def _sentence(incarnation: str) -> str:
    return (
        f"orders_x (incarnation {incarnation}) was made for the same claim under another identity; to take it over:"
        f" `kubectl annotate postgresdatabase orders -n shop {ADOPT}={incarnation}`; for a new one beside it annotate"
        f" the claim {ADOPT}=none"
    )


@pytest.mark.parametrize(
    ("obj", "incarnation"),
    [
        pytest.param(_waiting(_sentence("16402")), "16402", id="an oid"),
        pytest.param(_waiting(_sentence("db-ABCD")), "db-ABCD", id="a resource id of AWS"),
        pytest.param(_waiting(_sentence("2026-11-22T10:00:00.1Z")), "2026-11-22T10:00:00.1Z", id="a time of creation"),
        pytest.param(_waiting(_sentence("16402"), "NotOwned"), "", id="another reason: nothing to take over at once"),
        pytest.param(_waiting(_sentence("16402"), status="False"), "", id="waits no longer"),
        pytest.param(_waiting("the object that an earlier claim left"), "", id="names none"),
        pytest.param({"status": {}}, "", id="waits for nothing"),
    ],
)
def test_a_predecessor_is_known_by_the_providers_sentence(obj: JsonObject, incarnation: str) -> None:
    assert predecessor_of(obj) == incarnation


@pytest.mark.parametrize(
    ("key", "is_ours"),
    [
        (Key("fairlead-aws", "fairlead-provider-aws"), True),
        (Key("fairlead-aws", "fairlead-provider-gcp"), False),
        (Key("fairlead-system", "fairlead-composer"), False),
        (Key("shop", "fairlead-provider-shop"), False),
    ],
)
def test_a_provider_is_known_by_its_name_in_its_namespace(key: Key, *, is_ours: bool) -> None:
    assert is_provider(key) is is_ours


def test_a_restart_keeps_the_annotations_of_the_pods() -> None:
    meta = {"uid": "u", "resourceVersion": "1"}
    bare: JsonObject = {"metadata": meta, "spec": {"template": {"metadata": {"labels": {}}}}}
    noted: JsonObject = {"metadata": meta, "spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}

    paths = [[operation["path"] for operation in restart(obj, "now")[2:]] for obj in (bare, noted)]

    annotations = "/spec/template/metadata/annotations"
    restarted = f"{annotations}/kubectl.kubernetes.io~1restartedAt"
    assert paths == [[annotations, restarted], [restarted]]


async def _run(plane: Plane, *arguments: str) -> int:
    return await asyncio.to_thread(run, [*arguments, "--kubeconfig", str(plane.kubeconfig)])


async def _namespaced(api: Api, name: str) -> None:
    if await api.find(f"/api/v1/namespaces/{name}") is None:
        await api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.fixture
async def installation(api: Api) -> AsyncIterator[str]:
    """Yield the path of the ConfigMap of an installation that another cluster is recorded for."""
    await _namespaced(api, "fairlead-system")
    folder = "/api/v1/namespaces/fairlead-system/configmaps"
    path = f"{folder}/fairlead-installation"
    before = await api.find(path)
    if before is not None:
        await api.delete(path)
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fairlead-installation"}}
    await api.create(folder, {**body, "data": {"id": "0123456789abcdef", "clusterUid": FORMER}})
    yield path
    await api.delete(path)
    if before is not None:
        # The platform is shared.
        await api.create(folder, {**body, "data": before["data"]})


def _deployment(name: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": name}
    container = {"name": "provider", "image": "none"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def test_a_takeover_names_the_former_cluster_records_this_one_and_restarts_the_providers(
    plane: Plane, api: Api, installation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await _namespaced(api, "fairlead-onprem")
    folder = "/apis/apps/v1/namespaces/fairlead-onprem/deployments"
    for name in ("fairlead-provider-onprem", "bystander"):
        await api.create(folder, _deployment(name))
    own = (await api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]

    unnamed = await _run(plane, "takeover")
    wrong = await _run(plane, "takeover", "--from-cluster", own)
    untouched = (await api.get(installation))["data"]["clusterUid"]
    done = await _run(plane, "takeover", "--from-cluster", FORMER)
    again = await _run(plane, "takeover", "--from-cluster", FORMER)

    templates = {
        name: (await api.get(f"{folder}/{name}"))["spec"]["template"]["metadata"]
        for name in ("fairlead-provider-onprem", "bystander")
    }
    for name in templates:
        await api.delete(f"{folder}/{name}")
    assert (unnamed, wrong, untouched) == (7, 7, FORMER)
    assert (done, again) == (0, 0)
    assert (await api.get(installation))["data"] == {"id": "0123456789abcdef", "clusterUid": own}
    assert list(templates["fairlead-provider-onprem"]["annotations"]) == ["kubectl.kubernetes.io/restartedAt"]
    assert "annotations" not in templates["bystander"]
    said = capsys.readouterr()
    assert said.err.count(f"fairlead takeover --from-cluster {FORMER}") == 2
    assert "Deployment fairlead-onprem/fairlead-provider-onprem restarts" in said.out
    assert "is recorded already" in said.out


async def test_all_that_wait_for_their_predecessor_adopt_it_at_once(
    plane: Plane, api: Api, namespace: str, installation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Api.path(ONPREM, "postgresdatabases", namespace)
    waiting = {"first": _waiting(_sentence("16402")), "second": _waiting(_sentence("16403"))}
    others = {"foreign": _waiting(_sentence("16404"), "NotOwned")}
    for name, status in (waiting | others).items():
        body = {
            "apiVersion": ONPREM,
            "kind": "PostgresDatabase",
            "metadata": {"name": name},
            "spec": {"forProvider": {"databaseName": "orders", "username": "orders"}},
        }
        await api.create(path, body)
        await api.merge(f"{path}/{name}/status", status)

    async def adopting() -> dict[str, str]:
        objects = [await api.get(f"{path}/{name}") for name in waiting | others]
        annotations = {obj["metadata"]["name"]: obj["metadata"].get("annotations", {}) for obj in objects}
        return {name: values[ADOPT] for name, values in annotations.items() if ADOPT in values}

    foreign = await _run(plane, "adopt", "--installation", "fedcba9876543210")
    tried = await _run(plane, "adopt", "--installation", "0123456789abcdef", "--dry-run")
    before = await adopting()
    done = [await _run(plane, "adopt", "--installation", "0123456789abcdef") for _ in range(2)]

    assert (foreign, tried, done, before) == (7, 0, [0, 0], {})
    assert await adopting() == {"first": "16402", "second": "16403"}
    said = capsys.readouterr()
    assert "this cluster's installation is 0123456789abcdef, and not fedcba9876543210" in said.err
    assert said.out.count(f"PostgresDatabase {namespace}/first would take over the database of incarnation 16402") == 1
    assert installation.endswith("fairlead-installation")


async def test_without_an_installation_there_is_nothing_to_take_over(
    plane: Plane, api: Api, installation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = await api.get(installation)
    await api.delete(installation)

    codes = [await _run(plane, "takeover"), await _run(plane, "adopt", "--installation", "0123456789abcdef")]
    await api.create(installation.rpartition("/")[0], {**body, "metadata": {"name": "fairlead-installation"}})

    assert codes == [1, 1]
    assert capsys.readouterr().err.count("is Fairlead installed in this cluster?") == 2
