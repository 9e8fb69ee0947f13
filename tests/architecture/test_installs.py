"""Every cloud is installed like the on-prem one: the same rights, its own kinds, no more."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.architecture import tree

CLOUDS = tree.DEPLOY / "kustomize" / "clouds"
MODEL = "onprem"
OTHERS = sorted(path.name for path in CLOUDS.iterdir() if path.is_dir() and path.name != MODEL)
# What a cloud's SDK has to be told.
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
        texts = {each.partition("/")[0] for each in node if isinstance(each, str)}
        if texts >= set(kinds):
            behind = sorted({each.partition("/")[2] for each in node if each.partition("/")[0] in kinds})
            others = sorted(each for each in node if each.partition("/")[0] not in kinds)
            return [*(f"<kinds>/{each}" for each in behind), *others]
        return [_neutral(each, kinds) for each in node]
    return node


@pytest.mark.parametrize("cloud", OTHERS)
def test_a_cloud_is_installed_like_the_others(cloud: str) -> None:
    assert _installed(cloud) == _installed(MODEL)


def test_a_wider_right_would_be_seen() -> None:
    documents = [document for _, document in tree.documents(CLOUDS / MODEL) if document["kind"] == "ClusterRole"]
    kinds = _kinds(MODEL)
    wider = [json.loads(json.dumps(each).replace(kinds[0], f'{kinds[0]}", "pods')) for each in documents]

    assert [_neutral(each, kinds) for each in wider] != [_neutral(each, kinds) for each in documents]


def test_each_namespace_of_ours_lets_in_nobody_but_who_scrapes_metrics() -> None:
    documents = [document for _, document in tree.documents(tree.DEPLOY)]
    ours = {each["metadata"]["name"] for each in documents if each["kind"] == "Namespace"}
    policies = [each for each in documents if each["kind"] == "NetworkPolicy"]
    deployments = [each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment"]
    ports = {port["containerPort"] for spec in deployments for one in spec["containers"] for port in one["ports"]}
    scrapers = [{"namespaceSelector": {"matchLabels": {"fairlead.dev/metrics": "true"}}}]

    assert sorted(each["metadata"]["namespace"] for each in policies) == sorted(ours)
    for policy in policies:
        # Every pod, incoming connections alone.
        assert (policy["spec"]["podSelector"], policy["spec"]["policyTypes"]) == ({}, ["Ingress"])
        (rule,) = policy["spec"]["ingress"]
        assert rule["from"] == scrapers
        assert {port["port"] for port in rule["ports"]} == ports
