"""What a new instance begins with: the data of its own namespace alone, and the calls that make it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from providers.aws.instances.create import call_for
from providers.aws.instances.restores import own_backups, resolved
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.aws.tag_lists import tags_of
from providers.external.client import Target
from providers.external.cloud_api.refusals import NotThere
from providers.external.credential import Credential
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal

OURS = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance", "shop-uid")
THEIRS = replace(OURS, namespace="bank", namespace_uid="bank-uid")
FORMER, UNTAGGED = replace(OURS, namespace_uid="former-uid"), replace(OURS, namespace_uid="")
STORE, CACHE = replace(OURS, resource="store"), replace(OURS, resource="cache")
TIME = "2026-11-20T12:00:00Z"
Answer = dict[str, Any]


def _kept(owner: Owner, **fields: Any) -> Answer:
    return {"MasterUsername": "app", "TagList": tags_of(owner), **fields}


def _living(owner: Owner = OURS, *, name: str = "A", day: int = 1, **fields: Any) -> Answer:
    at = f"2026-11-0{day}T00:00:00Z"
    names = {"DBInstanceIdentifier": f"fl-{name.lower()}", "DbiResourceId": f"db-{name}", "InstanceCreateTime": at}
    return _kept(owner, **names, **fields)


def _backup(owner: Owner = OURS, *, name: str = "A", day: int = 5) -> Answer:
    """Return automated backups that end at a day."""
    return _living(owner, name=name, RestoreWindow={"LatestTime": f"2026-11-0{day}T00:00:00Z"})


def _snapshot(owner: Owner = OURS, *, name: str = "final", day: int = 6, **fields: Any) -> Answer:
    at = f"2026-11-0{day}T00:00:00Z"
    names = {"DBSnapshotIdentifier": name, "SnapshotCreateTime": at, "Status": "available", "SnapshotType": "manual"}
    return _kept(owner, **names | fields)


@dataclass
class Account:
    """An account that holds these."""

    kept: tuple[Answer, ...]
    allow_adoption: bool = False

    @property
    def config(self) -> Account:
        return self

    async def pages(self, operation: str, _action: str, _key: str) -> AsyncIterator[Answer]:
        for answer in self.kept:
            if operation == _list_of(answer):
                yield answer

    async def call(self, operation: str, _action: str, **named: str) -> Answer:
        answers = [answer async for answer in self.pages(operation, "", "") if named.items() <= answer.items()]
        if not answers:
            raise NotThere(f"there is no {named}", code="DBSnapshotNotFound")
        return {"DBSnapshots": answers}


def _list_of(answer: Answer) -> str:
    if "DBSnapshotIdentifier" in answer:
        return "describe_db_snapshots"
    return "describe_db_instance_automated_backups" if "RestoreWindow" in answer else "describe_db_instances"


def _instant(name: str = "A", time: str | None = None) -> RestoreFrom:
    return RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id=f"db-{name}", restore_time=time))


CLAIM = RestoreFrom(point_in_time=PointInTime(source_claim="orders"))
THEN = RestoreFrom(point_in_time=PointInTime(source_claim="orders", restore_time=TIME))
BY_NAME = RestoreFrom(point_in_time=PointInTime(source_db_instance_identifier="fl-a"))
FINAL = RestoreFrom(db_snapshot_identifier="final")
MISSING, REFUSED, WRONG = "ReferenceNotFound", "AdoptionRefused", "InvalidValue"


@dataclass(frozen=True)
class Case:
    """A source, what is kept, and what it resolves to: a source that RDS knows, or a reason."""

    source: RestoreFrom
    kept: tuple[Answer, ...]
    outcome: RestoreFrom | str
    agreed: tuple[str, ...] = field(default=())
    allows: bool = False
    says: str = ""


CASES = {
    "the living instance of a claim": Case(CLAIM, (_living(), _snapshot()), _instant()),
    "the instance at a time": Case(THEN, (_living(),), _instant("A", TIME)),
    "of a deleted one its automated backups": Case(CLAIM, (_backup(),), _instant()),
    "of a deleted one its final snapshot": Case(CLAIM, (_snapshot(),), FINAL),
    "which has no other time": Case(THEN, (_snapshot(),), MISSING, says="no backup of 2026-11-20"),
    "a snapshot that ends later than the backups": Case(CLAIM, (_backup(), _snapshot()), FINAL),
    "any other time is in the backups": Case(THEN, (_backup(), _snapshot()), _instant("A", TIME)),
    "backups that end later than a snapshot": Case(CLAIM, (_backup(day=7), _snapshot()), _instant()),
    "a copy is of the time of its source": Case(
        CLAIM, (_backup(), _snapshot(day=9, OriginalSnapshotCreateTime="2026-11-01T00:00:00Z")), _instant()
    ),
    "no snapshot that is being taken": Case(CLAIM, (_snapshot(Status="creating"),), MISSING),
    "no automated snapshot": Case(CLAIM, (_snapshot(SnapshotType="automated"),), MISSING),
    "a snapshot that is named": Case(FINAL, (_snapshot(),), FINAL),
    "a snapshot that there is not": Case(FINAL, (), MISSING),
    "an incarnation that there is not": Case(_instant(), (), MISSING, says="db-A"),
    "a claim of which nothing is kept": Case(CLAIM, (_living(replace(OURS, name="other")),), MISSING, says="orders"),
    "no claim of another namespace": Case(CLAIM, (_living(THEIRS),), MISSING, allows=True, says="orders"),
    "no claim of another installation": Case(CLAIM, (_living(replace(OURS, installation="another")),), MISSING),
    "no instance of another namespace by its name": Case(BY_NAME, (_living(THEIRS),), REFUSED, says="allowAdoption"),
    "nor by its incarnation": Case(_instant(), (_living(THEIRS),), REFUSED),
    "but where adoption is allowed": Case(BY_NAME, (_living(THEIRS),), BY_NAME, allows=True),
    "no snapshot of a former namespace": Case(FINAL, (_snapshot(FORMER),), REFUSED, says="consent=restoreFrom=final`"),
    "but by consent": Case(FINAL, (_snapshot(FORMER),), FINAL, agreed=("final",)),
    "no claim of a former namespace": Case(CLAIM, (_living(FORMER),), REFUSED, says="consent=restoreFrom=db-A`"),
    "nor of before the tag": Case(CLAIM, (_living(UNTAGGED),), REFUSED, allows=True, says="or not recorded"),
    "a claim of a former namespace by consent": Case(CLAIM, (_living(FORMER),), _instant(), agreed=("db-A",)),
    "what is proven before what is newer": Case(CLAIM, (_backup(), _living(FORMER, name="B", day=3)), _instant()),
    "of two resources that of its name": Case(CLAIM, (_living(), _living(STORE, name="B", day=2)), _instant()),
    "none of two of other names": Case(
        CLAIM, (_living(CACHE), _living(STORE, name="B")), WRONG, says="of claim orders are kept: cache, store"
    ),
    "the only one under another name": Case(CLAIM, (_living(STORE),), _instant()),
    "no other login": Case(
        CLAIM, (_living(MasterUsername="boss"),), WRONG, says="login of instance fl-a is boss, and a restore keeps it"
    ),
}


def _target(source: RestoreFrom | None, *agreed: str) -> Target[RDSInstanceParameters]:
    spec = RDSInstanceParameters(
        db_instance_class="db.t4g.micro", allocated_storage=20, master_username="app", restore_from=source
    )
    owner = replace(OURS, identity="uid-2", claim="fedcba9876543210", name="new")
    return Target("fl-new", spec, owner, "hash", agreed=agreed, address="rdsinstance/new -n shop")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_source_of_a_restore(case: Case) -> None:
    account: Any = Account(case.kept, case.allows)
    if isinstance(case.outcome, RestoreFrom):
        target = await resolved(account, _target(case.source, *case.agreed))
        assert target.spec.restore_from == case.outcome
        return
    with pytest.raises((Blocked, Terminal), match=case.says or None) as caught:
        await resolved(account, _target(case.source, *case.agreed))
    assert getattr(caught.value, "reason", "") == case.outcome


async def test_own_backups_are_those_of_this_resource_and_namespace_the_newest_first() -> None:
    kept = (_snapshot(), _snapshot(FORMER, name="former"), _snapshot(THEIRS, name="theirs"), _backup(day=8))
    account: Any = Account((*kept, _snapshot(name="later", Status="creating")))

    assert await own_backups(account, replace(_target(None), owner=OURS)) == ("db-A", "final")


OWNER = OURS
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
