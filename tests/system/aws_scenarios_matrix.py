"""What is expected of whoever runs databases on RDS, shown over the wire; facts come from RDS's own log and words."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from devcloud.aws.platform import ACCOUNT
from tests.support.api import ApiError, JsonObject
from tests.support.audit import WRITES, Match
from tests.support.aws import AWS_CONFIG, DB_PARAMETER_GROUP, NAMESPACE, PROVIDER, RDS_INSTANCE, Aws, instance
from tests.support.kinds import SECRET, condition, is_ready
from tests.support.rds_instance import Instance, actions
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

_SWEEPS, _LISTERS = 100, 4
_PLAIN_INSTANCE: dict[str, Any] = {"Engine": "postgres", "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20}
_LOGIN: dict[str, Any] = {"MasterUsername": "boss", "MasterUserPassword": "Sufficient-1"}


@asynccontextmanager
async def at_work(aws: Aws, *flags: str) -> AsyncIterator[None]:
    """Have AWS's provider at work, alone and only here."""
    provider = await aws.start_provider(*flags)
    try:
        await aws.system.until(AWS_CONFIG, "", "default", is_ready)
        yield
    finally:
        await provider.terminate()


async def started_at(orders: Instance) -> Any:
    """Return when the server behind the instance was started last."""
    async with await orders.login() as connection:
        cursor = await connection.execute("SELECT pg_postmaster_start_time()")
        return await cursor.fetchone()


async def growth_on_full_storage_restarts_nothing_while_a_class_waits(orders: Instance) -> None:
    await orders.create()
    began, since = await started_at(orders), await orders.aws.mark()
    await orders.edit(dbInstanceClass="db.t4g.small")
    await orders.until("WaitingForWindow")
    await orders.until_wire(lambda instance: "DBInstanceClass" in instance["PendingModifiedValues"])

    await orders.strike(status="storage-full")
    await orders.edit(allocatedStorage=40)
    assert "would also make what waits" in await orders.until_reason("DatabaseFailed")
    await orders.until_wire(lambda instance: instance["PendingModifiedValues"].get("AllocatedStorage") == 40)
    assert {call["params"]["ApplyImmediately"] for call in await orders.changes(since)} == {False}

    await orders.edit(dbInstanceClass="db.t4g.micro")
    await orders.until()
    instance = await orders.wire()
    assert (instance["DBInstanceClass"], instance["AllocatedStorage"]) == ("db.t4g.micro", 40)
    assert await started_at(orders) == began

    # RDS optimizes what grew for hours: tags go out, and storage waits.
    await orders.edit(allocatedStorage=60, tags={"team": "orders"})
    assert "storage-optimization" in await orders.until_reason("CloudBusy")
    await orders.until_wire(lambda instance: {"Key": "team", "Value": "orders"} in instance["TagList"])
    assert (await orders.wire())["AllocatedStorage"] == 40


async def a_deletion_while_it_is_being_made_is_never_lost(orders: Instance) -> None:
    await orders.system.create(RDS_INSTANCE, instance(orders.namespace, orders.name))
    await orders.until_seen(lambda obj: bool(obj.get("status", {}).get("externalName")))
    name, since = await orders.external(), await orders.aws.mark()
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    assert await orders.aws.instance(name) is None
    assert actions(await orders.changes(since)).count("CreateDBInstance") <= 1


async def what_a_person_stops_stays_stopped(orders: Instance) -> None:
    await orders.create()
    name, since = await orders.external(), await orders.aws.mark()
    await orders.aws.person("stop_db_instance", DBInstanceIdentifier=name)
    assert "start it" in await orders.until_reason("DatabaseStopped")
    await orders.edit(backupRetentionPeriod=5)
    await orders.until("DatabaseStopped")
    assert await orders.changes(since) == []
    await orders.aws.person("start_db_instance", DBInstanceIdentifier=name)
    await orders.until()
    assert actions(await orders.changes(since)) == ["ModifyDBInstance"]


async def what_a_person_deletes_and_makes_again_is_another_one(orders: Instance) -> None:
    await orders.create()
    instance, since = await orders.wire(), await orders.aws.mark()
    name = instance["DBInstanceIdentifier"]
    await orders.aws.person("delete_db_instance", DBInstanceIdentifier=name, SkipFinalSnapshot=True)
    assert "was not deleted by Fairlead" in await orders.until_reason("DatabaseLost")
    # Even with all of the former one's tags.
    await orders.aws.person(
        "create_db_instance", DBInstanceIdentifier=name, Tags=instance["TagList"], **_PLAIN_INSTANCE, **_LOGIN
    )
    assert instance["DbiResourceId"] in await orders.until_reason("Replaced")
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    assert await orders.aws.instance(name) is not None
    assert await orders.changes(since) == []


async def a_strangers_instance_is_named_observed_and_never_touched(orders: Instance) -> None:
    aws, name = orders.aws, f"legacy-{orders.name}"
    await aws.person("create_db_instance", DBInstanceIdentifier=name, **_PLAIN_INSTANCE, **_LOGIN)
    await aws.until(name, lambda instance: instance["DBInstanceStatus"] == "available")
    since, obj = await aws.mark(), instance(orders.namespace, orders.name, forProvider={"backupRetentionPeriod": 9})
    obj["metadata"]["annotations"] = {"fairlead.dev/external-name": name}
    await orders.system.create(RDS_INSTANCE, obj)
    assert "no owner's tag" in await orders.until_reason("NotOwned")
    await orders.patch({"spec": {"managementPolicy": "Observe"}})
    assert await orders.external() == name
    await orders.system.delete(RDS_INSTANCE, orders.namespace, orders.name)
    assert await orders.changes(since) == []
    assert await aws.instance(name) is not None


async def a_static_parameter_waits_for_a_restart_that_only_its_user_makes(orders: Instance) -> None:
    aws, path = orders.aws, DB_PARAMETER_GROUP.path(orders.namespace, orders.name)
    group = {"dbParameterGroupFamily": "postgres16", "parameters": {"max_connections": "100"}}
    spec = {"forProvider": group, "providerConfigRef": {"name": "default"}, "deletionPolicy": "Delete"}
    await orders.system.create(DB_PARAMETER_GROUP, DB_PARAMETER_GROUP.new(orders.namespace, orders.name, spec=spec))
    await orders.create(forProvider={"dbParameterGroupNameRef": {"name": orders.name}})
    began, since = await started_at(orders), await aws.mark()

    await orders.system.api.merge(path, {"spec": {"forProvider": {"parameters": {"max_connections": "50"}}}})
    assert "reboot" in await orders.until_reason("PendingRestart")
    assert (await started_at(orders), await orders.changes(since)) == (began, [])
    await aws.person("reboot_db_instance", DBInstanceIdentifier=await orders.external())
    await orders.until()
    assert await started_at(orders) != began


async def what_cannot_change_is_refused_with_the_way_out(orders: Instance) -> None:
    await orders.create()
    since = await orders.aws.mark()
    for field, value in {"masterUsername": "other", "dbName": "other", "allocatedStorage": 10}.items():
        with pytest.raises(ApiError, match=field):
            await orders.edit(**{field: value})
    assert await orders.changes(since) == []


async def a_field_that_is_nobodys_business_is_left(orders: Instance) -> None:
    await orders.create(ignoreFields=["backupRetentionPeriod"], forProvider={"backupRetentionPeriod": 7})
    since = await orders.aws.mark()
    await orders.strike(set={"BackupRetentionPeriod": 3, "AutoMinorVersionUpgrade": False})
    await orders.annotate(**{"reconcile-requested-at": "now"})
    await orders.until_seen(lambda obj: obj["status"].get("lastHandledReconcileAt") == "now")
    assert is_ready(await orders.system.api.get(orders.path))
    assert await orders.changes(since) == []


async def what_fails_for_ever_is_tried_ever_more_rarely(orders: Instance) -> None:
    await orders.create()
    name, since = await orders.external(), await orders.aws.mark()
    await orders.aws.fault("ModifyDBInstance", code="InternalFailure", status=500, times=None, identifier=name)
    await orders.edit(backupRetentionPeriod=9)
    # The fourth pause in a row takes four seconds at least; what is listed otherwise may have cut one of them short.
    tries = await eventually(lambda: _tries_until_a_pause(orders, since, 4), "a long pause", limit_s=120)
    assert {call["outcome"] for call in tries} == {"InternalFailure"}
    assert len(tries) <= 12
    # Reads follow the tries: two before each, one after it, and the list's.
    reads = [call for call in await orders.aws.calls(since, action="DescribeDBInstances") if call["identifier"] == name]
    assert len(reads) <= 4 * (len(tries) + 1)
    assert "unknown error" in str(condition(await orders.until("CloudUnreachable"), "Synced")["message"])
    await orders.aws.heal()
    await orders.annotate(**{"reconcile-requested-at": "now"})
    await orders.until()


async def _tries_until_a_pause(orders: Instance, since: int, seconds: float) -> list[JsonObject]:
    calls = await orders.changes(since)
    times = [datetime.fromisoformat(call["at"]) for call in calls]
    pauses = [(after - before).total_seconds() for before, after in pairwise(times)]
    return calls if max(pauses, default=0) >= seconds else []


LIVES = (
    what_fails_for_ever_is_tried_ever_more_rarely,
    growth_on_full_storage_restarts_nothing_while_a_class_waits,
    a_deletion_while_it_is_being_made_is_never_lost,
    what_a_person_stops_stays_stopped,
    what_a_person_deletes_and_makes_again_is_another_one,
    a_strangers_instance_is_named_observed_and_never_touched,
    a_static_parameter_waits_for_a_restart_that_only_its_user_makes,
    what_cannot_change_is_refused_with_the_way_out,
    a_field_that_is_nobodys_business_is_left,
)


async def test_lives_side_by_side(aws: Aws, namespace: str) -> None:
    async with at_work(aws), asyncio.TaskGroup() as group:
        for number, life in enumerate(LIVES):
            group.create_task(life(Instance(aws, namespace, f"life-{number}")), name=life.__name__)


_NEIGHBOUR = "210987654321"
_BUDGET, _PAUSE_S = 12, 5


async def test_a_throttled_account_waits_and_its_neighbour_goes_on(aws: Aws, namespace: str) -> None:
    key = {"aws_access_key_id": "AKIATHENEIGHBOURS000", "aws_secret_access_key": aws.secret_key}
    key_pair = {"access_key_id": key["aws_access_key_id"], "secret_access_key": aws.secret_key, "account": _NEIGHBOUR}
    await aws.control("POST", "keys", {**key_pair, "principal": "user/fairlead", "policy": None})
    await aws.system.create(SECRET, SECRET.new(NAMESPACE, "neighbour", stringData=key))
    credentials = {"source": "Secret", "secretRef": {"name": "neighbour"}}
    await aws.system.create(AWS_CONFIG, aws.config("neighbour", accountID=_NEIGHBOUR, credentials=credentials))
    throttled = [Instance(aws, namespace, f"throttled-{number}") for number in range(4)]
    neighbour = Instance(aws, namespace, "neighbour")
    async with at_work(aws):
        await asyncio.gather(
            *(resource.create() for resource in throttled), neighbour.create(providerConfigRef={"name": "neighbour"})
        )
        since = await aws.mark()
        await aws.behave(throttle={"read_per_s": 0.1, "write_per_s": 0.1, "burst": 1, "accounts": [ACCOUNT]})
        await asyncio.gather(*(resource.edit(backupRetentionPeriod=9) for resource in (*throttled, neighbour)))
        await neighbour.until()
        refused = await eventually(lambda: _refused(aws, since), "three clusters of refusals", limit_s=120)
        await aws.behave(throttle=None)
        await asyncio.gather(*(resource.until() for resource in throttled))

    assert {call["account"] for call in refused} == {ACCOUNT}
    # A refusal stops the whole account: between two bursts of its budget it is left alone.
    lasted = _seconds(datetime.fromisoformat(refused[0]["at"]), refused[-1])
    assert len(refused) <= _BUDGET * (lasted / _PAUSE_S + 2)
    for resource in (*throttled, neighbour):
        done = [call["action"] for call in await resource.changes(since) if call["outcome"] == "ok"]
        assert done == ["ModifyDBInstance"]


async def _refused(aws: Aws, since: int) -> list[JsonObject]:
    refused = [call for call in await aws.calls(since) if call["outcome"] == "Throttling"]
    first = datetime.fromisoformat(refused[0]["at"]) if refused else None
    return refused if first is not None and _seconds(first, refused[-1]) > 2 * _PAUSE_S else []


def _seconds(since: datetime, call: JsonObject) -> float:
    return (datetime.fromisoformat(call["at"]) - since).total_seconds()


async def test_a_teardown_ends_in_words_or_done_and_never_in_loss(aws: Aws, namespace: str) -> None:
    async with at_work(aws):
        await _tear_down(aws, namespace)


async def _tear_down(aws: Aws, namespace: str) -> None:
    crowded, full = Instance(aws, namespace, "crowded"), Instance(aws, namespace, "full")
    await asyncio.gather(*(resource.create(deletionPolicy="Snapshot") for resource in (crowded, full)))
    since = await aws.mark()
    await aws.behave(quotas={"snapshots": 0})
    await full.strike(status="storage-full")
    for resource in (crowded, full):
        await aws.system.api.delete(resource.path)
    assert "quota" in (await crowded.until_reason("BackupImpossible")).lower()
    sentence = await eventually(lambda: _refusal_of_full(full), "what stands in the way of the full one")
    assert await aws.instance(await full.external()) is not None
    assert await aws.instance(await crowded.external()) is not None
    assert [call for call in await aws.changes(since) if call["outcome"] == "ok"] == [], sentence

    await aws.behave(quotas={"snapshots": 100})
    await full.strike(status="available")
    for resource in (crowded, full):
        name = await resource.external()
        # Whose turn comes by itself may be gone already.
        with contextlib.suppress(ApiError):
            await resource.annotate(**{"reconcile-requested-at": "now"})
        await aws.system.api.until_gone(resource.path, limit_s=120)
        assert await _kept_of(aws, name) == ["available"]
        assert [call["action"] for call in await resource.changes(since) if call["outcome"] == "ok"] == [
            "DeleteDBInstance"
        ]


async def _refusal_of_full(full: Instance) -> str:
    synced = condition(await full.system.api.get(full.path), "Synced")
    message = str(synced["message"])
    return message if "storage" in message.lower() or "available state" in message else ""


async def _kept_of(aws: Aws, name: str) -> list[str]:
    try:
        listed = (await aws.person("describe_db_snapshots", DBInstanceIdentifier=name))["DBSnapshots"]
    except ClientError:
        return []
    return [snapshot["Status"] for snapshot in listed if snapshot["SnapshotType"] == "manual"]


async def test_100_sweeps_without_a_difference_write_nothing(aws: Aws, namespace: str) -> None:
    # An account is listed once a second at most for each ProviderConfig: five see as much in a fifth of the time.
    for number in range(_LISTERS):
        await aws.system.create(AWS_CONFIG, aws.config(f"lister-{number}"))
    await aws.person("create_db_instance", DBInstanceIdentifier="watched-by-many", **_PLAIN_INSTANCE, **_LOGIN)
    every = [Instance(aws, namespace, name) for name in ("upgraded", "grown", "spelled")]
    async with at_work(aws):
        # A ProviderConfig lists for those that use it alone.
        for number in range(_LISTERS):
            watcher = instance(namespace, f"watcher-{number}", config=f"lister-{number}", managementPolicy="Observe")
            watcher["metadata"]["annotations"] = {"fairlead.dev/external-name": "watched-by-many"}
            await aws.system.create(RDS_INSTANCE, watcher)
            await Instance(aws, namespace, f"watcher-{number}").until("NotOwned")
        await _stay_quiet(aws, *every)
    since = await aws.mark()
    async with at_work(aws):
        await eventually(lambda: _lists(aws, since, 5 * (_LISTERS + 1)), "lists after a start", limit_s=120)
    # A list shows all of them after the start, and nobody looks at one by itself.
    assert [await resource.describes(since) for resource in every] == [[], [], []]
    assert await aws.changes(since) == []


async def _stay_quiet(aws: Aws, upgraded: Instance, grown: Instance, spelled: Instance) -> None:
    spelling: dict[str, Any] = {
        "engineVersion": "16",
        "preferredMaintenanceWindow": "Sun:06:00-SUN:07:00",
        "vpcSecurityGroupIds": ["sg-0a1b2c3d4e5f60002", "sg-0a1b2c3d4e5f60001"],
        "enableCloudwatchLogsExports": ["upgrade", "postgresql"],
    }
    await asyncio.gather(
        upgraded.create(forProvider={"engineVersion": "16.3"}),
        grown.create(forProvider={"maxAllocatedStorage": 100}),
        spelled.create(forProvider=spelling),
    )
    await aws.person(
        "modify_db_instance",
        DBInstanceIdentifier=await upgraded.external(),
        EngineVersion="16.10",
        ApplyImmediately=True,
    )
    await grown.strike(autoscale=True)
    # RDS lands on more than was asked for.
    await spelled.edit(allocatedStorage=21)
    await upgraded.until_seen(lambda obj: obj["status"]["atProvider"]["engineVersion"] == "16.10")
    await grown.until_seen(lambda obj: obj["status"]["atProvider"]["allocatedStorage"] == 30)
    await spelled.until_seen(lambda obj: obj["status"]["atProvider"]["allocatedStorage"] == 22)
    left = [(await resource.until())["status"].get("drift", []) for resource in (upgraded, grown, spelled)]
    assert [[(row["path"], row["desired"], row["observed"], row["action"]) for row in drift] for drift in left] == [
        [("engineVersion", "16.3", "16.10", "Tolerated")],
        [("allocatedStorage", "20", "30", "Tolerated")],
        [("allocatedStorage", "21", "22", "Tolerated")],
    ]
    await aws.system.audit().until_quiet(Match(user=PROVIDER, verbs=WRITES), for_s=2)

    audit, since = aws.system.audit(), await aws.mark()
    lists = await eventually(lambda: _lists(aws, since, _SWEEPS), f"{_SWEEPS} sweeps", limit_s=240, every_s=1)
    assert len(lists) >= _SWEEPS
    assert await aws.changes(since) == []
    assert [
        request.resource
        for request in audit.requests(Match(user=PROVIDER, verbs=WRITES))
        if request.resource != "leases"
    ] == []
    for resource in (upgraded, grown, spelled):
        assert is_ready(await aws.system.api.get(resource.path))


async def _lists(aws: Aws, since: int, at_least: int) -> list[JsonObject]:
    calls = [call for call in await aws.calls(since, action="DescribeDBInstances") if not call["identifier"]]
    return calls if len(calls) >= at_least else []
