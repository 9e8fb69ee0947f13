"""Who may call: keys, tokens of the metadata server as google-auth asks for them, permissions of each method."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from devcloud.gcp.api.routes import methods
from devcloud.gcp.iam.permissions import PERMISSIONS
from devcloud.gcp.server import Options, running
from tests.devcloud.gcp.conftest import Cloud, Json, fetch


def bind(cloud: Cloud, member: str, *roles: str) -> None:
    cloud.control("POST", "bindings", {"project": cloud.served.project, "member": member, "roles": roles})


METADATA = """
import google.auth, google.auth.transport.requests as transport
credentials, project = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
credentials.refresh(transport.Request())
print(project, credentials.service_account_email, credentials.token)
"""


@pytest.mark.slow
def test_metadata_server_gives_the_token_of_its_account(cloud: Cloud, tmp_path: Path) -> None:
    token = "computeMetadata/v1/instance/service-accounts/default/token"
    flavour = {"Metadata-Flavor": "Google"}
    for host in ({}, {"Host": "metadata.google.internal"}):
        assert fetch(f"{cloud.served.url}/{token}", "GET", None, flavour | host).refusal == (404, "notFound")
    cloud.control("POST", "metadata", {"email": cloud.served.account})
    assert fetch(f"{cloud.served.url}/{token}", "GET", None, {}).refusal == (403, "forbidden")

    address = cloud.served.url.removeprefix("http://")
    result = subprocess.run(
        [sys.executable, "-c", METADATA],
        env={**os.environ, "GCE_METADATA_HOST": address, "GCE_METADATA_IP": address, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    cloud.control("POST", "metadata", {"email": ""})
    assert result.returncode == 0, result.stderr
    project, email, access_token = result.stdout.split()
    assert (project, email) == (cloud.served.project, cloud.served.account)
    assert cloud.send("GET", "v1/{p}/instances", token=access_token).status == 200


def test_each_method_asks_for_its_own_permission_and_for_no_other(cloud: Cloud) -> None:
    member = "least@fairlead-devcloud.iam.gserviceaccount.com"
    token = cloud.control("POST", "tokens", {"principal": member})["token"]
    name = f"projects/{cloud.served.project}/roles/least"
    bind(cloud, member, name)
    for route in methods():
        if route.action not in PERMISSIONS:
            continue
        own = PERMISSIONS[route.action]
        body: Json | None = {} if route.method in {"POST", "PUT", "PATCH"} else None
        path = "{p}" + re.sub(r"{\w+}", "1", route.path.removeprefix("projects/{project}"))
        others = sorted(set(PERMISSIONS.values()) - {own})
        cloud.control("POST", "roles", {"name": name, "permissions": others})
        assert cloud.send(route.method, f"v1/{path}", body, token=token).refusal == (403, "notAuthorized"), route
        cloud.control("POST", "roles", {"name": name, "permissions": [own]})
        assert cloud.send(route.method, f"v1/{path}", body, token=token).status != 403, route


def test_project_is_known_by_its_number_and_to_holders_of_a_good_token_alone(
    cloud: Cloud,
) -> None:
    body = cloud.send("GET", "v3/{p}").body

    assert (body["name"], body["projectId"]) == ("projects/123456789012", cloud.served.project)
    assert cloud.send("GET", "v3/projects/other").refusal == (403, "notAuthorized")
    assert cloud.send("GET", "v1/projects/other/instances").refusal == (403, "notAuthorized")

    none, wrong = cloud.send("GET", "v1/{p}/instances", token=""), cloud.send("GET", "v1/{p}/instances", token="wrong")

    assert (none.refusal, wrong.refusal) == ((401, "required"), (401, "authError"))
    assert none.body["error"]["status"] == wrong.body["error"]["status"] == "UNAUTHENTICATED"
    cloud.control("DELETE", "tokens")
    assert cloud.send("GET", "v1/{p}/instances").refusal == (401, "authError")


def test_key_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    options = Options(key_file=path, state=tmp_path / "state.json")
    with running(options) as served:
        first = path.read_text()
        assert f"{served.url}/token" in first
    with running(options):
        assert path.read_text() == first
    # Another process that kept nothing knows no key: one that does not count is written anew.
    with running(Options(key_file=path)) as served:
        present, former = json.loads(path.read_text()), json.loads(first)
    assert present["private_key_id"] != former["private_key_id"]
    assert present["token_uri"] == f"{served.url}/token"
