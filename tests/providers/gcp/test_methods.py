"""Each call's verb and path are those of the API's discovery document, which google-api-python-client carries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

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
