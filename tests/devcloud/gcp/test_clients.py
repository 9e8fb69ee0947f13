"""google-api-python-client drives the simulator; google-cloud-sql does so in tests/providers/gcp."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR
from googleapiclient.errors import HttpError

from devcloud.gcp.api.routes import PREFIXES, methods
from devcloud.gcp.simulator import METHODS
from tests.devcloud.gcp.conftest import Cloud, Json, until

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


@pytest.mark.parametrize("version", PREFIXES)
def test_google_api_python_client_drives_it(version: str, cloud: Cloud) -> None:
    with warnings.catch_warnings():
        # Its HTTP library warns of its own use of a parser.
        warnings.simplefilter("ignore", DeprecationWarning)
        service = build(
            "sqladmin",
            version,
            credentials=Credentials(cloud.token),  # type: ignore[no-untyped-call]  # google-auth has no types for it
            client_options={"api_endpoint": cloud.served.url},
        )
        project = cloud.served.project
        wanted = {
            "name": "db-1",
            "databaseVersion": "POSTGRES_16",
            "region": "europe-west1",
            "settings": {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"},
        }
        operation = service.instances().insert(project=project, body=wanted).execute()
        get = service.operations().get(project=project, operation=operation["name"])
        until(get.execute, lambda shown: bool(shown["status"] == "DONE"))
        shown = service.instances().get(project=project, instance="db-1").execute()
        with pytest.raises(HttpError) as error:
            service.instances().insert(project=project, body=wanted).execute()
        service.close()

    assert shown["state"] == "RUNNABLE"
    assert error.value.status_code == 409
    assert error.value.error_details[0]["reason"] == "instanceAlreadyExists"
