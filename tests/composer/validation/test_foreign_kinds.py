"""Compositions of another operator's kinds: what their CRDs may require, and what they cannot offer."""

from __future__ import annotations

from typing import Any

import pytest

from composer.kinds.catalog import catalog
from composer.validation.validate import CheckRequest, check
from tests.support.second_api import SecondApi

API = SecondApi("cache.example.org")
_ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def _reasons(*, labels: dict[str, str] | None = None, required: tuple[str, ...] = (), **spec: Any) -> list[str]:
    node = API.node_crd(composable="true")
    node["metadata"]["labels"] |= labels or {}
    node["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = list(required)
    kinds = catalog({**crd, "status": _ESTABLISHED} for crd in (API.cache_crd(), node))
    composition = API.composition("c", **spec)["spec"]
    composition["resources"][1] |= {"stateful": True} if labels is None else {}
    return [problem.reason for problem in check(CheckRequest(composition, kinds))]


@pytest.mark.parametrize(
    ("labels", "policies", "reasons"),
    [
        ({"fairlead.dev/stateful": "true"}, ["Orphan", "Snapshot"], ["BackupImpossible"]),
        (None, ["Orphan", "Snapshot"], ["BackupImpossible"]),
        ({"fairlead.dev/stateful": "true"}, ["Orphan", "Delete"], []),
        ({}, ["Orphan", "Snapshot"], []),
    ],
    ids=["data by its kind", "data by the composition", "no snapshot", "no data"],
)
def test_snapshot_is_offered_only_where_a_backup_can_be_taken(
    labels: dict[str, str] | None, policies: list[str], reasons: list[str]
) -> None:
    assert _reasons(labels=labels, deletionPolicies=policies) == reasons
