"""Instances through one account at a simulated RDS, and what is done about the states in which one is not available."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from devcloud.aws.server import Served
from providers.aws import INSTANCES
from providers.aws.account import AwsAccount
from providers.aws.instances import states
from providers.aws.instances.backups import InstanceBackups
from providers.aws.instances.client import InstanceClients, Seen, instance_clients
from providers.aws.instances.deletion import Deletion
from providers.aws.instances.final_snapshots import names_for, stem_of
from providers.aws.instances.translate import observed
from providers.aws.models import RDSInstanceParameters, RDSInstanceSpec
from providers.external.client import Target
from providers.external.cloud_api.refusals import AlreadyThere
from providers.external.credential import Credential
from providers.external.observation import Absent, Present
from providers.external.ownership import Owner
from providers.managed.decisions.decide_update import decide_update
from providers.managed.decisions.plan import Refuse, Update
from providers.managed.inputs import Inputs, Lifecycle, differences
from runtime.errors import Blocked, Terminal
from tests.providers.aws.test_translate import ANSWER, OWNER, TAGS, target
from tests.providers.gates import OPEN
from tests.providers.managed.test_decide import NOW, RECORDED
from tests.support.simulator_control import control
from tests.support.waiting import eventually

OURS = Owner("home", "uid-2", "0123456789abcdef", "shop", "orders", "instance")


SPEC = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app")


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


@dataclass
class Snapshots:
    """An account's snapshots, and how RDS answers a deletion; `taken` are the names of other instances' snapshots."""

    kept: list[dict[str, Any]] = field(default_factory=list)
    taken: tuple[str, ...] = ()
    refusal: Blocked | None = None
    finals: list[str] = field(default_factory=list)
    tags_copied: list[bool] = field(default_factory=list)

    async def pages(self, *_call: str, **_named: str) -> AsyncIterator[dict[str, Any]]:
        for snapshot in self.kept:
            yield snapshot

    async def call(self, operation: str, _action: str, **parameters: Any) -> dict[str, Any]:
        if operation == "modify_db_instance":
            self.tags_copied.append(parameters["CopyTagsToSnapshot"])
        if operation == "delete_db_instance":
            if self.refusal is not None:
                raise self.refusal
            self.finals.append(parameters.get("FinalDBSnapshotIdentifier", ""))
            if self.finals[-1] in self.taken:
                raise AlreadyThere("it is another's", code="DBSnapshotAlreadyExists")
        return {}

    async def delete(
        self,
        status: str = "available",
        *,
        copies: bool = True,
        wanted: bool | None = None,
        policy: Policy = Policy.SNAPSHOT,
    ) -> None:
        """Delete an instance of that status, which copies its tags or not, as the spec wants or not."""
        account: Any = self
        where = replace(target(copy_tags_to_snapshot=wanted), incarnation="db-ONE")
        seen = observed({**ANSWER, "DBInstanceStatus": status, "CopyTagsToSnapshot": copies}, TAGS, where)
        await Deletion(account, InstanceBackups(account)).delete(where, seen, policy, OPEN)


STEM = stem_of("fl-orders-aaaaaaaaaa", "db-ONE", None)


async def test_under_delete_there_is_no_final_snapshot() -> None:
    account = Snapshots()
    await account.delete(policy=Policy.DELETE)
    assert account.finals == [""]


async def test_final_snapshot_name_that_another_has_is_skipped() -> None:
    snapshots = Snapshots(taken=(STEM,))
    await snapshots.delete()
    assert snapshots.finals == [STEM, f"{STEM}-2"]

    all_of_them = Snapshots(taken=names_for(STEM, ()))
    with pytest.raises(Blocked, match="finalDBSnapshotIdentifierPrefix") as caught:
        await all_of_them.delete()
    assert (caught.value.reason, len(all_of_them.finals)) == ("BackupImpossible", 5)


@pytest.mark.parametrize(("copies", "wanted", "sent"), [(False, None, [True]), (True, None, []), (False, False, [])])
async def test_final_snapshot_has_the_tags_unless_the_spec_says_no(
    *, copies: bool, wanted: bool | None, sent: list[bool]
) -> None:
    account = Snapshots()
    await account.delete(copies=copies, wanted=wanted)
    assert (account.tags_copied, account.finals) == (sent, [STEM])


REFUSED = {
    "stopped": "start it",
    "storage-full": "raise storageGiB of the claim (allocatedStorage of the instance)",
    "inaccessible-encryption-credentials": "KMS key",
    "inaccessible-encryption-credentials-recoverable": "KMS key",
    "incompatible-parameters": "reboot it",
}


@pytest.mark.parametrize("status", REFUSED)
async def test_final_snapshot_that_the_state_does_not_allow_is_reported_with_the_way_out(status: str) -> None:
    with pytest.raises(Blocked) as caught:
        await Snapshots(refusal=Blocked("CloudBusy", "not now")).delete(status)

    assert caught.value.reason == "BackupImpossible"
    for words in (status, REFUSED[status], "deletion policy Delete or Orphan"):
        assert words in caught.value.message


async def test_refusal_for_a_state_that_passes_is_waited_for() -> None:
    with pytest.raises(Blocked) as caught:
        await Snapshots(refusal=Blocked("CloudBusy", "not now")).delete("backing-up")
    assert caught.value.reason == "CloudBusy"


async def test_final_snapshot_that_failed_is_named_with_the_way_out() -> None:
    final = {"DBSnapshotIdentifier": STEM, "Status": "failed"}
    account: Any = Snapshots(kept=[final])
    backups, leaving = InstanceBackups(account), replace(target(), incarnation="db-ONE", leaving=True)
    with pytest.raises(Blocked) as caught:
        await backups.latest(leaving)

    assert caught.value.reason == "BackupImpossible"
    for words in (STEM, "failed", "deletion policy Delete or Orphan"):
        assert words in caught.value.message
    for status, instance, latest in (
        ("creating", "db-ONE", ""),
        ("available", "db-ONE", STEM),
        ("available", "db-TWO", ""),
    ):
        final |= {"Status": status, "DbiResourceId": instance}
        assert await backups.latest(leaving) == latest


def _inputs(status: str, **spec: Any) -> tuple[Inputs[RDSInstanceParameters], Seen]:
    where = target(**spec)
    seen = observed({**ANSWER, "DBInstanceStatus": status}, TAGS, where)
    changes = differences(INSTANCES, RDSInstanceSpec(for_provider=where.spec), where, seen, {})
    external_ref = replace(RECORDED, incarnation="db-ONE")
    where = replace(where, owner=OWNER, address="rdsinstance/db -n team")
    return Inputs(
        where, Present(seen), external_ref, NOW, "spec-2", 2, Lifecycle(has_finalizer=True), changes=changes
    ), seen


def test_parameters_that_do_not_fit_are_left_by_another_group() -> None:
    inputs, seen = _inputs("incompatible-parameters", db_parameter_group_name="fitting")
    plan = decide_update(inputs, seen)
    assert isinstance(plan, Update)
    assert [change.shown for change in plan.changes] == ["dbParameterGroupName"]

    plan = decide_update(*_inputs("incompatible-parameters"))
    assert isinstance(plan, Refuse)
    assert plan.reason == "DatabaseFailed"
    assert "reboot it" in plan.message


@pytest.mark.parametrize("status", ["stopped", "failed", "incompatible-network", "storage-full", "incompatible-create"])
def test_unusable_state_has_a_remedy(status: str) -> None:
    assert states.remedy(status)
    assert not states.usable(status)


DEADLINES = {
    ("creating", False): timedelta(hours=1),
    ("creating", True): timedelta(hours=24),
    ("modifying", False): timedelta(minutes=90),
    ("what-nobody-knows", False): timedelta(hours=1),
    ("available", False): timedelta(minutes=10),
}


@pytest.mark.parametrize(("status", "restored"), DEADLINES)
def test_state_has_the_deadline_that_it_is_known_to_need(status: str, *, restored: bool) -> None:
    assert states.deadline(status, restored=restored) == DEADLINES[status, restored]
