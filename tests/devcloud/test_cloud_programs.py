"""Each simulated cloud as a program of its own: it serves until it is asked to end, at an address that is free."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from google.auth.transport.requests import Request
from google.oauth2 import service_account

from tests.devcloud.azure.conftest import send
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
