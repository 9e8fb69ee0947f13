"""Of deletions: what the policy says and no more; a backup is seen before anything is given up."""

from __future__ import annotations

from datetime import timedelta

from runtime.objects import CRDS
from tests.providers.adapter import Adapter, Property, clause
from tests.providers.gates import KilledError

_MOST_WRITES = 60


@clause(Property.LAG, Property.LOGINS)
async def deletion_of_what_was_just_made_ends_once_the_clouds_record_shows_it(cloud: Adapter) -> None:
    name = await cloud.create()
    cloud.lag(timedelta(minutes=20))
    cloud.world.delete()
    await cloud.pass_for(timedelta(seconds=90))
    assert (cloud.world.get() is not None, list(cloud.objects())) == (True, [name])
    cloud.delete_by_hand(name)
    deleted_at = cloud.world.now
    await cloud.until_gone()
    assert (cloud.objects(), cloud.world.now - deleted_at < timedelta(minutes=4)) == ({}, True)


@clause()
async def policy_delete_deletes_the_object_and_its_credentials(cloud: Adapter) -> None:
    await cloud.create()
    cloud.world.delete()
    await cloud.until_gone()
    assert (cloud.objects(), cloud.secret()) == ({}, None)


@clause()
async def policy_orphan_leaves_the_object_and_its_credentials(cloud: Adapter) -> None:
    name = await cloud.create(policy="Orphan")
    cloud.world.delete()
    await cloud.until_gone()
    assert [write for write in cloud.writes() if write.startswith("delete ")] == []
    assert list(cloud.objects()) == [name]
    assert (cloud.secret() is not None) == cloud.has_logins


@clause()
async def deletion_of_the_crd_detaches_and_calls_nothing(cloud: Adapter) -> None:
    name = await cloud.create()
    kind = cloud.world.kind.resource
    cloud.kube.remove(CRDS, f"{kind.plural}.{kind.group}", namespace="")
    cloud.world.delete()
    await cloud.until_gone()
    assert (cloud.writes(), list(cloud.objects())) == ([], [name])


@clause()
async def deletion_is_finished_wherever_the_process_is_killed(cloud: Adapter) -> None:
    for writes in range(1, _MOST_WRITES):
        name = f"db{writes}"
        await cloud.create(name)
        cloud.world.delete(name)
        cloud.gate.kill_after(writes)
        killed = False
        try:
            await cloud.until_gone(name)
        except KilledError:
            killed = True
            cloud.restart()
            await cloud.until_gone(name)
        assert (writes, cloud.objects(), cloud.secret(name)) == (writes, {}, None)
        if not killed:
            return
    raise AssertionError(f"a deletion makes {_MOST_WRITES} writes and more")


@clause()
async def deletion_without_an_answer_heals_by_itself(cloud: Adapter) -> None:
    await cloud.create()
    cloud.fail("delete", "unanswered")
    cloud.world.delete()
    await cloud.until_gone()
    assert cloud.objects() == {}


@clause(Property.OPERATIONS)
async def deletion_of_an_object_that_is_being_made_is_never_lost(cloud: Adapter) -> None:
    cloud.ask()
    await cloud.until(lambda: "operation" in cloud.status())
    cloud.world.delete()
    await cloud.until_gone()
    assert (cloud.creates(), cloud.objects()) == (1, {})


@clause(Property.BACKUPS)
async def policy_snapshot_keeps_a_backup_before_the_finalizer_goes(cloud: Adapter) -> None:
    await cloud.create(policy="Snapshot")
    cloud.world.delete()
    for _ in range(100):
        if cloud.world.get() is None:
            break
        await cloud.step()
        assert cloud.objects() or cloud.backups(), "it is gone without a backup"
    assert (cloud.world.get(), cloud.objects(), len(cloud.backups())) == (None, {}, 1)


@clause(Property.BACKUPS)
async def policy_snapshot_holds_where_no_backup_is_made(cloud: Adapter) -> None:
    await cloud.create(policy="Snapshot")
    cloud.refuse_backups()
    cloud.world.delete()
    await cloud.pass_for(timedelta(minutes=15))
    assert cloud.world.get() is not None
    assert (len(cloud.objects()), cloud.backups()) == (1, ())


@clause(Property.CHILDREN)
async def child_stays_with_its_server_unless_the_policy_is_delete(cloud: Adapter) -> None:
    for policy in cloud.policies:
        name = await cloud.create(policy.lower(), policy=policy)
        cloud.world.delete(policy.lower())
        await cloud.until_gone(policy.lower())
        assert (policy, cloud.writes(), name in cloud.objects()) == (policy, [], True)
