"""Who may call: tokens by key, by a foreign identity and by the metadata server, as google-auth asks for them."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from google.auth import exceptions, identity_pool
from google.auth.transport.requests import Request

from devcloud.gcp.api.routes import methods
from devcloud.gcp.iam.permissions import PERMISSIONS
from tests.devcloud.gcp.conftest import Cloud, Json, fetch

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
AUDIENCE = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/pool/providers/cluster"
SUBJECT = "system:serviceaccount:fairlead-system:provider-gcp"
PRINCIPAL = f"principal:{AUDIENCE.partition('/providers/')[0]}/subject/{SUBJECT}"
ISSUER = "https://issuer.example"
IdentityPool: Any = identity_pool.Credentials
REQUEST: Any = Request


def key_of(cloud: Cloud, email: str = "app@fairlead-devcloud.iam.gserviceaccount.com") -> Json:
    key: Json = cloud.control("POST", "keys", {"email": email, "project": cloud.served.project})
    return {**key, "token_uri": f"{cloud.served.url}/token"}


def bind(cloud: Cloud, member: str, *roles: str) -> None:
    cloud.control("POST", "bindings", {"project": cloud.served.project, "member": member, "roles": roles})


def unsigned_jwt(**claims: object) -> str:
    now = int(time.time())
    usual: Json = {"iss": ISSUER, "aud": "fairlead", "sub": SUBJECT, "iat": now, "exp": now + 600}
    parts = [{"alg": "RS256", "kid": "k"}, {**usual, **claims}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "c2ln"])


@pytest.fixture
def federated(cloud: Cloud, tmp_path: Path) -> Any:
    """Return a maker of credentials of a foreign identity, whose token has other claims."""
    pool = {"audience": AUDIENCE, "issuer": ISSUER, "allowed_audience": "fairlead"}
    cloud.control("POST", "pools", {**pool, "impersonates": {SUBJECT: cloud.served.account}})

    def credentials(*, impersonates: str = "", **claims: object) -> Any:
        path = tmp_path / "token"
        path.write_text(unsigned_jwt(**claims))
        account = f"{cloud.served.url}/v1/projects/-/serviceAccounts/{impersonates}:generateAccessToken"
        return IdentityPool(
            audience=AUDIENCE,
            subject_token_type="urn:ietf:params:oauth:token-type:jwt",
            token_url=f"{cloud.served.url}/v1/token",
            credential_source={"file": str(path)},
            scopes=[SCOPE],
            **({"service_account_impersonation_url": account} if impersonates else {}),
        )

    return credentials


def test_foreign_identity_gets_a_token_and_may_become_its_account_alone(federated: Any, cloud: Cloud) -> None:
    bind(cloud, PRINCIPAL, "roles/cloudsql.viewer")
    own, account = federated(), federated(impersonates=cloud.served.account)
    for credentials in (own, account):
        credentials.refresh(REQUEST())

    assert cloud.send("GET", "v1/{p}/instances", token=own.token).status == 200
    assert cloud.send("POST", "v1/{p}/instances", {}, token=own.token).refusal == (403, "notAuthorized")
    assert cloud.send("POST", "v1/{p}/instances", {}, token=account.token).refusal == (400, "invalid")
    key_of(cloud, "other@fairlead-devcloud.iam.gserviceaccount.com")
    with pytest.raises(exceptions.RefreshError):
        federated(impersonates="other@fairlead-devcloud.iam.gserviceaccount.com").refresh(REQUEST())


@pytest.mark.parametrize("claims", [{"iss": "https://other"}, {"aud": "other"}, {"iat": 1, "exp": 2}, {"exp": "soon"}])
def test_foreign_token_that_does_not_fit_is_refused(claims: Json, federated: Any) -> None:
    with pytest.raises(exceptions.OAuthError, match="invalid_grant"):
        federated(**claims).refresh(REQUEST())


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
