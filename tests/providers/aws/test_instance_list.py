"""Lists of RDS compared with observations of single instances: what wakes a resource, and what does not."""

from __future__ import annotations

import time
from dataclasses import replace

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount
from providers.aws.instances.client import instance_clients
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.observation import Present
from providers.external.ownership import Owner
from tests.support.simulator_control import control

NAME = "fl-looked-at"
OURS = Owner("home", "uid-1", "0123456789abcdef", "shop", "looked-at", "instance")
SPEC = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app")


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
