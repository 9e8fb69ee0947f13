"""States in which an instance is not simply available: what is done about them, and what is reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from devcloud.aws.server import Served
from providers.aws import INSTANCES
from providers.aws.account import AwsAccount
from providers.aws.instances import states
from providers.aws.instances.client import InstanceClients, Seen
from providers.aws.instances.translate import observed
from providers.aws.models import RDSInstanceParameters, RDSInstanceSpec
from providers.external.client import Target
from providers.external.observation import Present
from providers.managed.decisions.decide_update import decide_update
from providers.managed.decisions.plan import Refuse, Update
from providers.managed.inputs import Inputs, Lifecycle, differences
from runtime.errors import Blocked
from tests.providers.aws.test_instances import made
from tests.providers.aws.test_translate import ANSWER, TAGS, target
from tests.providers.aws.test_translate import OWNER as OURS
from tests.providers.gates import OPEN
from tests.providers.managed.test_decide import NOW, RECORDED
from tests.support.simulator_control import control
from tests.support.waiting import eventually

Where = Target[RDSInstanceParameters]


async def _seen(cloud: InstanceClients, target: Where, status: str) -> Seen | None:
    observation = await cloud.external.observe(target)
    return observation.observed if isinstance(observation, Present) and observation.observed.state == status else None


async def _steered(simulator: Served, cloud: InstanceClients, target: Where, status: str) -> Seen:
    control(simulator, "POST", f"instances/{target.name}", {"status": status})
    return await eventually(lambda: _seen(cloud, target, status), f"{target.name} is {status}")


REFUSED = {
    "stopped": "start it",
    "storage-full": "raise storageGiB of the claim (allocatedStorage of the instance)",
    "inaccessible-encryption-credentials": "KMS key",
    "inaccessible-encryption-credentials-recoverable": "KMS key",
    "incompatible-parameters": "reboot it",
}


@pytest.mark.parametrize("status", REFUSED)
async def test_final_snapshot_that_the_state_does_not_allow_is_reported_with_the_way_out(
    account: AwsAccount, simulator: Served, status: str
) -> None:
    cloud, target, _ = await made(account, f"fl-{status[:30]}-{len(status)}")
    seen = await _steered(simulator, cloud, target, status)

    with pytest.raises(Blocked) as caught:
        await cloud.external.delete(target, seen, Policy.SNAPSHOT, OPEN)

    assert caught.value.reason == "BackupImpossible"
    for words in (status, REFUSED[status], "deletion policy Delete or Orphan"):
        assert words in caught.value.message
    assert await _seen(cloud, target, status)


async def test_refusal_for_a_state_that_passes_is_waited_for(account: AwsAccount, simulator: Served) -> None:
    cloud, target, seen = await made(account, "fl-passing")
    await _steered(simulator, cloud, target, "backing-up")

    with pytest.raises(Blocked) as caught:
        await cloud.external.delete(target, seen, Policy.SNAPSHOT, OPEN)

    assert caught.value.reason == "CloudBusy"


async def test_final_snapshot_that_failed_is_named_with_the_way_out(account: AwsAccount, simulator: Served) -> None:
    cloud, target, seen = await made(account, "fl-failing")
    await cloud.external.delete(target, seen, Policy.SNAPSHOT, OPEN)
    leaving = replace(target, leaving=True)
    final = await eventually(lambda: cloud.backups.latest(leaving), "the final snapshot is available")
    control(simulator, "POST", f"snapshots/{final}", {"status": "failed"})

    with pytest.raises(Blocked) as caught:
        await cloud.backups.latest(leaving)

    assert caught.value.reason == "BackupImpossible"
    for words in (final, "failed", "deletion policy Delete or Orphan"):
        assert words in caught.value.message
    control(simulator, "POST", f"snapshots/{final}", {"status": "creating"})
    assert await cloud.backups.latest(leaving) == ""


def _inputs(status: str, **spec: Any) -> tuple[Inputs[RDSInstanceParameters], Seen]:
    where = target(**spec)
    seen = observed({**ANSWER, "DBInstanceStatus": status}, TAGS, where)
    changes = differences(INSTANCES, RDSInstanceSpec(for_provider=where.spec), where, seen, {})
    external_ref = replace(RECORDED, incarnation="db-ONE")
    where = replace(where, owner=OURS, address="rdsinstance/db -n team")
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
    ("backing-up", False): timedelta(hours=24),
    ("modifying", False): timedelta(minutes=90),
    ("upgrading", False): timedelta(minutes=90),
    ("storage-optimization", False): timedelta(hours=24),
    ("storage-initialization", False): timedelta(hours=24),
    ("deleting", False): timedelta(hours=24),
    ("rebooting", False): timedelta(minutes=30),
    ("resetting-master-credentials", False): timedelta(minutes=30),
    ("what-nobody-knows", False): timedelta(hours=1),
    ("available", False): timedelta(minutes=10),
    ("", False): timedelta(minutes=10),
}


@pytest.mark.parametrize(("status", "restored"), DEADLINES)
def test_state_has_the_deadline_that_it_is_known_to_need(status: str, *, restored: bool) -> None:
    assert states.deadline(status, restored=restored) == DEADLINES[status, restored]
