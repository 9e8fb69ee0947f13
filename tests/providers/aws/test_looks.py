"""Lists of RDS beside looks at single instances: what wakes a resource, and what is no news."""

from __future__ import annotations

import time
from dataclasses import replace

from devcloud.aws.server import Served
from providers.accounts.lister import ExternalStore
from providers.aws.account import AwsAccount
from providers.aws.models import RDSInstanceParameters
from providers.aws.rds import RdsInstances
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Present
from providers.external.ownership import Owner
from tests.support.rds_control import control
from tests.support.waiting import eventually

NAME = "fl-looked-at"
OURS = Owner("home", "uid-1", "0123456789abcdef", "shop", "looked-at", "instance")
SPEC = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app")


class Lists:
    """The lists that an account's sweeper makes, one after another."""

    def __init__(self, cloud: RdsInstances) -> None:
        self._cloud, self._store, self._number = cloud, ExternalStore(), 0

    async def wake(self) -> bool:
        """List once; tell whether the instance's resources are to be looked at."""
        self._number += 1
        return NAME in self._store.changed(await self._cloud.observe_all(), float(self._number))


async def test_a_list_wakes_by_what_the_last_look_saw(account: AwsAccount) -> None:
    cloud, target = RdsInstances(account), Target(NAME, SPEC, OURS, "hash")
    fence = Fence(until=time.monotonic() + 60, leads=lambda: True, monotonic=time.monotonic)
    await cloud.create(target, Credential("app", "Sufficient-1"), fence)

    async def settled() -> bool:
        seen = await cloud.observe(target)
        return isinstance(seen, Present) and seen.observed.state == "available" and not seen.observed.pending

    await eventually(settled, "the instance is available")
    arn = {"ResourceName": (await account.call("describe_db_instances", "look"))["DBInstances"][0]["DBInstanceArn"]}
    lists = Lists(cloud)
    # Even the first list is no news where the look after a start saw the same.
    assert not await lists.wake()

    # A robot's tag comes, is looked at for another reason, and goes before the next list.
    await account.call("add_tags_to_resource", "tag it", **arn, Tags=[{"Key": "robot", "Value": "1"}])
    await cloud.observe(target)
    await account.call("remove_tags_from_resource", "untag it", **arn, TagKeys=["robot"])
    assert await lists.wake()
    await cloud.observe(target)
    assert not await lists.wake()

    # Another resource of that name has seen less: it is woken though this one saw the change.
    neighbour = replace(target, owner=replace(OURS, identity="uid-2"))
    await cloud.observe(neighbour)
    await account.call("add_tags_to_resource", "tag it", **arn, Tags=[{"Key": "robot", "Value": "2"}])
    await cloud.observe(target)
    assert await lists.wake()
    # Each difference wakes once.
    assert not await lists.wake()
    await cloud.observe(neighbour)
    assert not await lists.wake()


async def test_a_list_says_whose_everything_is_that_was_let_go_included(account: AwsAccount, simulator: Served) -> None:
    cloud, owner = RdsInstances(account), replace(OURS, claim="fedcba9876543210", namespace_uid="shop-uid")
    target = Target("fl-let-go", SPEC, owner, "hash")
    fence = Fence(until=time.monotonic() + 60, leads=lambda: True, monotonic=time.monotonic)
    await cloud.create(target, Credential("app", "Sufficient-1"), fence)
    seen = await cloud.observe(target)
    assert isinstance(seen, Present)
    await cloud.release(target, seen.observed, fence)

    assert (await cloud.observe_all()).owners["fl-let-go"] == owner
    control(simulator, "POST", "behaviour", {"list_without_tags": ["*"]})
    try:
        # An answer without tags says nothing about owners: what was known stays.
        assert (await cloud.observe_all()).owners["fl-let-go"] == owner
        assert "fl-let-go" not in (await RdsInstances(account).observe_all()).owners
    finally:
        control(simulator, "POST", "behaviour", {"list_without_tags": []})
