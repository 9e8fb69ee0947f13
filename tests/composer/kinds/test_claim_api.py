"""What a CRD must have to be a kind of claim: the shipped one has it all, and each part taken away is named."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from composer.kinds import claim_api
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


def test_the_shipped_kind_lacks_nothing() -> None:
    facts = facts_of(SHIPPED)

    assert facts is not None
    assert facts.gaps == ()
    assert facts.abstract
    assert facts.is_shipped
    assert not facts.allowed
    assert claim_api.absent_options(_version(SHIPPED)) == ()


LABELLED: dict[str, tuple[str, dict[str, str], str, bool]] = {
    "ours says that it holds data": ("aws.fairlead.dev", {"stateful": "true"}, "stateful", True),
    "ours does not say whether it holds data": ("aws.fairlead.dev", {}, "stateful", True),
    "ours says nothing of its data": ("aws.fairlead.dev", {"stateful": ""}, "stateful", True),
    "ours says something else of its data": ("aws.fairlead.dev", {"stateful": "no"}, "stateful", True),
    "ours says that it holds no data": ("aws.fairlead.dev", {"stateful": "false"}, "stateful", False),
    "a stranger's says that it holds data": ("example.org", {"stateful": "true"}, "stateful", True),
    "a stranger's says nothing": ("example.org", {}, "stateful", False),
    "ours is inside another": ("gcp.fairlead.dev", {"inside": "true"}, "inside", True),
    "ours is not inside another": ("gcp.fairlead.dev", {"inside": "false"}, "inside", False),
    "ours does not say where it is": ("gcp.fairlead.dev", {}, "inside", False),
    "a stranger's is inside nothing": ("example.org", {"inside": "true"}, "inside", False),
    "ours is prompt": ("onprem.fairlead.dev", {"prompt": "true"}, "prompt", True),
    "ours is not prompt": ("onprem.fairlead.dev", {"prompt": "false"}, "prompt", False),
    "ours does not say whether it is prompt": ("onprem.fairlead.dev", {}, "prompt", False),
}


@pytest.mark.parametrize(("group", "labels", "fact", "expected"), LABELLED.values(), ids=LABELLED)
def test_a_kind_of_a_provider_is_what_the_labels_of_its_crd_say(
    group: str, labels: dict[str, str], fact: str, *, expected: bool
) -> None:
    facts = facts_of(_crd_of(group, {f"fairlead.dev/{name}": text for name, text in labels.items()}))

    assert facts is not None
    assert getattr(facts, fact) is expected


def _crd_of(group: str, labels: dict[str, str]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Thing", "plural": "things"}
    return {
        "metadata": {"name": f"things.{group}", "labels": labels},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.mark.parametrize(("take", "gap"), TAKEN.values(), ids=TAKEN)
def test_a_part_that_is_taken_away_is_named(take: Callable[[dict[str, Any]], Any], gap: str) -> None:
    crd = deepcopy(SHIPPED)
    take(crd)

    facts = facts_of(crd)

    assert facts is not None
    assert facts.gaps == (gap,)
    assert not facts.abstract


def test_a_kind_that_is_not_served_yet_is_not_in_the_catalog() -> None:
    begun = {**SHIPPED, "status": {"conditions": [{"type": "Established", "status": "False"}]}}
    served = {**SHIPPED, "status": {"conditions": [{"type": "Established", "status": "True"}]}}

    assert facts_of(begun) is None
    assert facts_of(served) is not None
