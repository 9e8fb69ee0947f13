"""The examples that people copy: what they lead to exists, comes in order, and is what a platform team would apply."""

from __future__ import annotations

import graphlib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from devcloud.controlplane.plane import Plane
from fairlead.validate import validate
from tests.support.gitops import COPIED

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
GITOPS = EXAMPLES / "gitops"


def _read(text: str) -> list[Any]:
    return [document for document in YAML(typ="safe", pure=True).load_all(text) if document]


def _files(name: str) -> list[Any]:
    return _read((GITOPS / "clusters" / "prod" / name).read_text(encoding="utf-8"))


def _flux() -> dict[str, dict[str, Any]]:
    documents = [document for document in _files("flux.yaml") if document["kind"] == "Kustomization"]
    return {document["metadata"]["name"]: document["spec"] for document in documents}


def _argocd() -> dict[str, Any]:
    documents = _files("argocd-applications/applications.yaml")
    return {document["metadata"]["name"]: document for document in documents}


def _folder(path: str) -> Path:
    """Return what a path of the copied repository is here: a release's folders are those of this checkout."""
    inside = path.removeprefix("./")
    return ROOT / inside.removeprefix("in-cluster/release/") if "/release/" in inside else GITOPS / inside


def test_flux_applies_crds_then_fairlead_then_accounts_then_claims() -> None:
    stages = _flux()
    graph = {name: {stage["name"] for stage in spec.get("dependsOn", ())} for name, spec in stages.items()}
    order = list(graphlib.TopologicalSorter(graph).static_order())

    assert sorted(order) == sorted(stages)
    assert (order[:2], order[-1]) == (["fairlead-crds", "fairlead"], "inbound")
    assert {name for name, spec in stages.items() if not spec["wait"]} == set()
    assert {name for name, spec in stages.items() if not spec["prune"]} == {"fairlead-crds", "fairlead"}


def test_argo_cd_has_the_same_stages_in_the_same_order() -> None:
    waves = {
        name: int(document["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for name, document in _argocd().items()
    }
    flux = _flux()

    assert waves.keys() == flux.keys()
    for name, spec in flux.items():
        assert all(waves[stage["name"]] < waves[name] for stage in spec.get("dependsOn", ())), name
        document = _argocd()[name]["spec"]
        assert f"./{document['source']['path']}" == spec["path"]
        assert document["syncPolicy"]["automated"]["prune"] == spec["prune"]


@pytest.mark.parametrize("name", sorted(_flux()))
def test_the_path_of_a_stage_exists(name: str) -> None:
    folder = _folder(_flux()[name]["path"])

    assert folder.is_dir()
    assert list(folder.glob("*.yaml")), f"{folder} has nothing to apply"


def test_the_claims_and_accounts_are_valid() -> None:
    inbound, outbound = GITOPS / "inbound", GITOPS / "outbound"
    files = [inbound / "blog" / "posts.yaml", inbound / "shop" / "orders.yaml", outbound / "onprem.yaml"]
    validity = validate(files, None)

    assert (list(validity.faults), len(validity.good)) == ([], 3)


def test_the_compositions_that_are_to_be_copied_are_shipped() -> None:
    (kustomization,) = _read((GITOPS / "compositions" / "kustomization.yaml").read_text(encoding="utf-8"))

    assert sorted(kustomization["resources"]) == sorted(COPIED)
    assert [path for path in COPIED.values() if not (ROOT / path).is_file()] == []


async def _built(plane: Plane, folder: Path) -> list[Any]:
    return _read(await plane.kubectl.run("kustomize", str(folder)))


@pytest.mark.apiserver
@pytest.mark.parametrize("name", ["overlay", "gitops/in-cluster"])
async def test_an_overlay_runs_each_process_by_the_digest_of_its_image(plane: Plane, name: str) -> None:
    objects = await _built(plane, EXAMPLES / name)
    deployments = [document for document in objects if document["kind"] == "Deployment"]

    wanted = {
        "fairlead-composer",
        "fairlead-provider-onprem",
        *(["fairlead-provider-aws"] if name == "overlay" else []),
    }
    assert {deployment["metadata"]["name"] for deployment in deployments} == wanted
    for deployment in deployments:
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        image, _, digest = container["image"].partition("@")
        assert image == f"registry.example.com/fairlead/{deployment['metadata']['name']}"
        assert digest == f"sha256:{'0' * 64}"


@pytest.mark.apiserver
async def test_the_overlay_says_by_which_role_a_cloud_is_used_and_where_a_provider_may_connect(plane: Plane) -> None:
    objects = {
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"]): document
        for document in await _built(plane, EXAMPLES / "overlay")
    }

    account = objects["ServiceAccount", "fairlead-aws", "fairlead-provider-aws"]
    assert list(account["metadata"]["annotations"]) == ["eks.amazonaws.com/role-arn"]
    policy = objects["NetworkPolicy", "fairlead-onprem", "fairlead-ingress"]["spec"]
    # The patch adds to what kustomize has of incoming connections.
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert len(policy["ingress"]) == 1
    composer = objects["Deployment", "fairlead-system", "fairlead-composer"]["spec"]["template"]["spec"]
    assert composer["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "512Mi"}


@pytest.mark.apiserver
@pytest.mark.parametrize(
    ("team", "accounts"),
    [
        ("blog", {("fairlead-system", "fairlead-composer")}),
        ("shop", {("fairlead-system", "fairlead-composer"), ("fairlead-onprem", "fairlead-provider-onprem")}),
    ],
)
async def test_a_team_reaches_its_own_namespace_alone(plane: Plane, team: str, accounts: set[tuple[str, str]]) -> None:
    objects = await _built(plane, GITOPS / "inbound" / team)
    bindings = [document for document in objects if document["kind"] == "RoleBinding"]

    namespaced = [document for document in objects if document["kind"] != "Namespace"]
    assert {document["metadata"]["namespace"] for document in namespaced} == {team}
    # The transformer of namespaces leaves the accounts where they are.
    assert {
        (subject["namespace"], subject["name"]) for binding in bindings for subject in binding["subjects"]
    } == accounts
