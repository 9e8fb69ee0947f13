"""Each simulated cloud as a program of its own, and as a part of a platform: refused, started, found, stopped."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from google.auth.transport.requests import Request
from google.oauth2 import service_account

from devcloud import addresses, clouds
from devcloud.azure.platform import RESOURCE_GROUP
from devcloud.errors import DevcloudError
from tests.devcloud.azure.conftest import SCOPE, send
from tests.devcloud.gcp.conftest import fetch

# They start programs.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ACCESS_KEY, SECRET = "AKIAPROGRAM000000000", "a-secret-of-this-test"
# google-auth has no types for what it is made of.
ServiceAccount: Any = service_account.Credentials
REQUEST: Any = Request


def _account(url: str, access_key: str, secret: str) -> str:
    """Return the account that a caller learns from STS."""
    key = {"aws_access_key_id": access_key, "aws_secret_access_key": secret}
    sts = boto3.client("sts", region_name="eu-west-1", endpoint_url=url, **key)
    return str(sts.get_caller_identity()["Account"])


def _instances(url: str, project: str, key: str) -> tuple[object, int]:
    """Return what a list of instances answers to the holder of a key, and how the control API answers to him."""
    credentials = ServiceAccount.from_service_account_file(
        key, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    credentials.refresh(REQUEST())
    headers = {"Authorization": f"Bearer {credentials.token}"}
    listed = fetch(f"{url}/v1/projects/{project}/instances", "GET", None, headers)
    return listed.body, fetch(f"{url}/_control/audit", "GET", None, headers).status


class Program(NamedTuple):
    """A cloud's program: its arguments, the last of which a file with its secret follows, and what a client sees."""

    arguments: tuple[str, ...]
    ask: Callable[[str, Path], object]
    seen: object


PROGRAMS = {
    "aws": Program(
        ("--access-key", ACCESS_KEY, "--account", "210987654321", "--secret-key-file"),
        lambda url, _: _account(url, ACCESS_KEY, SECRET),
        "210987654321",
    ),
    "azure": Program(
        ("--client-secret-file",),
        lambda url, _: send(f"{url}/subscriptions/x?api-version=2022-12-01").refusal,
        (401, "AuthenticationFailed"),
    ),
    "gcp": Program(
        ("--project", "other-project", "--key-file"),
        lambda url, file: _instances(url, "other-project", str(file)),
        ({"kind": "sql#instancesList"}, 403),
    ),
}


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_the_program_serves_until_it_is_asked_to_end(tmp_path: Path, cloud: str) -> None:
    file, case = tmp_path / "secret", PROGRAMS[cloud]
    if cloud != "gcp":  # whose program writes the key itself
        file.write_text(f"{SECRET}\n")
    program = [sys.executable, "-m", f"devcloud.{cloud}", *case.arguments, str(file)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout is not None
        url = first.stdout.readline().rsplit(" ", 1)[-1].strip()
        try:
            seen = case.ask(url, file)
            program += ["--listen", url.removeprefix("http://")]
            second = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
        finally:
            first.terminate()
        assert first.wait(timeout=120) == 0

    assert seen == case.seen
    assert (second.returncode, second.stderr.count("\n")) == (1, 1)
    assert second.stderr.startswith(f"{cloud}: ")
    assert "address already in use" in second.stderr


def _of_aws(variables: Mapping[str, str]) -> tuple[str, bool]:
    secret = variables["AWS_SECRET_ACCESS_KEY"]
    return secret, _account(variables["AWS_ENDPOINT_URL"], variables["AWS_ACCESS_KEY_ID"], secret) == "123456789012"


def _of_azure(variables: Mapping[str, str]) -> tuple[str, bool]:
    authority, secret = Path(variables["AZURE_CA_BUNDLE"]), variables["AZURE_CLIENT_SECRET"]
    client = {"client_id": variables["AZURE_CLIENT_ID"], "client_secret": secret}
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": SCOPE, **client})
    url = f"{variables['AZURE_AUTHORITY_HOST']}/{variables['AZURE_TENANT_ID']}/oauth2/v2.0/token"
    token = send(url, "POST", data=form.encode(), authority=authority).body["access_token"]
    path = f"/subscriptions/{variables['AZURE_SUBSCRIPTION_ID']}/resourceGroups/{RESOURCE_GROUP}?api-version=2020-06-01"
    headers = {"Authorization": f"Bearer {token}"}
    group = send(f"{variables['AZURE_ENDPOINT_URL']}{path}", headers=headers, authority=authority)
    return secret, group.status == 200


def _of_gcp(variables: Mapping[str, str]) -> tuple[str, bool]:
    url = variables["CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"].removesuffix("/")
    key = variables["GOOGLE_APPLICATION_CREDENTIALS"]
    listed, _ = _instances(url, variables["GOOGLE_CLOUD_PROJECT"], key)
    return json.loads(Path(key).read_text())["private_key"], listed == {"kind": "sql#instancesList"}


USES = {"aws": _of_aws, "azure": _of_azure, "gcp": _of_gcp}
"""Use of a cloud with what a shell is given and nothing else: the secret in it, and whether the cloud answered."""


@pytest.mark.parametrize("name", USES)
async def test_a_cloud_of_a_platform_starts_at_a_free_address_and_again_with_its_secret(
    tmp_path: Path, name: str
) -> None:
    cloud, lease, folder = clouds.cloud_of(name), addresses.lease(), tmp_path / name
    try:
        with socket.socket() as taken:
            # Connections to a server that an earlier test had at this address may linger in TIME_WAIT.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((lease.address(1), 8000))
            taken.listen()
            with pytest.raises(DevcloudError, match=rf"{lease.address(1)}:8000 is taken by pid \d+"):
                await cloud.start(folder, lease)
        first = await cloud.start(folder, lease)
        assert cloud.find(folder, lease.octet) == first
        secret, is_answered = await asyncio.to_thread(USES[name], first.variables)
        assert is_answered
        assert secret not in f"{first!r}{first.says}"
        if name == "gcp":
            host = first.variables["CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL"].strip("/").removeprefix("http://")
            assert first.flags == (f"--endpoint-override={host}",)

        await cloud.stop(folder)
        assert cloud.find(folder, lease.octet) is None
        again = await cloud.start(folder, lease)
        assert again == first
        assert await asyncio.to_thread(USES[name], again.variables) == (secret, True)
    finally:
        await cloud.stop(folder)
        cloud.erase(folder)
        lease.release()
    assert not await asyncio.to_thread(folder.exists)
