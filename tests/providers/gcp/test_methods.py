"""Each call is one of the API's discovery document, and the shipped roles hold what the calls need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

from devcloud.gcp.iam.permissions import PERMISSIONS
from providers.gcp.methods import METHODS, by_rpc

DOCUMENT = json.loads((Path(DISCOVERY_DOC_DIR) / "sqladmin.v1.json").read_text(encoding="utf-8"))


def _calls(resources: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for resource in resources.values():
        for method in resource.get("methods", {}).values():
            yield method["httpMethod"], method["path"]
        yield from _calls(resource.get("resources", {}))


CALLS = frozenset(_calls(DOCUMENT["resources"]))


@pytest.mark.parametrize("name", METHODS)
def test_method_is_one_of_the_discovery_document(name: str) -> None:
    method = METHODS[name]
    assert (method.verb, method.path) in CALLS


def test_no_two_methods_are_one_call_of_the_package() -> None:
    assert len(by_rpc()) == len(METHODS)


ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "gcp"


def _held(name: str) -> list[str]:
    role = json.loads((ROLES / f"{name}.json").read_text(encoding="utf-8"))
    return list(role["includedPermissions"])


def test_shipped_roles_hold_the_permissions_of_the_calls_that_are_made() -> None:
    usual, deleting = _held("fairlead-provider-gcp"), _held("fairlead-provider-gcp-delete")

    assert sorted({*usual, *deleting}) == sorted({PERMISSIONS[method] for method in METHODS})
    assert deleting == [permission for permission in sorted({*usual, *deleting}) if permission.endswith(".delete")]
    assert not set(usual) & set(deleting)
