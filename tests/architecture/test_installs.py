"""Every cloud is installed like the on-prem one: the same rights, its own kinds, no more."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.architecture import tree

CLOUDS = tree.KUSTOMIZE / "clouds"
MODEL = "onprem"
OTHERS = sorted(path.name for path in CLOUDS.iterdir() if path.is_dir() and path.name != MODEL)
# What a cloud's SDK needs.
_OWN = ("env",)


@functools.cache
def _kinds(cloud: str) -> list[str]:
    """Return the plurals of a cloud's managed resources, by its CRDs."""
    return sorted(
        crd["spec"]["names"]["plural"]
        for _, crd in tree.documents(tree.CRDS)
        if crd["spec"]["group"] == f"{cloud}.fairlead.dev" and crd["spec"]["scope"] == "Namespaced"
    )


def _installed(cloud: str) -> list[str]:
    """Return a cloud's objects as texts that name no cloud and no kind."""
    return sorted(
        json.dumps(_neutral(document, _kinds(cloud)), sort_keys=True).replace(cloud, "<cloud>")
        for _, document in tree.documents(CLOUDS / cloud)
    )


def _neutral(node: Any, kinds: list[str]) -> Any:
    if isinstance(node, dict):
        return {key: _neutral(value, kinds) for key, value in node.items() if key not in _OWN}
    if isinstance(node, list):
        texts = {item.partition("/")[0] for item in node if isinstance(item, str)}
        if texts >= set(kinds):
            behind = sorted({item.partition("/")[2] for item in node if item.partition("/")[0] in kinds})
            others = sorted(item for item in node if item.partition("/")[0] not in kinds)
            return [*(f"<kinds>/{kind}" for kind in behind), *others]
        return [_neutral(item, kinds) for item in node]
    return node


@pytest.mark.parametrize("cloud", OTHERS)
def test_a_cloud_is_installed_like_the_others(cloud: str) -> None:
    assert _installed(cloud) == _installed(MODEL)


def test_what_comes_to_and_leaves_our_pods_is_named_and_no_token_is_mounted_by_default() -> None:
    documents = [document for _, document in tree.documents(tree.KUSTOMIZE)]
    ours = {document["metadata"]["name"] for document in documents if document["kind"] == "Namespace"}
    policies = [document for document in documents if document["kind"] == "NetworkPolicy"]
    deployments = [document["spec"]["template"]["spec"] for document in documents if document["kind"] == "Deployment"]
    ports = {
        port["containerPort"] for spec in deployments for container in spec["containers"] for port in container["ports"]
    }
    scrapers = [{"namespaceSelector": {"matchLabels": {"fairlead.dev/metrics": "true"}}}]

    assert sorted(policy["metadata"]["namespace"] for policy in policies) == sorted(ours)
    for policy in policies:
        # Every pod, both ways.
        assert (policy["spec"]["podSelector"], policy["spec"]["policyTypes"]) == ({}, ["Ingress", "Egress"])
        (rule,) = policy["spec"]["ingress"]
        assert rule["from"] == scrapers
        assert {port["port"] for port in rule["ports"]} == ports
        database = set() if policy["metadata"]["namespace"] == "fairlead-system" else {5432}
        assert [{port["port"] for port in rule["ports"]} for rule in policy["spec"]["egress"]] == [
            {53},
            {443, 6443} | database,
        ]
    for spec in deployments:
        assert spec["automountServiceAccountToken"] is False
    accounts = [document for document in documents if document["kind"] == "ServiceAccount"]
    assert [account for account in accounts if account.get("automountServiceAccountToken") is not False] == []
