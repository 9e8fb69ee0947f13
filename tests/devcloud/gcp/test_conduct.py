"""Faults, quota, lag, regions out of reach, losses behind the API's back, the log, pages, a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devcloud.gcp.server import Options, running
from tests.devcloud.gcp.conftest import Cloud


@pytest.mark.parametrize("status", [429, 403])
def test_calls_beyond_the_quota_are_refused_reads_and_writes_together(status: int, cloud: Cloud) -> None:
    quota = {"per_minute": 0.001, "burst": 2, "status": status}
    cloud.control("POST", "behaviour", {"quota": quota})

    assert cloud.call("GET", "instances").status == 200
    assert cloud.insert().status == 200
    reply = cloud.call("GET", "instances")
    assert reply.refusal == (status, "rateLimitExceeded")
    assert "Queries per minute per user" in reply.message
    assert "project_number:123456789012" in reply.message
    assert reply.body["error"]["details"][0]["reason"] == "RATE_LIMIT_EXCEEDED"


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
