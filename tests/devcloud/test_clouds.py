"""Clouds that `fairlead up` can simulate: found by their folders, and each with what the cluster needs for it."""

import asyncio
import socket
from pathlib import Path

import pytest

from devcloud import addresses, clouds
from devcloud.addresses import Lease
from devcloud.errors import DevcloudError
from tests.support.fixtures import ASSETS


def test_clouds_are_found_by_their_folders() -> None:
    assert {"aws", "gcp", "onprem"} <= set(clouds.names())


@pytest.mark.parametrize("name", clouds.names())
def test_a_cloud_has_its_accounts_and_its_composition(name: str) -> None:
    cloud = clouds.cloud_of(name)

    assert cloud.name == name
    assert cloud.program.namespace == f"fairlead-{name}"
    assert (ASSETS.deploy / "kustomize" / "clouds" / name / "kustomization.yaml").exists()
    assert (ASSETS.compositions / f"postgres-{name}.yaml").exists()


def test_an_unknown_cloud_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(DevcloudError, match=r"no cloud 'asw' can be simulated here, only aws, "):
        clouds.cloud_of("asw")


@pytest.mark.rds
async def test_a_taken_address_is_reported_with_its_holder(tmp_path: Path) -> None:
    cloud, lease = clouds.cloud_of("aws"), addresses.lease()
    with socket.socket() as taken:
        # Connections to a server that an earlier test had at this address may linger in TIME_WAIT.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((lease.address(1), 8000))
        taken.listen()
        with pytest.raises(DevcloudError, match=rf"{lease.address(1)}:8000 is taken by pid \d+"):
            await cloud.start(tmp_path / "aws", lease)
    try:
        await _starts_and_stops(tmp_path / "aws", lease)
    finally:
        lease.release()


async def _starts_and_stops(folder: Path, lease: Lease) -> None:
    cloud = clouds.cloud_of("aws")
    standing = await cloud.start(folder, lease)
    try:
        assert cloud.find(folder, lease.octet) == standing
        secret = standing.variables["AWS_SECRET_ACCESS_KEY"]
        assert secret not in repr(standing)
        assert secret not in standing.says
    finally:
        await cloud.stop(folder)
    assert cloud.find(folder, lease.octet) is None
    cloud.erase(folder)
    assert not await asyncio.to_thread(folder.exists)
