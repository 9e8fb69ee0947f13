"""The queue of pending values as a property: whatever is asked in whatever order, RDS's own rules hold of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devcloud.aws.lifecycle import changes, creation, progress
from devcloud.aws.lifecycle.steps import Record
from devcloud.aws.state.model import NOTHING_PENDING, Endpoint, Subnet, SubnetGroup, Zone
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.work import Make

CREATED_AT = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # a Monday at noon: the windows of a new instance are far
WEEK = timedelta(days=7)
QUEUED = (
    "db_instance_class",
    "multi_az",
    "engine_version",
    "ca_certificate_identifier",
    "iam_database_authentication_enabled",
)
CERTIFICATES = st.sampled_from(["rds-ca-rsa2048-g1", "rds-ca-ecc384-g1"])
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "db_instance_class": st.sampled_from(["db.t4g.micro", "db.m6g.large", "db.r6g.large"]),
        "multi_az": st.booleans(),
        "ca_certificate_identifier": CERTIFICATES,
        "enable_iam_database_authentication": st.booleans(),
        "apply_immediately": st.booleans(),
    },
)


def _group() -> SubnetGroup:
    zones = [Zone(name=f"eu-west-1{letter}") for letter in "ab"]
    subnets = tuple(Subnet(subnet_identifier=zone.name, subnet_availability_zone=zone) for zone in zones)
    return SubnetGroup(
        db_subnet_group_name="default",
        db_subnet_group_description="d",
        vpc_id="vpc-1",
        subnets=subnets,
        db_subnet_group_arn="arn",
    )


def _moved(record: Record, now: datetime) -> Record:
    """Move a record on; the databases do all work at once."""
    while True:
        moved, _ = progress.advance(record, now, 1.0)
        assert moved is not None
        under = moved.under
        if under is None or under.work is None:
            return moved
        record = progress.work_done(moved, under.work, Endpoint(address="192.0.2.1", port=5432))


def _two_hours(record: Record, now: datetime) -> tuple[Record, datetime]:
    """Move a record on by two hours, in steps: what follows the databases' work begins when somebody looks."""
    for _ in range(8):
        now += timedelta(minutes=15)
        record = _moved(record, now)
    return record, now


def _created() -> Record:
    request = InstanceRequest(
        db_instance_class="db.t4g.micro",
        engine="postgres",
        allocated_storage=20,
        master_username="app_admin",
        backup_retention_period=0,
        auto_minor_version_upgrade=False,
    )
    resolved = creation.Resolved(
        identifier="db-1",
        arn="arn:aws:rds:eu-west-1:123456789012:db:db-1",
        resource_id="db-A",
        version="16.4",
        subnet_group=_group(),
        security_groups=("sg-1",),
        kms_key_id=None,
        password="Sufficient-1",
        now=CREATED_AT,
    )
    record = _moved(creation.record_of(request, resolved, Make()), CREATED_AT)
    return _moved(record, CREATED_AT + timedelta(hours=1))


def _value(request: dict[str, Any], name: str) -> Any:
    return request.get({"iam_database_authentication_enabled": "enable_iam_database_authentication"}.get(name, name))


@settings(max_examples=60, deadline=None)
@given(st.lists(REQUESTS, max_size=6))
def test_a_pending_value_is_the_last_requested_and_not_in_force_yet(requests: list[dict[str, Any]]) -> None:
    record, now = _created(), CREATED_AT + timedelta(hours=1)
    before = {name: getattr(record.shown, name) for name in QUEUED}
    wanted = dict(before)
    for request in requests:
        changed, reply = changes.modified(record, InstanceRequest(db_instance_identifier="db-1", **request))
        record = _moved(changed, now)
        wanted |= {name: value for name in QUEUED if (value := _value(request, name)) is not None}
        pending = reply.pending_modified_values
        # The reply shows the present, and beside it exactly what differs from it.
        assert {name: getattr(reply, name) for name in QUEUED} == before
        assert {name: getattr(pending, name) for name in QUEUED} == {
            name: None if wanted[name] == before[name] else wanted[name] for name in QUEUED
        }
        record, now = _two_hours(record, now)
        if request.get("apply_immediately"):
            before = dict(wanted)
        assert {name: getattr(record.shown, name) for name in QUEUED} == before
    # The window brings all the rest, with nothing left over.
    record, _ = _two_hours(record, now + WEEK)
    assert {name: getattr(record.shown, name) for name in QUEUED} == wanted
    assert record.shown.pending_modified_values == NOTHING_PENDING
    assert record.status == "available"


def test_a_jump_over_many_steps_ends_where_small_moves_end() -> None:
    first = _created()
    request = InstanceRequest(
        db_instance_identifier="db-1", db_instance_class="db.m6g.large", multi_az=True, apply_immediately=True
    )
    changed, _ = changes.modified(first, request)
    start = CREATED_AT + timedelta(hours=1)

    slowly = changed
    for minute in range(20):
        slowly = _moved(slowly, start + timedelta(minutes=minute))
    at_once = _moved(_moved(changed, start), start + timedelta(minutes=19))
    assert at_once.shown.db_instance_class == "db.m6g.large"
    assert slowly.shown == at_once.shown
