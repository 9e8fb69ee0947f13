"""What a CRD must have to be a kind of claim: the shipped one has it all, and each part taken away is named."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from composer.kinds.catalog import facts_of
from tests.support import yaml_texts

_CRD = Path(__file__).resolve().parents[3] / "crds" / "database.fairlead.dev_postgresqlinstances.yaml"
SHIPPED: dict[str, Any] = yaml_texts.load(_CRD)


def _version(crd: dict[str, Any]) -> dict[str, Any]:
    version: dict[str, Any] = crd["spec"]["versions"][0]
    return version


def _status(crd: dict[str, Any]) -> dict[str, Any]:
    status: dict[str, Any] = _version(crd)["schema"]["openAPIV3Schema"]["properties"]["status"]
    return status


def _cluster_scoped(crd: dict[str, Any]) -> None:
    crd["spec"]["scope"] = "Cluster"


def _default_on_the_property(crd: dict[str, Any]) -> None:
    # There it shows nothing: without a status there is no property to fill in.
    del _status(crd)["default"]
    _status(crd)["properties"]["observedGeneration"]["default"] = -1


def _floors_of_numbers_alone(crd: dict[str, Any]) -> None:
    _status(crd)["properties"]["inventory"]["items"]["properties"]["floors"]["additionalProperties"] = {
        "type": "integer"
    }


def _removed(*path: str) -> Callable[[dict[str, Any]], None]:
    """Return what takes a field below the status away."""

    def take(crd: dict[str, Any]) -> None:
        below = _status(crd)
        for step in path[:-1]:
            below = below[step]
        del below[path[-1]]

    return take


PARTS = ("inventory", "composition", "identity", "binding", "connectionHash", "lastHandledReconcileAt")
TAKEN: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "namespaced": (_cluster_scoped, "scope Namespaced"),
    "the status subresource": (lambda crd: _version(crd).pop("subresources"), "subresources.status"),
    "the default on status itself": (_default_on_the_property, "status with default {observedGeneration: -1}"),
    "conditions as a map": (
        _removed("properties", "conditions", "x-kubernetes-list-type"),
        "status.conditions as a map list with key type",
    ),
    "the uid of what was composed": (
        _removed("properties", "inventory", "items", "properties", "uid"),
        "status.inventory[].uid",
    ),
    "floors that are quantities": (
        _floors_of_numbers_alone,
        "status.inventory[].floors with values of x-kubernetes-int-or-string",
    ),
    "the name of the Secret": (_removed("properties", "binding", "properties", "name"), "status.binding.name"),
    **{name: (_removed("properties", name), f"status.{name}") for name in PARTS},
}


@pytest.mark.parametrize(("take", "gap"), TAKEN.values(), ids=TAKEN)
def test_a_part_that_is_taken_away_is_named(take: Callable[[dict[str, Any]], Any], gap: str) -> None:
    crd = deepcopy(SHIPPED)
    take(crd)

    facts = facts_of(crd)

    assert facts is not None
    assert facts.gaps == (gap,)
    assert not facts.abstract
