"""The simulated Cloud SQL as a part of `fairlead up`: started, found, stopped, started again with the key of before."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from google.auth.transport.requests import Request
from google.oauth2 import service_account

from devcloud import addresses, clouds
from devcloud.clouds import RunningCloud
from tests.devcloud.gcp.conftest import fetch

pytestmark = pytest.mark.slow

# google-auth has no types for what it is made of.
ServiceAccount: Any = service_account.Credentials
REQUEST: Any = Request


def _listed(running: RunningCloud) -> dict[str, Any]:
    """List the instances with what a shell gets of it."""
    variables = running.variables
    credentials = ServiceAccount.from_service_account_file(
        variables["GOOGLE_APPLICATION_CREDENTIALS"], scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    credentials.refresh(REQUEST())
    url = f"{variables['CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL']}v1/projects/{variables['GOOGLE_CLOUD_PROJECT']}/instances"
    reply = fetch(url, "GET", None, {"Authorization": f"Bearer {credentials.token}"})
    assert reply.status == 200, reply
    return reply.body


async def test_cloud_sql_is_started_found_and_started_again_with_its_key(tmp_path: Path) -> None:
    cloud, lease, folder = clouds.cloud_of("gcp"), addresses.lease(), tmp_path / "gcp"
    try:
        first = await cloud.start(folder, lease)
        assert cloud.find(folder, lease.octet) == first
        key = json.loads(await asyncio.to_thread((folder / "key.json").read_text))
        assert key["private_key"] not in repr(first)
        assert first.flags == (
            f"--endpoint-override={key['token_uri'].removeprefix('http://').removesuffix('/token')}",
        )
        assert await asyncio.to_thread(_listed, first) == {"kind": "sql#instancesList"}

        await cloud.stop(folder)
        assert cloud.find(folder, lease.octet) is None
        again = await cloud.start(folder, lease)
        assert again == first
        assert await asyncio.to_thread(_listed, again) == {"kind": "sql#instancesList"}
    finally:
        await cloud.stop(folder)
        lease.release()
    cloud.erase(folder)
    assert not await asyncio.to_thread(folder.exists)
