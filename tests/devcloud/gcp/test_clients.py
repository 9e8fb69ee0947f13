"""google-api-python-client drives the simulator; google-cloud-sql does so in tests/providers/gcp."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

from devcloud.gcp.api.routes import PREFIXES, methods
from devcloud.gcp.simulator import METHODS
from tests.devcloud.gcp.conftest import Json

pytestmark = pytest.mark.slow


def document(version: str) -> Json:
    """Return the discovery document of a version of the API."""
    content: Json = json.loads(Path(DISCOVERY_DOC_DIR, f"sqladmin.{version}.json").read_text(encoding="utf-8"))
    return content


def documented(version: str) -> Iterator[tuple[str, str, str]]:
    """Yield action, HTTP method and path of a version, parameters as the simulator names them."""
    for resource, content in document(version)["resources"].items():
        for name, method in content.get("methods", {}).items():
            path = method["flatPath"].replace("{projectsId}", "{project}").replace("{backupsId}", "{backup}")
            # The newest resource has names of another style: `Backups.ListBackups`, `backups.listBackups`.
            short = re.sub(r"^([A-Za-z]+)Backups?$", r"\1", name) if resource.lower() == "backups" else name
            action = f"{resource[:1].lower()}{resource[1:]}.{short[:1].lower()}{short[1:]}"
            yield action, method["httpMethod"], path


@pytest.mark.parametrize("version", PREFIXES)
def test_methods_and_paths_are_those_of_the_discovery_document(version: str) -> None:
    known = set(documented(version))
    ours = {(route.action, route.method, f"{PREFIXES[version]}/{route.path}") for route in methods()}

    assert ours - known == set()
    assert {action for action, _, _ in ours} == METHODS.keys() - {"projects.get"}
