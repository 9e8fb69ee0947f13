"""What a new instance may begin with: the data of its own namespace, and no other's without the platform's word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from providers.aws.account import AwsAccount
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.aws.names import tags_of
from providers.aws.sources import resolved
from providers.external.client import Target
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
    found = account.pages("describe_db_instances", "look", "DBInstances")
    states = {one["DBInstanceIdentifier"]: one["DBInstanceStatus"] async for one in found}
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


def _incarnation(found: str, time: str | None = None) -> RestoreFrom:
    return RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id=found, restore_time=time))


async def test_a_claim_stands_for_what_is_kept_of_it(account: AwsAccount, resolve: Resolve) -> None:
    born = await _instance(account, "fl-kept", replace(OURS, name="kept"))
    assert await resolve(_claim("kept", TIME)) == _incarnation(born, TIME)

    await _gone(account, "fl-kept", SkipFinalSnapshot=True, DeleteAutomatedBackups=False)
    assert await resolve(_claim("kept")) == _incarnation(born)


async def test_a_claim_of_which_a_snapshot_is_kept(account: AwsAccount, resolve: Resolve) -> None:
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


async def test_of_a_final_snapshot_and_backups_that_end_earlier_the_snapshot_has_the_last_rows(
    account: AwsAccount, resolve: Resolve
) -> None:
    born = await _instance(account, "fl-both", replace(OURS, name="both"))
    final = {"FinalDBSnapshotIdentifier": "fl-final-both", "SkipFinalSnapshot": False}
    await _gone(account, "fl-both", **final, DeleteAutomatedBackups=False)
    kept = await account.call("describe_db_instance_automated_backups", "look", DbiResourceId=born)
    ends = kept["DBInstanceAutomatedBackups"][0]["RestoreWindow"]["LatestTime"]

    assert await resolve(_claim("both")) == RestoreFrom(db_snapshot_identifier="fl-final-both")
    # A snapshot is of one instant; any other one is in the backups.
    assert await resolve(_claim("both", TIME)) == _incarnation(born, TIME)
    taken = (await account.call("describe_db_snapshots", "look", DBSnapshotIdentifier="fl-final-both"))["DBSnapshots"]
    assert ends < taken[0]["SnapshotCreateTime"]


async def test_another_namespaces_data_need_the_platforms_word(account: AwsAccount, resolve: Resolve) -> None:
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
async def test_what_is_not_there_is_waited_for(resolve: Resolve, source: RestoreFrom) -> None:
    with pytest.raises(Blocked, match=r"(?i)nothing") as caught:
        await resolve(source)

    assert caught.value.reason == "ReferenceNotFound"


async def test_a_login_that_a_restore_would_not_keep_is_refused(account: AwsAccount) -> None:
    await _instance(account, "fl-login", replace(OURS, name="login"))
    spec = RDSInstanceParameters(
        db_instance_class="db.t4g.micro", allocated_storage=20, master_username="other", restore_from=_claim("login")
    )

    with pytest.raises(Terminal, match="the login of instance fl-login is app, and a restore keeps it") as caught:
        await resolved(account, Target("fl-new", spec, OURS, "hash"))

    assert caught.value.reason == "InvalidValue"


@pytest.mark.parametrize("uid", ["former-uid", ""], ids=["of a former namespace", "of before the tag"])
async def test_a_namespaces_name_is_not_its_owner(account: AwsAccount, resolve: Resolve, uid: str) -> None:
    name = f"recycled-{uid or 'none'}"
    born = await _instance(account, f"fl-{name}", replace(OURS, name=name, namespace_uid=uid))
    for source in (_claim(name), _incarnation(born)):
        with pytest.raises(
            Terminal, match=f"`kubectl annotate {ADDRESS} fairlead.dev/consent=restoreFrom={born}`"
        ) as caught:
            await resolve(source)
        assert caught.value.reason == "AdoptionRefused"
    assert await resolve(_claim(name), born) == _incarnation(born)

    final = {"FinalDBSnapshotIdentifier": f"final-{name}", "SkipFinalSnapshot": False}
    await _gone(account, f"fl-{name}", **final, DeleteAutomatedBackups=True)
    await eventually(lambda: _is_available(account, f"final-{name}"), "the final snapshot is available")
    kept = RestoreFrom(db_snapshot_identifier=f"final-{name}")
    for source in (_claim(name), kept):
        with pytest.raises(Terminal, match=f"consent=restoreFrom=final-{name}"):
            await resolve(source)
        assert await resolve(source, f"final-{name}") == kept
    # For a backup that is named by itself the ProviderConfig may agree; a claim's name names no backup.
    account.config = msgspec.structs.replace(account.config, allow_adoption=True)
    assert await resolve(kept) == kept
    with pytest.raises(Terminal, match="another one, or not recorded"):
        await resolve(_claim(name))


async def test_what_is_proven_to_be_of_the_namespace_goes_before_what_is_newer(
    account: AwsAccount, resolve: Resolve
) -> None:
    born = await _instance(account, "fl-mine", replace(OURS, name="both-of-one-name"))
    await _gone(account, "fl-mine", SkipFinalSnapshot=True, DeleteAutomatedBackups=False)
    await _instance(account, "fl-former", replace(OURS, name="both-of-one-name", namespace_uid="former-uid"))

    assert await resolve(_claim("both-of-one-name")) == _incarnation(born)


async def _is_available(account: AwsAccount, snapshot: str) -> bool:
    answer = await account.call("describe_db_snapshots", "look", DBSnapshotIdentifier=snapshot)
    return bool(answer["DBSnapshots"][0]["Status"] == "available")


async def test_of_a_claim_with_two_databases_each_is_restored_from_its_own(
    account: AwsAccount, resolve: Resolve
) -> None:
    born = await _instance(account, "fl-two-a", replace(OURS, name="two"))
    await _instance(account, "fl-two-b", replace(OURS, name="two", resource="reports"))
    assert await resolve(_claim("two")) == _incarnation(born)

    await _instance(account, "fl-others-a", replace(OURS, name="others", resource="primary"))
    await _instance(account, "fl-others-b", replace(OURS, name="others", resource="reports"))
    with pytest.raises(Terminal, match="several resources of claim others are kept: primary, reports") as caught:
        await resolve(_claim("others"))
    assert caught.value.reason == "InvalidValue"


async def test_the_only_database_of_a_claim_is_found_under_another_resources_name(
    account: AwsAccount, resolve: Resolve
) -> None:
    born = await _instance(account, "fl-only", replace(OURS, name="only", resource="formerly"))
    assert await resolve(_claim("only")) == _incarnation(born)
