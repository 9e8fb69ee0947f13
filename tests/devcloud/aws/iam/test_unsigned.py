"""What needs no signature is answered to programs that hold a token, and to no page of a browser."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from devcloud.simulator import launch
from tests.devcloud.aws.conftest import Cloud

_KEY = {"access_key_id": "AKIAEVIL000000000000", "secret_access_key": "of-the-page"}


def _status_of(cloud: Cloud, method: str, path: str, headers: dict[str, str], body: Any = None) -> int:
    """Send a request with exactly these headers, `Host` among them; return the status."""
    place = cloud.served.url.removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = b"" if body is None else json.dumps(body).encode()
        for name, value in ({"Host": place} | headers | {"Content-Length": str(len(data))}).items():
            connection.putheader(name, value)
        connection.endheaders(data)
        return connection.getresponse().status
    finally:
        connection.close()


def _headers(cloud: Cloud, **changed: str) -> dict[str, str]:
    """Return those of a good control call; an empty value leaves one out, `_` stands for `-`."""
    good = {"Authorization": f"Bearer {cloud.served.control_token}", "Content-Type": "application/json"}
    whole = good | {name.replace("_", "-"): value for name, value in changed.items()}
    return {name: value for name, value in whole.items() if value}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="a program with the token"),
        pytest.param({"Content_Type": "application/json; charset=utf-8"}, 200, id="with a character set"),
        pytest.param({"Authorization": ""}, 403, id="no token"),
        pytest.param({"Authorization": "Bearer another"}, 403, id="another token"),
        pytest.param({"Origin": "https://evil.example"}, 403, id="a page of another site"),
        pytest.param({"Origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"Sec_Fetch_Site": "cross-site"}, 403, id="a browser without an Origin"),
        pytest.param({"Host": "evil.example:8000"}, 403, id="a name that was rebound"),
        pytest.param({"Content_Type": "text/plain"}, 403, id="a body that needs no preflight"),
        pytest.param({"Content_Type": ""}, 403, id="a body of no type"),
    ],
)
def test_a_key_is_added_by_a_program_with_the_token_alone(cloud: Cloud, headers: dict[str, str], status: int) -> None:
    assert _status_of(cloud, "POST", "/_control/keys", _headers(cloud, **headers), _KEY) == status

    assert (_KEY["access_key_id"] in cloud.control("GET", "keys")) == (status == 200)
    cloud.control("DELETE", f"keys/{_KEY['access_key_id']}")


@pytest.mark.parametrize(
    ("authorization", "more", "status"),
    [("pod", {}, 200), ("any", {}, 403), ("control", {}, 403), ("pod", {"Origin": "https://evil.example"}, 403)],
)
def test_a_roles_credentials_are_for_a_pods_token_alone(
    cloud: Cloud, authorization: str, more: dict[str, str], status: int
) -> None:
    token = {"pod": cloud.served.pod_token, "control": cloud.served.control_token}.get(authorization, authorization)

    assert _status_of(cloud, "GET", "/_eks/v1/credentials", {"Authorization": token, **more}) == status


def test_the_platform_keeps_its_token_to_its_user(tmp_path: Path) -> None:
    file = launch.secret_in(tmp_path, "control-token")

    assert file.stat().st_mode & 0o777 == 0o600
    assert launch.secret_in(tmp_path, "control-token").read_text() == file.read_text()
