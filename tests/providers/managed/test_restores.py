"""A lost database is restored by consent, from a backup of its own, under its name: once, and never as an empty one."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from providers.external.client import Fence, Operation, Target
from providers.external.credential import Credential
from runtime.errors import Blocked, Transient
from runtime.objects import Key
from tests.providers.gates import KilledError
from tests.providers.managed.test_asynchronous import LateCloud, ready
from tests.providers.toy import ToyParameters
from tests.providers.world import World

KEPT = ("backup-2", "backup-1")


async def _lost(cloud: LateCloud, *, kept: tuple[str, ...] = KEPT) -> World:
    world = await ready(cloud)
    cloud.own_backups[world.external_name] = kept
    await world.lose()
    cloud.calls.clear()
    return world


@pytest.mark.parametrize("consent", ["restore=backup-9", "restore=backup-1,restore=backup-2"])
async def test_name_of_no_backup_is_refused_with_those_that_there_are(consent: str) -> None:
    world = await _lost(cloud := LateCloud(slow=1))
    # Not even where an empty one was agreed to as well.
    world.annotate(consent=f"{consent},recreate=incarnation-1")
    await world.passes(3)
    assert (world.reason("Ready"), cloud.calls) == ("DatabaseLost", [])
    assert "backup-2, backup-1" in world.condition()["message"]
    assert ("backup-9 is no backup of it" in world.condition()["message"]) is ("9" in consent)


async def test_backups_that_cannot_be_listed_are_waited_for() -> None:
    world = await _lost(cloud := LateCloud(slow=1))
    world.annotate(consent="restore=backup-1")
    cloud.faults = [("restorable", Transient("no answer"), False)]
    await world.step()
    assert cloud.calls == []
    await world.step()
    assert cloud.calls == ["restore backup-1"]


class Failing(LateCloud):
    """Fails creates before or after their effect, or by a crash of the process."""

    error: BaseException | None = None
    after = False

    async def create(self, target: Target[ToyParameters], credential: Credential, fence: Fence) -> Operation | None:
        if self.error is not None and not self.after:
            raise self.error
        answer = await super().create(target, credential, fence)
        if self.error is not None:
            raise self.error
        return answer


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("error", [KilledError(), Transient("no answer"), Blocked("QuotaExceeded", "full")])
@pytest.mark.parametrize("dropped", [False, True], ids=["the consent stays", "the consent is dropped"])
async def test_restore_that_was_interrupted_goes_on_and_nothing_empty_is_created(
    error: BaseException, *, after: bool, dropped: bool
) -> None:
    world = await _lost(cloud := Failing(slow=1))
    cloud.error, cloud.after = error, after
    world.annotate(consent="restore=backup-1")
    if isinstance(error, KilledError):
        with pytest.raises(KilledError):
            await world.step()
    else:
        await world.step()
    if dropped:
        world.annotate(consent="")
        with suppress(KilledError):
            await world.step()
    cloud.error = None
    # Another process, which remembers nothing.
    again = World(cloud, process="process-2", kube=world.kube, provider=world.provider)
    again.now = world.now + timedelta(minutes=5)
    await again.settle(most=60)

    assert {call for call in cloud.calls if not call.startswith("set_password")} == {"restore backup-1"}
    assert (again.reason("Ready"), again.reason()) == ("Available", "InSync")
    assert len(cloud.toys) == 1


async def test_restore_that_can_never_be_made_gives_way_to_another_backup_or_to_an_empty_database() -> None:
    for consent, call in (("restore=backup-2", "restore backup-2"), ("recreate=incarnation-1", "create")):
        cloud = Failing(slow=1)
        world = await _lost(cloud)
        cloud.error = Blocked("ReferenceNotFound", "there is no backup-1 to restore from")
        world.annotate(consent="restore=backup-1")
        await world.step()
        assert world.reason() == "ReferenceNotFound"
        cloud.error = None
        cloud.calls.clear()
        world.annotate(consent=consent)
        await world.settle(most=60)
        assert [made for made in cloud.calls if not made.startswith("set_password")] == [call]
        assert world.reason("Ready") == "Available"


async def test_restore_whose_status_is_lost_creates_nothing_empty() -> None:
    world = await _lost(cloud := Failing(slow=1))
    cloud.error = Blocked("QuotaExceeded", "full")
    world.annotate(consent="restore=backup-1")
    await world.step()
    cloud.error = None
    obj = world.kube.objects[world.kind.resource, Key("team", "db")]
    del obj["status"]
    obj["metadata"]["annotations"].pop("fairlead.dev/consent")
    await world.passes(5, timedelta(minutes=1))
    assert (world.reason("Ready"), cloud.calls) == ("DatabaseLost", [])


@pytest.mark.parametrize("obstacle", ["paused", "observed"])
async def test_paused_or_observed_database_is_not_restored(obstacle: str) -> None:
    world = await _lost(cloud := LateCloud(slow=1))
    world.annotate(consent="restore=backup-1")
    if obstacle == "paused":
        world.annotate(paused="true")
    else:
        world.ask(managementPolicy="Observe")
    await world.passes(3)
    assert cloud.calls == []


async def test_consent_to_restore_before_a_loss_restores_nothing_later() -> None:
    world = await ready(cloud := LateCloud(slow=1))
    cloud.own_backups[world.external_name] = KEPT
    world.annotate(consent="restore=backup-1")
    world.ask(size=11)
    await world.settle(most=40)
    cloud.calls.clear()
    await world.lose()
    assert cloud.calls == []
