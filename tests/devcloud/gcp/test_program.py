"""`python -m devcloud.gcp`: says where it listens, writes its key, ends when asked to, cannot begin in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.auth.transport.requests import Request
from google.oauth2 import service_account

from devcloud.gcp.server import Options, running
from tests.devcloud.gcp.conftest import fetch

ROOT = Path(__file__).resolve().parents[3]
# google-auth has no types for what it is made of.
ServiceAccount: Any = service_account.Credentials
REQUEST: Any = Request


@pytest.mark.slow
def test_the_program_serves_until_it_is_asked_to_end(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    program = [sys.executable, "-m", "devcloud.gcp", "--project", "other-project", "--key-file", str(key)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout is not None
        url = first.stdout.readline().rsplit(" ", 1)[-1].strip()
        try:
            credentials = ServiceAccount.from_service_account_info(
                json.loads(key.read_text()), scopes=["https://www.googleapis.com/auth/cloud-platform"]
            )
            credentials.refresh(REQUEST())
            headers = {"Authorization": f"Bearer {credentials.token}"}
            listed = fetch(f"{url}/v1/projects/other-project/instances", "GET", None, headers)
            assert (listed.status, listed.body) == (200, {"kind": "sql#instancesList"})
            assert fetch(f"{url}/_control/audit", "GET", None, headers).status == 403
            second = subprocess.run(
                [*program, "--listen", url.removeprefix("http://")],
                capture_output=True,
                text=True,
                cwd=ROOT,
                timeout=120,
                check=False,
            )
        finally:
            first.terminate()
        assert first.wait(timeout=120) == 0

    # The first process kept nothing, so the next one knows no key: a key that does not count is written anew.
    former = json.loads(key.read_text())
    with running(Options(key_file=key)) as served:
        present = json.loads(key.read_text())
    assert present["private_key_id"] != former["private_key_id"]
    assert present["token_uri"] == f"{served.url}/token"
    assert second.returncode == 1
    assert second.stderr.startswith("gcp: ")
    assert "address already in use" in second.stderr
    assert second.stderr.count("\n") == 1
