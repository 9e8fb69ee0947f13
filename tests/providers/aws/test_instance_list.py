"""Lists of RDS compared with observations of single instances: what wakes a resource, and what does not."""

from __future__ import annotations

import time
from dataclasses import replace

from devcloud.aws.server import Served
from providers.accounts.lister import ExternalStore
from providers.aws.account import AwsAccount
from providers.aws.instances.client import InstanceClients, instance_clients
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Present
from providers.external.ownership import Owner
from tests.support.simulator_control import control
from tests.support.waiting import eventually

NAME = "fl-looked-at"
OURS = Owner("home", "uid-1", "0123456789abcdef", "shop", "looked-at", "instance")
SPEC = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app")


class Lists:
    """The lists that an account's lister makes, one after another."""

    def __init__(self, cloud: InstanceClients) -> None:
        self._cloud, self._store, self._number = cloud, ExternalStore(), 0

    async def wake(self) -> bool:
        """List once; return whether the instance's resources are to be looked at."""
        self._number += 1
        return NAME in self._store.changed(await self._cloud.account.list(), float(self._number))


async def test_list_wakes_by_what_the_last_observation_saw(account: AwsAccount) -> None:
    cloud, target = instance_clients(account), Target(NAME, SPEC, OURS, "hash")
    fence = Fence(until=time.monotonic() + 60, leads=lambda: True, monotonic=time.monotonic)
    await cloud.external.create(target, Credential("app", "Sufficient-1"), fence)

    async def settled() -> bool:
        seen = await cloud.external.observe(target)
        return isinstance(seen, Present) and seen.observed.state == "available" and not seen.observed.pending

    await eventually(settled, "the instance is available")
    arn = {"ResourceName": (await account.call("describe_db_instances", "look"))["DBInstances"][0]["DBInstanceArn"]}
    lists = Lists(cloud)
    # Even the first list wakes nobody where the observation after a start saw the same.
    assert not await lists.wake()

    # A robot's tag comes, is looked at for another reason, and goes before the next list.
    await account.call("add_tags_to_resource", "tag it", **arn, Tags=[{"Key": "robot", "Value": "1"}])
    await cloud.external.observe(target)
    await account.call("remove_tags_from_resource", "untag it", **arn, TagKeys=["robot"])
    assert await lists.wake()
    await cloud.external.observe(target)
    assert not await lists.wake()

    # Another resource of that name has seen less: it is woken though this one saw the change.
    neighbour = replace(target, owner=replace(OURS, identity="uid-2"))
    await cloud.external.observe(neighbour)
    await account.call("add_tags_to_resource", "tag it", **arn, Tags=[{"Key": "robot", "Value": "2"}])
    await cloud.external.observe(target)
    assert await lists.wake()
    # Each difference wakes once.
    assert not await lists.wake()
    await cloud.external.observe(neighbour)
    assert not await lists.wake()


async def test_list_has_the_owner_of_each_instance_released_or_not(account: AwsAccount, simulator: Served) -> None:
    cloud, owner = instance_clients(account), replace(OURS, claim="fedcba9876543210", namespace_uid="shop-uid")
    target = Target("fl-let-go", SPEC, owner, "hash")
    fence = Fence(until=time.monotonic() + 60, leads=lambda: True, monotonic=time.monotonic)
    await cloud.external.create(target, Credential("app", "Sufficient-1"), fence)
    seen = await cloud.external.observe(target)
    assert isinstance(seen, Present)
    await cloud.external.release(target, seen.observed, fence)

    assert (await cloud.account.list()).owners["fl-let-go"] == owner
    control(simulator, "POST", "behaviour", {"list_without_tags": ["*"]})
    try:
        # An answer without tags says nothing about owners: what was known stays.
        assert (await cloud.account.list()).owners["fl-let-go"] == owner
        assert "fl-let-go" not in (await instance_clients(account).account.list()).owners
    finally:
        control(simulator, "POST", "behaviour", {"list_without_tags": []})
