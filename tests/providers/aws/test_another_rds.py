"""The provider at moto's server: an RDS that it was not built with, and that nobody here wrote.

Moto's known gaps, around which this goes: a parameter group that is not there is an empty list and no
DBParameterGroupNotFound, which the provider takes for no answer; ModifyDBSubnetGroup loses the group; everything is
done at once, nothing is ever pending, and no password is checked.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import boto3
import msgspec
import pytest

from apis.teardown import Policy
from providers.aws import INSTANCES
from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec
from providers.aws.groups.kinds import ParameterGroups, SubnetGroups
from providers.aws.instances.client import InstanceClients, instance_clients
from providers.aws.models import DBParameterGroupParameters, DBSubnetGroupParameters, RDSInstanceParameters
from providers.external.client import Target
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Absent, Observed, Present
from providers.external.ownership import Owner
from runtime.errors import Conflict, Transient
from tests.providers.gates import OPEN
from tests.support.waiting import eventually

REGION = "eu-west-1"
KEYS = {"aws_access_key_id": "AKIAMOTO", "aws_secret_access_key": "moto"}
OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance")
NOBODY = Credential("", "")
INSTANCE = RDSInstanceParameters(
    db_instance_class="db.t4g.medium",
    allocated_storage=20,
    max_allocated_storage=40,
    storage_type="gp3",
    storage_encrypted=True,
    engine_version="16",
    master_username="app",
    db_name="orders",
    multi_az=False,
    publicly_accessible=False,
    backup_retention_period=7,
    preferred_backup_window="01:00-02:00",
    preferred_maintenance_window="sun:03:00-sun:04:00",
    copy_tags_to_snapshot=True,
    deletion_protection=False,
    db_subnet_group_name="fl-net",
    db_parameter_group_name="fl-par",
    tags={"team": "orders"},
)


@pytest.fixture(scope="module")
def moto_port() -> Iterator[int]:
    """Run moto's server, by itself: its warnings are not ours."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield port
    server.kill()
    server.wait()


@pytest.fixture
async def moto(moto_port: int) -> AsyncIterator[AwsAccount]:
    url = f"http://127.0.0.1:{moto_port}"

    async def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/moto-api/", timeout=10):  # noqa: S310, ASYNC210 - loop-back, a moment
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    await eventually(answers, "moto answers", limit_s=120)
    spec = {
        "region": REGION,
        "endpoint": url,
        "credentials": {"source": "Secret", "secretRef": {"name": "keys"}},
    }
    async with connect(msgspec.convert(spec, ProviderConfigSpec), {"keys": KEYS}) as account:
        yield account


def _subnets(account: AwsAccount) -> tuple[str, ...]:
    client = boto3.client("ec2", region_name=REGION, endpoint_url=account.config.endpoint, **KEYS)
    subnets = tuple(subnet["SubnetId"] for subnet in client.describe_subnets()["Subnets"])
    client.close()
    return subnets[:2]


async def test_instance_lives_with_its_groups(moto: AwsAccount) -> None:
    assert moto.id == "123456789012"
    networks, parameters, instances = SubnetGroups(moto), ParameterGroups(moto), instance_clients(moto)
    network = Target("fl-net", DBSubnetGroupParameters(subnet_ids=_subnets(moto)), OWNER, "hash")
    values = DBParameterGroupParameters(db_parameter_group_family="postgres16", parameters={"work_mem": "64MB"})
    group = Target("fl-par", values, OWNER, "hash")

    assert await networks.observe(network) == Absent()
    await networks.create(network, NOBODY, OPEN)
    made_network = await networks.observe(network)
    with pytest.raises(Transient, match="names 0"):
        await parameters.observe(group)
    await parameters.create(group, NOBODY, OPEN)
    made_group = await parameters.observe(group)
    for wanted, made in ((network, made_network), (group, made_group)):
        assert isinstance(made, Present)
        assert wanted.owner.owns(made.observed.owner)
        assert diff(wanted.spec, made.observed.spec) == ()

    await _an_instance_lives(instances)

    assert isinstance(made_network, Present)
    assert isinstance(made_group, Present)
    await parameters.delete(group, made_group.observed, Policy.DELETE, OPEN)
    await networks.delete(network, made_network.observed, Policy.DELETE, OPEN)
    assert await networks.observe(network) == Absent()


async def _an_instance_lives(cloud: InstanceClients) -> None:
    target = Target("fl-orders", INSTANCE, OWNER, "hash")
    assert await cloud.external.observe(target) == Absent()
    assert await cloud.account.find_predecessors(OWNER) == ()
    await cloud.external.create(target, Credential("app", "Sufficient-1"), OPEN)
    observed = await _seen(cloud, target)
    assert target.owner.owns(observed.owner)
    assert (diff(target.spec, observed.spec), INSTANCES.invariants(target, observed)) == ((), ())
    # Whose the instance is, and which password it has, only a look shows.
    with pytest.raises(Conflict):
        await cloud.external.create(target, Credential("app", "Sufficient-2"), OPEN)

    edited = replace(target, spec=msgspec.structs.replace(INSTANCE, backup_retention_period=9, allocated_storage=30))
    changes = tuple(INSTANCES.classify(change, observed) for change in diff(edited.spec, observed.spec))
    assert [change.shown for change in changes] == ["allocatedStorage", "backupRetentionPeriod"]
    await cloud.external.update(edited, observed, changes, OPEN)
    observed = await _seen(cloud, edited)
    assert diff(edited.spec, observed.spec) == ()
    await cloud.logins.set(edited, observed, Credential("app", "Sufficient-2"), OPEN)
    assert "fl-orders" in (await cloud.account.list()).items

    leaving = replace(edited, leaving=True, incarnation=observed.incarnation)
    await cloud.external.delete(leaving, observed, Policy.SNAPSHOT, OPEN)
    assert await cloud.external.observe(leaving) == Absent()
    assert (await cloud.backups.latest(leaving)).startswith("fl-final-fl-orders-")


async def _seen(cloud: InstanceClients, target: Target[RDSInstanceParameters]) -> Observed[RDSInstanceParameters, Any]:
    seen = await cloud.external.observe(target)
    assert isinstance(seen, Present)
    return seen.observed
