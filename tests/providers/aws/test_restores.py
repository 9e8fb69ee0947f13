"""What a new instance begins with: the data of its own namespace alone, and the calls that make it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from providers.aws.account import AwsAccount
from providers.aws.instances.create import call_for
from providers.aws.instances.restores import resolved
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.aws.tag_lists import tags_of
from providers.external.client import Target
from providers.external.credential import Credential
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal
from tests.support.waiting import eventually

OURS = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance", "shop-uid")
TIME = "2026-11-20T12:00:00Z"
Resolve = Callable[..., Awaitable[RestoreFrom | None]]


async def _instance(account: AwsAccount, name: str, owner: Owner) -> str:
    """Make an instance, wait until it is there, return its incarnation."""
    made = await account.call(
        "create_db_instance", f"make {name}", DBInstanceIdentifier=name, DBInstanceClass="db.t4g.micro",
        Engine="postgres", AllocatedStorage=20, MasterUsername="app", MasterUserPassword="Sufficient-1",
        BackupRetentionPeriod=7, CopyTagsToSnapshot=True, Tags=tags_of(owner),
    )  # fmt: skip
    await eventually(lambda: _is(account, name, "available"), f"{name} is available")
    return str(made["DBInstance"]["DbiResourceId"])


async def _is(account: AwsAccount, name: str, status: str) -> bool:
    answers = account.pages("describe_db_instances", "look", "DBInstances")
    states = {answer["DBInstanceIdentifier"]: answer["DBInstanceStatus"] async for answer in answers}
    return bool(states.get(name, "gone") == status)


async def _gone(account: AwsAccount, name: str, **parameters: Any) -> None:
    await account.call("delete_db_instance", f"delete {name}", DBInstanceIdentifier=name, **parameters)
    await eventually(lambda: _is(account, name, "gone"), f"{name} is gone")


ADDRESS = "rdsinstance/new -n shop"


@pytest.fixture
def resolve(account: AwsAccount) -> Resolve:
    async def of(source: RestoreFrom, *agreed: str) -> RestoreFrom | None:
        spec = RDSInstanceParameters(
            db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app", restore_from=source
        )
        owner = replace(OURS, identity="uid-2", claim="fedcba9876543210", name="new")
        return (
            await resolved(account, Target("fl-new", spec, owner, "hash", agreed=agreed, address=ADDRESS))
        ).spec.restore_from

    return of


def _claim(name: str, time: str | None = None) -> RestoreFrom:
    return RestoreFrom(point_in_time=PointInTime(source_claim=name, restore_time=time))


def _incarnation(incarnation: str, time: str | None = None) -> RestoreFrom:
    return RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id=incarnation, restore_time=time))


async def test_source_claim_resolves_to_what_is_kept_of_it(account: AwsAccount, resolve: Resolve) -> None:
    incarnation = await _instance(account, "fl-kept", replace(OURS, name="kept"))
    assert await resolve(_claim("kept", TIME)) == _incarnation(incarnation, TIME)

    await _gone(account, "fl-kept", SkipFinalSnapshot=True, DeleteAutomatedBackups=False)
    assert await resolve(_claim("kept")) == _incarnation(incarnation)


async def test_source_claim_resolves_to_its_final_snapshot(account: AwsAccount, resolve: Resolve) -> None:
    await _instance(account, "fl-final", replace(OURS, name="final"))
    final = {"FinalDBSnapshotIdentifier": "fl-final-orders", "SkipFinalSnapshot": False}
    await _gone(account, "fl-final", **final, DeleteAutomatedBackups=True)

    async def available() -> bool:
        answer = await account.call("describe_db_snapshots", "look", DBSnapshotIdentifier="fl-final-orders")
        return bool(answer["DBSnapshots"][0]["Status"] == "available")

    await eventually(available, "the final snapshot is available")
    assert await resolve(_claim("final")) == RestoreFrom(db_snapshot_identifier="fl-final-orders")
    with pytest.raises(Blocked, match="no backup of 2026-11-20"):
        await resolve(_claim("final", TIME))
    named = RestoreFrom(db_snapshot_identifier="fl-final-orders")
    assert await resolve(named) == named


async def test_final_snapshot_goes_before_backups_that_end_earlier(account: AwsAccount, resolve: Resolve) -> None:
    incarnation = await _instance(account, "fl-both", replace(OURS, name="both"))
    final = {"FinalDBSnapshotIdentifier": "fl-final-both", "SkipFinalSnapshot": False}
    await _gone(account, "fl-both", **final, DeleteAutomatedBackups=False)
    kept = await account.call("describe_db_instance_automated_backups", "look", DbiResourceId=incarnation)
    ends = kept["DBInstanceAutomatedBackups"][0]["RestoreWindow"]["LatestTime"]

    assert await resolve(_claim("both")) == RestoreFrom(db_snapshot_identifier="fl-final-both")
    # A snapshot is of one instant; any other one is in the backups.
    assert await resolve(_claim("both", TIME)) == _incarnation(incarnation, TIME)
    taken = (await account.call("describe_db_snapshots", "look", DBSnapshotIdentifier="fl-final-both"))["DBSnapshots"]
    assert ends < taken[0]["SnapshotCreateTime"]


async def test_data_of_another_namespace_needs_the_platforms_consent(account: AwsAccount, resolve: Resolve) -> None:
    theirs = await _instance(
        account, "fl-theirs", replace(OURS, namespace="bank", name="money", namespace_uid="bank-uid")
    )
    by_name = RestoreFrom(point_in_time=PointInTime(source_db_instance_identifier="fl-theirs"))

    with pytest.raises(Blocked, match="claim money"):
        await resolve(_claim("money"))
    for source in (by_name, _incarnation(theirs)):
        with pytest.raises(Terminal, match="allowAdoption") as caught:
            await resolve(source)
        assert caught.value.reason == "AdoptionRefused"

    account.config = msgspec.structs.replace(account.config, allow_adoption=True)
    assert await resolve(by_name) == by_name
    # A claim is never one of another namespace, whatever is allowed.
    with pytest.raises(Blocked, match="claim money"):
        await resolve(_claim("money"))


@pytest.mark.parametrize(
    "source",
    [RestoreFrom(db_snapshot_identifier="nothing"), _incarnation("db-NOTHING"), _claim("nothing")],
    ids=["a snapshot", "an incarnation", "a claim"],
)
async def test_missing_source_is_waited_for(resolve: Resolve, source: RestoreFrom) -> None:
    with pytest.raises(Blocked, match=r"(?i)nothing") as caught:
        await resolve(source)

    assert caught.value.reason == "ReferenceNotFound"


async def test_login_that_a_restore_would_not_keep_is_refused(account: AwsAccount) -> None:
    await _instance(account, "fl-login", replace(OURS, name="login"))
    spec = RDSInstanceParameters(
        db_instance_class="db.t4g.micro", allocated_storage=20, master_username="other", restore_from=_claim("login")
    )

    with pytest.raises(Terminal, match="the login of instance fl-login is app, and a restore keeps it") as caught:
        await resolved(account, Target("fl-new", spec, OURS, "hash"))

    assert caught.value.reason == "InvalidValue"


@pytest.mark.parametrize("uid", ["former-uid", ""], ids=["of a former namespace", "of before the tag"])
async def test_namespace_of_the_same_name_is_not_the_owner(account: AwsAccount, resolve: Resolve, uid: str) -> None:
    name = f"recycled-{uid or 'none'}"
    incarnation = await _instance(account, f"fl-{name}", replace(OURS, name=name, namespace_uid=uid))
    for source in (_claim(name), _incarnation(incarnation)):
        with pytest.raises(
            Terminal, match=f"`kubectl annotate {ADDRESS} fairlead.dev/consent=restoreFrom={incarnation}`"
        ) as caught:
            await resolve(source)
        assert caught.value.reason == "AdoptionRefused"
    assert await resolve(_claim(name), incarnation) == _incarnation(incarnation)

    final = {"FinalDBSnapshotIdentifier": f"final-{name}", "SkipFinalSnapshot": False}
    await _gone(account, f"fl-{name}", **final, DeleteAutomatedBackups=True)
    await eventually(lambda: _is_available(account, f"final-{name}"), "the final snapshot is available")
    kept = RestoreFrom(db_snapshot_identifier=f"final-{name}")
    for source in (_claim(name), kept):
        with pytest.raises(Terminal, match=f"consent=restoreFrom=final-{name}"):
            await resolve(source)
        assert await resolve(source, f"final-{name}") == kept
    for spelt in (f"FINAL-{name}".upper(), f"arn:aws:rds:eu-west-1:123456789012:snapshot:final-{name}"):
        with pytest.raises((Terminal, Blocked), match=r"(?i)final"):
            await resolve(RestoreFrom(db_snapshot_identifier=spelt))
    # For a backup that is named by itself the ProviderConfig may agree; a claim's name names no backup.
    account.config = msgspec.structs.replace(account.config, allow_adoption=True)
    assert await resolve(kept) == kept
    with pytest.raises(Terminal, match="another one, or not recorded"):
        await resolve(_claim(name))


async def test_source_that_is_proven_to_be_of_the_namespace_goes_before_a_newer_one(
    account: AwsAccount, resolve: Resolve
) -> None:
    incarnation = await _instance(account, "fl-mine", replace(OURS, name="both-of-one-name"))
    await _gone(account, "fl-mine", SkipFinalSnapshot=True, DeleteAutomatedBackups=False)
    await _instance(account, "fl-former", replace(OURS, name="both-of-one-name", namespace_uid="former-uid"))

    assert await resolve(_claim("both-of-one-name")) == _incarnation(incarnation)


async def _is_available(account: AwsAccount, snapshot: str) -> bool:
    answer = await account.call("describe_db_snapshots", "look", DBSnapshotIdentifier=snapshot)
    return bool(answer["DBSnapshots"][0]["Status"] == "available")


async def test_database_of_a_claim_with_two_is_restored_from_its_own(account: AwsAccount, resolve: Resolve) -> None:
    incarnation = await _instance(account, "fl-two-a", replace(OURS, name="two"))
    await _instance(account, "fl-two-b", replace(OURS, name="two", resource="reports"))
    assert await resolve(_claim("two")) == _incarnation(incarnation)

    await _instance(account, "fl-others-a", replace(OURS, name="others", resource="primary"))
    await _instance(account, "fl-others-b", replace(OURS, name="others", resource="reports"))
    with pytest.raises(Terminal, match="several resources of claim others are kept: primary, reports") as caught:
        await resolve(_claim("others"))
    assert caught.value.reason == "InvalidValue"


async def test_only_database_of_a_claim_is_found_under_another_resource_name(
    account: AwsAccount, resolve: Resolve
) -> None:
    incarnation = await _instance(account, "fl-only", replace(OURS, name="only", resource="formerly"))
    assert await resolve(_claim("only")) == _incarnation(incarnation)


OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance", "shop-uid")
PASSWORD = "Sufficient-1"
SNAPSHOT = RestoreFrom(db_snapshot_identifier="kept")
INSTANT = RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id="db-ONE", restore_time="2026-11-20T12:00:00Z"))
LATEST = RestoreFrom(point_in_time=PointInTime(source_db_instance_identifier="fl-source"))


def _call_for(source: RestoreFrom | None, **spec: Any) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = {"db_instance_class": "db.t4g.micro", "allocated_storage": 20, "master_username": "app"}
    parameters = RDSInstanceParameters(**fields, restore_from=source, **spec)
    return call_for(Target("fl-orders", parameters, OWNER, "hash"), Credential("app", PASSWORD))


@pytest.mark.parametrize(
    "source", [None, SNAPSHOT, INSTANT, LATEST], ids=["nothing", "a snapshot", "an instant", "the latest instant"]
)
def test_create_call_carries_the_tags_of_the_owner_and_a_password_for_a_new_instance_alone(
    source: RestoreFrom | None,
) -> None:
    _, parameters = _call_for(source, tags={"team": "orders"})

    assert {tag["Key"]: tag["Value"] for tag in parameters["Tags"]} == {
        **{tag["Key"]: tag["Value"] for tag in tags_of(OWNER)},
        "team": "orders",
    }
    assert parameters["CopyTagsToSnapshot"] is True
    assert _call_for(source, copy_tags_to_snapshot=False)[1]["CopyTagsToSnapshot"] is False
    assert (parameters.get("MasterUserPassword") == PASSWORD) is (source is None)
    assert ("MasterUsername" in parameters) is (source is None)
    assert (PASSWORD in str(parameters)) is (source is None)


def test_source_has_its_operation_name_and_parameters() -> None:
    operation, parameters = _call_for(None)
    assert (operation, parameters["DBInstanceIdentifier"]) == ("create_db_instance", "fl-orders")

    operation, parameters = _call_for(SNAPSHOT)
    assert operation == "restore_db_instance_from_db_snapshot"
    assert (parameters["DBInstanceIdentifier"], parameters["DBSnapshotIdentifier"]) == ("fl-orders", "kept")

    operation, parameters = _call_for(INSTANT)
    assert operation == "restore_db_instance_to_point_in_time"
    assert parameters["TargetDBInstanceIdentifier"] == "fl-orders"
    assert parameters["SourceDbiResourceId"] == "db-ONE"
    assert parameters["RestoreTime"] == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert {"DBInstanceIdentifier", "UseLatestRestorableTime"}.isdisjoint(parameters)

    _, parameters = _call_for(LATEST)
    assert (parameters["SourceDBInstanceIdentifier"], parameters["UseLatestRestorableTime"]) == ("fl-source", True)
    assert "RestoreTime" not in parameters


def test_lists_and_settings_are_sent_as_the_sdk_takes_them() -> None:
    parameters = _call_for(None, vpc_security_group_ids=("sg-1", "sg-2"), multi_az=True, backup_retention_period=9)[1]

    assert parameters["VpcSecurityGroupIds"] == ["sg-1", "sg-2"]
    assert (parameters["MultiAZ"], parameters["BackupRetentionPeriod"]) == (True, 9)
    assert "Iops" not in parameters
    # A restore takes the storage, the login and the backups of its source.
    restored = _call_for(SNAPSHOT, vpc_security_group_ids=("sg-1",), backup_retention_period=9)[1]
    assert restored["VpcSecurityGroupIds"] == ["sg-1"]
    assert {"AllocatedStorage", "BackupRetentionPeriod"}.isdisjoint(restored)
