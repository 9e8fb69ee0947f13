"""Instances through one account, over the wire, at a simulated RDS."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from apis.teardown import Policy
from devcloud.aws.server import Served
from providers.aws.account import AwsAccount
from providers.aws.instances.client import InstanceClients, Seen, instance_clients
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Target
from providers.external.credential import Credential
from providers.external.observation import Absent, Present
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal
from tests.providers.gates import OPEN
from tests.support.simulator_control import control
from tests.support.waiting import eventually

OURS = Owner("home", "uid-2", "0123456789abcdef", "shop", "orders", "instance")


SPEC = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app")


def _calls(simulator: Served, action: str) -> int:
    return sum(call["action"] == action for call in control(simulator, "GET", "audit?since=0"))


async def made(account: AwsAccount, name: str) -> tuple[InstanceClients, Target[RDSInstanceParameters], Seen]:
    """Make an instance and return it as it is once it is available, with a target that has recorded it."""
    cloud, target = instance_clients(account), Target(name, SPEC, replace(OURS, claim=name), "hash")
    await cloud.external.create(target, Credential("app", "Sufficient-1"), OPEN)
    return await _available(cloud, target)


async def _available(
    cloud: InstanceClients, target: Target[RDSInstanceParameters]
) -> tuple[InstanceClients, Target[RDSInstanceParameters], Seen]:
    async def available() -> Seen | None:
        seen = await cloud.external.observe(target)
        return seen.observed if isinstance(seen, Present) and seen.observed.state == "available" else None

    observed = await eventually(available, f"{target.name} is available")
    return cloud, replace(target, incarnation=observed.incarnation), observed


async def test_renamed_instance_is_never_absent(account: AwsAccount) -> None:
    cloud, target, _ = await made(account, "fl-before")
    renaming: dict[str, Any] = {
        "DBInstanceIdentifier": "fl-before",
        "NewDBInstanceIdentifier": "fl-after",
        "ApplyImmediately": True,
    }
    await account.call("modify_db_instance", "rename it", **renaming)
    following = replace(target, name="fl-after")
    await _available(cloud, replace(following, incarnation=""))

    for leaving in (False, True):
        with pytest.raises(Blocked, match="is called fl-after now") as caught:
            await cloud.external.observe(replace(target, leaving=leaving))
        assert caught.value.reason == "DatabaseRenamed"
        assert "fairlead.dev/external-name=fl-after`" in caught.value.message
    assert isinstance(await cloud.external.observe(following), Present)


async def test_absence_is_believed_of_the_right_account_alone(account: AwsAccount) -> None:
    cloud = instance_clients(account)
    recorded = Target("fl-nobody", SPEC, OURS, "hash", incarnation="db-NOBODY")
    assert await cloud.external.observe(recorded) == Absent()

    account.id = "999999999999"
    with pytest.raises(Terminal) as caught:
        await cloud.external.observe(recorded)
    assert caught.value.reason == "AccountChanged"


@pytest.mark.parametrize("others", [1, 5])
async def test_final_snapshot_name_that_another_has_is_skipped(
    account: AwsAccount, simulator: Served, others: int
) -> None:
    await made(account, f"fl-other-{others}")
    cloud, target, seen = await made(account, f"fl-ending-{others}")
    stem = f"fl-final-{target.name}-{hashlib.sha256(seen.incarnation.encode()).hexdigest()[:8]}"
    for number in range(others):
        name = stem if number == 0 else f"{stem}-{number + 1}"
        await account.call(
            "create_db_snapshot", "take it", DBSnapshotIdentifier=name, DBInstanceIdentifier=f"fl-other-{others}"
        )
        await eventually(lambda: _snapshot_is_there(account, f"fl-other-{others}"), "the snapshot is available")
    before = _calls(simulator, "DeleteDBInstance")

    if others == 5:
        with pytest.raises(Blocked, match="finalDBSnapshotIdentifierPrefix") as caught:
            await cloud.external.delete(target, seen, Policy.SNAPSHOT, OPEN)
        assert caught.value.reason == "BackupImpossible"
        assert isinstance(await cloud.external.observe(target), Present)
    else:
        await cloud.external.delete(target, seen, Policy.SNAPSHOT, OPEN)
        leaving = replace(target, leaving=True)
        assert await eventually(lambda: cloud.backups.latest(leaving), "its final snapshot is there") == f"{stem}-2"
    assert _calls(simulator, "DeleteDBInstance") - before == (5 if others == 5 else 2)


async def _snapshot_is_there(account: AwsAccount, name: str) -> bool:
    answer = await account.call("describe_db_snapshots", "look", DBInstanceIdentifier=name)
    return all(snapshot["Status"] == "available" for snapshot in answer["DBSnapshots"])


async def test_password_that_secrets_manager_took_over_is_seen_and_taken_back(account: AwsAccount) -> None:
    cloud, target, seen = await made(account, "fl-kept-elsewhere")
    assert seen.password_elsewhere is False
    await account.call(
        "modify_db_instance", "hand it over", DBInstanceIdentifier=target.name, ManageMasterUserPassword=True,
        ApplyImmediately=True,
    )  # fmt: skip

    async def kept_elsewhere(*, expected: bool) -> Seen | None:
        observation = await cloud.external.observe(target)
        assert isinstance(observation, Present)
        settled = observation.observed.state == "available" and not observation.observed.password_pending
        return observation.observed if settled and observation.observed.password_elsewhere is expected else None

    seen = await eventually(lambda: kept_elsewhere(expected=True), "another keeper has the password")
    await cloud.logins.set(target, seen, Credential("app", "Sufficient-3"), OPEN)
    await eventually(lambda: kept_elsewhere(expected=False), "the password is Fairlead's again")


async def test_observations_that_hang_hold_up_no_other_one(account: AwsAccount, simulator: Served) -> None:
    cloud, target, _ = await made(account, "fl-answering")
    hanging: dict[str, Any] = {"action": "DescribeDBInstances", "kind": "hang", "after_effect": False, "times": None}
    hanging["identifier"] = "fl-hanging-*"
    control(simulator, "POST", "faults", hanging)
    observations = [
        asyncio.create_task(cloud.external.observe(Target(f"fl-hanging-{number}", SPEC, OURS, "hash")))
        for number in range(8)
    ]
    try:
        await eventually(lambda: _hung(simulator, len(observations)), "all of them hang at once", limit_s=10)
        seen = await cloud.external.observe(target)
    finally:
        control(simulator, "DELETE", "faults")
        for observation in observations:
            observation.cancel()
        await asyncio.gather(*observations, return_exceptions=True)
    assert isinstance(seen, Present)


async def _hung(simulator: Served, count: int) -> bool:
    await asyncio.sleep(0)
    hung = [call for call in control(simulator, "GET", "audit?since=0") if call["outcome"] == "hung"]
    return len(hung) >= count


async def test_list_has_the_owner_of_each_instance_released_or_not(account: AwsAccount, simulator: Served) -> None:
    cloud, owner = instance_clients(account), replace(OURS, claim="fedcba9876543210", namespace_uid="shop-uid")
    target = Target("fl-let-go", SPEC, owner, "hash")
    await cloud.external.create(target, Credential("app", "Sufficient-1"), OPEN)
    seen = await cloud.external.observe(target)
    assert isinstance(seen, Present)
    await cloud.external.release(target, seen.observed, OPEN)

    assert (await cloud.account.list()).owners["fl-let-go"] == owner
    control(simulator, "POST", "behaviour", {"list_without_tags": ["*"]})
    try:
        # An answer without tags says nothing about owners: what was known stays.
        assert (await cloud.account.list()).owners["fl-let-go"] == owner
        assert "fl-let-go" not in (await instance_clients(account).account.list()).owners
    finally:
        control(simulator, "POST", "behaviour", {"list_without_tags": []})
