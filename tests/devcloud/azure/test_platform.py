"""The simulated Azure of a platform: over TLS, with its resource group; found again, stopped, and deleted."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

import pytest

from devcloud import addresses
from devcloud.azure.platform import CLOUD, RESOURCE_GROUP
from tests.devcloud.azure.conftest import SCOPE, Reply, send

# It starts the program twice.
pytestmark = pytest.mark.slow


def _group(variables: Mapping[str, str]) -> Reply:
    """Ask for the resource group with what a shell is given, and nothing else."""
    authority = Path(variables["AZURE_CA_BUNDLE"])
    form = {
        "grant_type": "client_credentials",
        "client_id": variables["AZURE_CLIENT_ID"],
        "client_secret": variables["AZURE_CLIENT_SECRET"],
        "scope": SCOPE,
    }
    url = f"{variables['AZURE_AUTHORITY_HOST']}/{variables['AZURE_TENANT_ID']}/oauth2/v2.0/token"
    token = send(url, "POST", data=urllib.parse.urlencode(form).encode(), authority=authority).body["access_token"]
    path = f"/subscriptions/{variables['AZURE_SUBSCRIPTION_ID']}/resourceGroups/{RESOURCE_GROUP}"
    return send(
        f"{variables['AZURE_ENDPOINT_URL']}{path}?api-version=2020-06-01",
        headers={"Authorization": f"Bearer {token}"},
        authority=authority,
    )


async def test_it_serves_over_tls_is_found_stopped_and_started_again(tmp_path: Path) -> None:
    folder, lease = tmp_path / "azure", addresses.lease()
    try:
        started = await CLOUD.start(folder, lease)
        assert CLOUD.find(folder, lease.octet) == started
        secret = started.variables["AZURE_CLIENT_SECRET"]
        assert secret not in repr(started)
        assert secret not in started.says
        assert (await asyncio.to_thread(_group, started.variables)).status == 200
        await CLOUD.stop(folder)
        assert CLOUD.find(folder, lease.octet) is None
        again = await CLOUD.start(folder, lease)
        assert again == started
        assert (await asyncio.to_thread(_group, again.variables)).status == 200
    finally:
        await CLOUD.stop(folder)
        CLOUD.erase(folder)
        lease.release()
    assert not await asyncio.to_thread(folder.exists)
