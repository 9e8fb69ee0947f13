"""An RDSInstance over the wire: made, changed, orphaned, deleted, all by the provider's own process."""

import asyncio

import pytest

from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, Aws, instance
from tests.support.kinds import condition, is_ready
from tests.support.rds_instance import Instance, actions

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def an_edit_that_restarts_waits_in_the_queue_and_a_reverted_one_leaves_it(orders: Instance) -> None:
    await orders.create()
    since = await orders.aws.mark()
    await orders.edit(dbInstanceClass="db.t4g.small")
    held = await orders.until("WaitingForWindow")
    assert condition(held, "Ready")["status"] == "True"
    held = await orders.system.until(
        RDS_INSTANCE,
        orders.namespace,
        orders.name,
        lambda obj: bool(obj["status"]["atProvider"].get("pendingModifiedValues")),
    )
    assert held["status"]["atProvider"]["pendingModifiedValues"] == {"DBInstanceClass": "db.t4g.small"}
    await orders.edit(dbInstanceClass="db.t4g.micro")
    await orders.until()
    calls = await orders.changes(since)
    assert actions(calls) == ["ModifyDBInstance", "ModifyDBInstance"]
    assert [call["params"]["ApplyImmediately"] for call in calls] == [False, False]
    await orders.patch(
        {
            "spec": {
                "maintenance": {"apply": "Immediate"},
                "forProvider": {"dbInstanceClass": "db.t4g.small", "allocatedStorage": 30},
            }
        }
    )
    await orders.until()
    instance = await orders.aws.instance(await orders.external())
    assert instance is not None
    assert (instance["DBInstanceClass"], instance["AllocatedStorage"]) == ("db.t4g.small", 30)
    assert actions(await orders.changes(since)) == ["ModifyDBInstance"] * 3


async def a_password_whose_login_is_required_is_published_after_it(orders: Instance) -> None:
    strict = f"strict-{orders.namespace}"
    await orders.system.create(AWS_CONFIG, orders.aws.config(strict, loginCheck="Required"))
    await orders.aws.control("POST", "network", {"unreachable": [f"fl-{orders.name}-*"]})
    await orders.system.create(RDS_INSTANCE, instance(orders.namespace, orders.name, config=strict))
    held = await orders.until_seen(lambda obj: "no login proves it" in condition(obj, "Synced").get("message", ""))
    assert (condition(held, "Ready")["status"], held["status"].get("connection")) == ("False", None)
    await orders.aws.control("POST", "network", {"unreachable": []})
    # What was out of reach is tried again a minute later, and by a new connection at once.
    await orders.system.edit(AWS_CONFIG, "", strict, {"spec": {"limits": {"instances": 50}}})
    await orders.until()
    async with await orders.login() as connection:
        await connection.execute("SELECT 1")


async def a_deletion_leaves_a_final_snapshot_that_holds_the_data(orders: Instance) -> None:
    await orders.create(deletionPolicy="Snapshot")
    async with await orders.login() as connection:
        await connection.execute("CREATE TABLE harvest AS SELECT 42 AS bushels")
    name, since = await orders.external(), await orders.aws.mark()
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    listed = (await orders.aws.person("describe_db_snapshots", DBInstanceIdentifier=name))["DBSnapshots"]
    (final,) = (snapshot for snapshot in listed if snapshot["SnapshotType"] == "manual")
    assert final["Status"] == "available"
    assert actions(await orders.changes(since)) == ["DeleteDBInstance"]
    assert await orders.aws.instance(name) is None
    heir = Instance(orders.aws, orders.namespace, f"{orders.name}-heir")
    await heir.create(forProvider={"restoreFrom": {"dbSnapshotIdentifier": final["DBSnapshotIdentifier"]}})
    assert actions(await heir.changes(since)) == ["RestoreDBInstanceFromDBSnapshot", "ModifyDBInstance"]
    stray = Instance(orders.aws, orders.namespace, f"{orders.name}-stray")
    source = {"dbSnapshotIdentifier": final["DBSnapshotIdentifier"]}
    obj = instance(stray.namespace, stray.name, forProvider={"restoreFrom": source, "dbName": "elsewhere"})
    await stray.system.create(RDS_INSTANCE, obj)
    refused = await stray.until("InvalidValue")
    assert "has no database elsewhere" in condition(refused, "Synced")["message"]
    assert "connection" not in refused["status"]
    async with await heir.login() as connection:
        cursor = await connection.execute("SELECT bushels FROM harvest")
        assert await cursor.fetchall() == [(42,)]


async def a_renamed_instance_is_named_and_never_released(orders: Instance) -> None:
    await orders.create(deletionPolicy="Snapshot")
    name, since = await orders.external(), await orders.aws.mark()
    await orders.aws.person(
        "modify_db_instance", DBInstanceIdentifier=name, NewDBInstanceIdentifier="by-hand", ApplyImmediately=True
    )
    renamed = await orders.until("DatabaseRenamed")
    assert "is called by-hand now" in condition(renamed, "Synced")["message"]
    assert condition(renamed, "Ready")["status"] == "False"

    # It goes on under the name that it has now, where the platform says so.
    await orders.annotate(**{"external-name": "by-hand"})
    await orders.until()
    await orders.aws.person(
        "modify_db_instance", DBInstanceIdentifier="by-hand", NewDBInstanceIdentifier="again", ApplyImmediately=True
    )
    await orders.until("DatabaseRenamed")
    await orders.system.api.delete(RDS_INSTANCE.path(orders.namespace, orders.name))
    held = await orders.until("DatabaseRenamed")
    assert "is called again now" in condition(held, "Synced")["message"]
    for _ in range(2):
        await orders.until_looked_at_again("by-hand")
    assert await orders.aws.instance("again") is not None
    assert await orders.changes(since) == []

    await orders.aws.person(
        "modify_db_instance", DBInstanceIdentifier="again", NewDBInstanceIdentifier="by-hand", ApplyImmediately=True
    )
    await orders.look()
    await orders.aws.until_gone("by-hand", limit_s=180)
    await orders.system.api.until_gone(RDS_INSTANCE.path(orders.namespace, orders.name))


async def a_backup_of_a_former_namespace_is_restored_with_consent_alone(orders: Instance) -> None:
    await orders.create(deletionPolicy="Snapshot", forProvider={"deleteAutomatedBackups": True})
    async with await orders.login() as connection:
        await connection.execute("CREATE TABLE canary AS SELECT 'of the former tenant' AS word")
    name, since = await orders.external(), await orders.aws.mark()
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    listed = (await orders.aws.person("describe_db_snapshots", DBInstanceIdentifier=name))["DBSnapshots"]
    (final,) = (snapshot for snapshot in listed if snapshot["SnapshotType"] == "manual")
    uid = (await orders.system.api.get(f"/api/v1/namespaces/{orders.namespace}"))["metadata"]["uid"]
    assert {"Key": "fairlead-namespace-uid", "Value": uid} in final["TagList"]
    # The namespace was another one of that name when the snapshot was taken.
    former = [{"Key": "fairlead-namespace-uid", "Value": "another-uid"}]
    await orders.aws.person("add_tags_to_resource", ResourceName=final["DBSnapshotArn"], Tags=former)

    heir = Instance(orders.aws, orders.namespace, f"{orders.name}-heir")
    by_claim = {"restoreFrom": {"pointInTime": {"sourceClaim": orders.name}}}
    await heir.system.create(RDS_INSTANCE, instance(heir.namespace, heir.name, forProvider=by_claim))
    message = await heir.until_reason("AdoptionRefused")
    consent = f"restoreFrom={final['DBSnapshotIdentifier']}"
    assert f"fairlead.dev/consent={consent}" in message
    assert await heir.changes(since) == []

    await heir.annotate(consent=consent)
    restored = await heir.until()
    assert restored["status"]["usedConsents"] == [consent]
    async with await heir.login() as connection:
        cursor = await connection.execute("SELECT word FROM canary")
        assert await cursor.fetchall() == [("of the former tenant",)]


async def a_tag_that_the_spec_drops_goes_and_others_stay(orders: Instance) -> None:
    made = await orders.create(forProvider={"tags": {"team": "red", "cost": "1"}})
    assert made["status"]["appliedKeys"] == {"tags": ["cost", "team"]}
    arn, theirs = (await orders.wire())["DBInstanceArn"], {"Key": "theirs", "Value": "x"}
    await orders.aws.person("add_tags_to_resource", ResourceName=arn, Tags=[theirs])
    since = await orders.aws.mark()
    await orders.edit(tags={"cost": None})
    seen = await orders.until_seen(lambda obj: obj["status"].get("appliedKeys") == {"tags": ["team"]})
    assert is_ready(seen)
    kept = {tag["Key"]: tag["Value"] for tag in (await orders.wire())["TagList"]}
    assert {key: value for key, value in kept.items() if not key.startswith("fairlead-")} == {
        "team": "red", "theirs": "x",
    }  # fmt: skip
    changed = await orders.changes(since)
    assert [(call["action"], call["params"]["TagKeys"]) for call in changed] == [("RemoveTagsFromResource", ["cost"])]


async def what_a_person_queued_is_not_flushed(orders: Instance) -> None:
    await orders.create()
    name = await orders.external()
    await orders.aws.person("modify_db_instance", DBInstanceIdentifier=name, MultiAZ=True, ApplyImmediately=False)
    since = await orders.aws.mark()
    await orders.edit(allocatedStorage=40)
    held = await orders.until("PendingChangesInTheWay")
    assert "multiAZ" in condition(held, "Synced")["message"]
    instance = await orders.aws.until(name, lambda instance: "AllocatedStorage" in instance["PendingModifiedValues"])
    assert instance["MultiAZ"] is False
    assert [call["params"]["ApplyImmediately"] for call in await orders.changes(since)] == [False]
    await orders.edit(multiAZ=True)
    await orders.until()


async def states_that_take_no_change_are_waited_out_or_reported(orders: Instance) -> None:
    await orders.create()
    name, since = await orders.external(), await orders.aws.mark()
    await orders.aws.strike(name, status="rewiring-the-flux")
    await orders.edit(backupRetentionPeriod=5)
    held = await orders.until("CloudBusy")
    assert "rewiring-the-flux" in condition(held, "Synced")["message"]
    assert await orders.changes(since) == []
    await orders.aws.strike(name, status="storage-full")
    await orders.until("DatabaseFailed")
    await orders.edit(allocatedStorage=40)
    await orders.until()
    assert actions(await orders.changes(since))[0] == "ModifyDBInstance"
    # The end of a modification would write over the state.
    await orders.until_wire(lambda instance: instance["DBInstanceStatus"] == "available")
    await orders.aws.strike(name, status="stopped")
    assert condition(await orders.until("DatabaseStopped"), "Ready")["status"] == "False"
    await orders.aws.strike(name, status="available")
    await orders.until()


async def a_protected_instance_stays_until_its_protection_is_lifted(orders: Instance) -> None:
    await orders.create(forProvider={"deletionProtection": True})
    name = await orders.external()
    await orders.system.api.delete(RDS_INSTANCE.path(orders.namespace, orders.name))
    held = await orders.until("DeleteBlocked")
    assert "deletionProtection" in condition(held, "Synced")["message"]
    await orders.edit(deletionProtection=False)
    await orders.aws.until_gone(name)
    await orders.system.api.until_gone(RDS_INSTANCE.path(orders.namespace, orders.name))


async def an_orphan_stays_and_says_so_and_is_adopted(orders: Instance) -> None:
    await orders.create(deletionPolicy="Orphan")
    name = await orders.external()
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    orphan = await orders.aws.instance(name)
    assert orphan is not None
    assert "fairlead-released" in {tag["Key"] for tag in orphan["TagList"]}
    other = Instance(orders.aws, orders.namespace, "heir")
    obj = instance(orders.namespace, "heir", forProvider={"backupRetentionPeriod": 9})
    obj["metadata"]["annotations"] = {"fairlead.dev/external-name": name}
    await orders.system.edit(AWS_CONFIG, "", "default", {"spec": {"allowAdoption": True}})
    since = await orders.aws.mark()
    await orders.system.create(RDS_INSTANCE, obj)
    drift = (await other.until("NotOwned"))["status"]["drift"]
    assert ("backupRetentionPeriod", "9", "1", "Held") in {
        (entry["path"], entry["desired"], entry["observed"], entry["action"]) for entry in drift
    }
    assert await other.changes(since) == []
    await other.annotate(adopt=orphan["DbiResourceId"])
    await other.until("PasswordUnknown")
    await other.patch({"spec": {"passwordRotation": {"token": "1"}}})
    await other.until()


LIVES = (
    an_edit_that_restarts_waits_in_the_queue_and_a_reverted_one_leaves_it,
    a_password_whose_login_is_required_is_published_after_it,
    a_deletion_leaves_a_final_snapshot_that_holds_the_data,
    a_renamed_instance_is_named_and_never_released,
    a_backup_of_a_former_namespace_is_restored_with_consent_alone,
    a_tag_that_the_spec_drops_goes_and_others_stay,
    what_a_person_queued_is_not_flushed,
    states_that_take_no_change_are_waited_out_or_reported,
    a_protected_instance_stays_until_its_protection_is_lifted,
    an_orphan_stays_and_says_so_and_is_adopted,
)


async def test_many_lives_side_by_side(aws_at_work: Aws, namespace: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number, life in enumerate(LIVES):
            group.create_task(life(Instance(aws_at_work, namespace, f"life-{number}")), name=life.__name__)


@pytest.fixture
def orders(aws_at_work: Aws, namespace: str) -> Instance:
    return Instance(aws_at_work, namespace)


async def test_a_robot_that_strips_tags_is_named(orders: Instance) -> None:
    await orders.create()
    since = await orders.aws.mark()
    await orders.aws.behave(tag_robot={"strip": ["fairlead-*"], "every_s": 0.2})
    try:
        held = await orders.until("InvalidValue")
        assert "fairlead-installation" in condition(held, "Synced")["message"]
        assert set(actions(await orders.changes(since))) == {"AddTagsToResource"}
    finally:
        await orders.aws.behave(tag_robot=None)
    await orders.annotate(**{"reconcile-requested-at": "now"})
    await orders.until()


async def test_a_lost_answer_makes_one_and_a_session_that_is_over_unmakes_none(orders: Instance) -> None:
    since = await orders.aws.mark()
    await orders.aws.fault("CreateDBInstance", "drop", times=1, after_effect=True)
    await orders.create()
    assert actions(await orders.changes(since)) == ["CreateDBInstance"]
    await orders.aws.fault("DescribeDBInstances", code="ExpiredToken", status=403, times=None)
    try:
        await orders.annotate(**{"reconcile-requested-at": "1"})
        held = await orders.until("CredentialsInvalid")
    finally:
        await orders.aws.heal()
    assert condition(held, "Ready")["status"] == "True"
    await orders.annotate(**{"reconcile-requested-at": "2"})
    await orders.until()
    assert actions(await orders.changes(since)) == ["CreateDBInstance"]
