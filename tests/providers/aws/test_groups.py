"""Subnet groups and parameter groups at a simulated RDS; values of parameters as people and as RDS write them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis.teardown import Policy
from devcloud.aws.server import Served
from devcloud.postgres.server import Server
from providers.aws.account import AwsAccount
from providers.aws.groups import kinds
from providers.aws.groups.kinds import ParameterGroups, SubnetGroups
from providers.aws.groups.parameters import SWITCHES, UNIT_OF, as_rds_writes
from providers.aws.models import DBParameterGroupParameters, DBSubnetGroupParameters
from providers.aws.tag_lists import encoded_tags
from providers.external.client import Target
from providers.external.cloud_api.refusals import AlreadyThere
from providers.external.credential import Credential
from providers.external.diff import diff
from providers.external.observation import Absent, Change, Observed, Present
from providers.external.ownership import Owner
from runtime.errors import Blocked, Terminal
from tests.providers.gates import OPEN
from tests.support.simulator_control import control

SUBNETS = tuple(f"subnet-0a1b2c3d4e5f6000{zone}" for zone in "abc")
OTHER_NETWORK = ("subnet-0a1b2c3d4e5f6001a", "subnet-0a1b2c3d4e5f6001b")
OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "network")
NOBODY = Credential("", "")


def _sent(simulator: Served) -> list[str]:
    return [call["action"] for call in control(simulator, "GET", "audit?since=0") if call["mutating"]]


def _subnet_group(name: str, subnets: tuple[str, ...] = SUBNETS[:2], **fields: Any) -> Target[DBSubnetGroupParameters]:
    spec = DBSubnetGroupParameters(subnet_ids=subnets, **fields)
    return Target(name, spec, OWNER, "hash")


def _parameter_group(name: str, parameters: dict[str, str] | None, **fields: Any) -> Target[DBParameterGroupParameters]:
    spec = DBParameterGroupParameters(db_parameter_group_family="postgres16", parameters=parameters, **fields)
    return Target(name, spec, OWNER, "hash")


async def _subnets_of(cloud: SubnetGroups, wanted: Target[Any]) -> tuple[Observed[Any, Any], tuple[Change, ...]]:
    seen = await cloud.observe(wanted)
    assert isinstance(seen, Present)
    observed = seen.observed
    return observed, (*diff(wanted.spec, observed.spec), *kinds.SUBNET_GROUPS.invariants(wanted, observed))


async def _parameters_of(cloud: ParameterGroups, wanted: Target[Any]) -> tuple[Observed[Any, Any], tuple[Change, ...]]:
    seen = await cloud.observe(wanted)
    assert isinstance(seen, Present)
    observed = seen.observed
    return observed, (*diff(wanted.spec, observed.spec), *kinds.PARAMETER_GROUPS.invariants(wanted, observed))


async def test_subnet_group_is_created_changed_and_deleted(account: AwsAccount, simulator: Served) -> None:
    cloud = SubnetGroups(account)
    wanted = _subnet_group("fl-orders", tags={"team": "orders"})
    assert await cloud.observe(wanted) == Absent()

    await cloud.create(wanted, NOBODY, OPEN)
    observed, changes = await _subnets_of(cloud, wanted)
    assert changes == ()
    assert wanted.owner.owns(observed.owner)
    assert observed.incarnation.endswith(":subgrp:fl-orders")
    assert observed.at_provider["vpcId"].startswith("vpc-")

    watched = replace(wanted, spec=DBSubnetGroupParameters(), only_observed=True)
    assert (await _subnets_of(cloud, watched))[0].spec == observed.spec

    # What an interrupted create left is met again, and not made twice.
    await cloud.create(wanted, NOBODY, OPEN)
    with pytest.raises(AlreadyThere):
        await cloud.create(replace(wanted, owner=replace(OWNER, identity="uid-2")), NOBODY, OPEN)

    grown = _subnet_group("fl-orders", SUBNETS, db_subnet_group_description="of orders", tags={"team": "sales"})
    observed, changes = await _subnets_of(cloud, grown)
    assert [change.shown for change in changes] == ["dbSubnetGroupDescription", "subnetIds", "tags.team"]
    await cloud.update(grown, observed, changes, OPEN)
    observed, changes = await _subnets_of(cloud, grown)
    assert changes == ()
    assert "fl-orders" in (await cloud.list()).items
    assert await cloud.owners(["fl-orders", "gone"]) == {"fl-orders": OWNER}

    # A tag that the spec set and names no more goes; another's stays.
    await account.call(
        "add_tags_to_resource", "tag", ResourceName=observed.incarnation, Tags=encoded_tags({"theirs": "x"})
    )
    bare = _subnet_group("fl-orders", SUBNETS, db_subnet_group_description="of orders")
    observed, _ = await _subnets_of(cloud, bare)
    changes = diff(bare.spec, observed.spec, applied={"tags": ("team",)})
    assert [(change.shown, change.want) for change in changes] == [("tags.team", None)]
    await cloud.update(bare, observed, changes, OPEN)
    observed, _ = await _subnets_of(cloud, bare)
    assert observed.spec.tags == {"theirs": "x"}

    moved = _subnet_group("fl-orders", OTHER_NETWORK, db_subnet_group_description="of orders")
    with pytest.raises(Terminal, match="not in the VPC"):
        await cloud.update(moved, observed, diff(moved.spec, observed.spec), OPEN)

    await cloud.release(grown, observed, OPEN)
    released, _ = await _subnets_of(cloud, grown)
    assert "fairlead-released" in released.facts
    await cloud.adopt(grown, released, OPEN)
    assert "fairlead-released" not in (await _subnets_of(cloud, grown))[0].facts

    await cloud.delete(grown, observed, Policy.DELETE, OPEN)
    assert await cloud.observe(grown) == Absent()
    await cloud.delete(grown, observed, Policy.DELETE, OPEN)
    assert _sent(simulator).count("CreateDBSubnetGroup") == 3


async def test_lost_tag_is_put_back(account: AwsAccount) -> None:
    cloud, wanted = SubnetGroups(account), _subnet_group("fl-stripped")
    await cloud.create(wanted, NOBODY, OPEN)
    observed, _ = await _subnets_of(cloud, wanted)
    await account.call(
        "remove_tags_from_resource", "strip", ResourceName=observed.incarnation, TagKeys=["fairlead-claim"]
    )

    observed, changes = await _subnets_of(cloud, wanted)
    assert observed.owner is None
    assert [change.shown for change in changes] == ["tags.fairlead-claim"]
    await cloud.update(wanted, observed, changes, OPEN)
    assert (await _subnets_of(cloud, wanted))[1] == ()


async def test_subnets_of_a_single_zone_are_refused_with_the_message_of_rds(account: AwsAccount) -> None:
    with pytest.raises(Terminal, match="at least 2 AZs") as caught:
        await SubnetGroups(account).create(_subnet_group("fl-alone", SUBNETS[:1]), NOBODY, OPEN)

    assert caught.value.reason == "InvalidValue"


async def test_parameter_group_is_created_changed_and_deleted(account: AwsAccount, simulator: Served) -> None:
    cloud = ParameterGroups(account)
    # In PostgreSQL's own notation; static ones and more than one request takes are among them.
    wanted = _parameter_group(
        "fl-orders",
        {"work_mem": "64MB", "log_connections": "on", "max_connections": "200", "statement_timeout": "2min"},
    )
    await cloud.create(wanted, NOBODY, OPEN)
    observed, changes = await _parameters_of(cloud, wanted)
    assert changes == ()
    watched = replace(wanted, spec=DBParameterGroupParameters(), only_observed=True)
    assert (await _parameters_of(cloud, watched))[0].spec.db_parameter_group_family == "postgres16"
    assert observed.at_provider["parameters"] == {
        "work_mem": "65536",
        "log_connections": "1",
        "max_connections": "200",
        "statement_timeout": "120000",
    }
    assert observed.at_provider["pendingReboot"] == ["max_connections"]

    await cloud.create(wanted, NOBODY, OPEN)
    edited = _parameter_group("fl-orders", {"work_mem": "32MB", "max_connections": "200", "jit": "off"})
    observed, changes = await _parameters_of(cloud, edited)
    assert [(change.shown, change.want, change.have) for change in changes] == [
        ("parameters.jit", "off", None),
        ("parameters.log_connections", None, "1"),
        ("parameters.statement_timeout", None, "120000"),
        ("parameters.work_mem", "32MB", "65536"),
    ]
    await cloud.update(edited, observed, changes, OPEN)
    observed, changes = await _parameters_of(cloud, edited)
    assert changes == ()

    # A map that is not given is not managed.
    assert (await _parameters_of(cloud, _parameter_group("fl-orders", None)))[1] == ()
    await cloud.delete(edited, observed, Policy.DELETE, OPEN)
    assert await cloud.observe(edited) == Absent()
    assert _sent(simulator).count("ResetDBParameterGroup") == 1


async def test_parameters_go_in_requests_of_twenty(account: AwsAccount, simulator: Served) -> None:
    cloud = ParameterGroups(account)
    names = (
        "autovacuum_naptime checkpoint_timeout deadlock_timeout default_statistics_target lock_timeout log_temp_files"
        " idle_in_transaction_session_timeout log_connections log_disconnections log_lock_waits max_connections"
        " log_min_duration_statement logical_decoding_work_mem maintenance_work_mem max_parallel_workers max_wal_size"
        " max_parallel_workers_per_gather statement_timeout temp_buffers tcp_keepalives_idle work_mem"
    )
    switches = {"log_connections", "log_disconnections", "log_lock_waits"}
    wanted = _parameter_group("fl-many", {name: "1" if name in switches else "1024" for name in names.split()})
    before = _sent(simulator).count("ModifyDBParameterGroup")

    await cloud.create(wanted, NOBODY, OPEN)

    assert (await _parameters_of(cloud, wanted))[1] == ()
    assert _sent(simulator).count("ModifyDBParameterGroup") - before == 2


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"no_such_parameter": "1"}, "Could not find parameter with name: no_such_parameter"),
        ({"work_mem": "lots"}, "allowed values are"),
    ],
)
async def test_parameter_that_rds_refuses_is_named(account: AwsAccount, parameters: dict[str, str], says: str) -> None:
    wanted = _parameter_group(f"fl-{min(parameters).replace('_', '-')}", parameters)
    with pytest.raises(Terminal, match=says) as caught:
        await ParameterGroups(account).create(wanted, NOBODY, OPEN)

    assert caught.value.reason == "InvalidValue"


async def test_group_in_use_stays_until_it_is_not(account: AwsAccount) -> None:
    cloud, wanted = SubnetGroups(account), _subnet_group("fl-used")
    await cloud.create(wanted, NOBODY, OPEN)
    observed, _ = await _subnets_of(cloud, wanted)
    await account.call(
        "create_db_instance", "use it", DBInstanceIdentifier="fl-user", DBInstanceClass="db.t4g.micro",
        Engine="postgres", AllocatedStorage=20, MasterUsername="app", MasterUserPassword="Sufficient-1",
        DBSubnetGroupName="fl-used",
    )  # fmt: skip

    with pytest.raises(Blocked, match="subnet group fl-used") as caught:
        await cloud.delete(wanted, observed, Policy.DELETE, OPEN)

    assert caught.value.reason == "DeleteBlocked"


class Case(msgspec.Struct, frozen=True):
    says: str
    name: str
    value: str
    written: str


CASES = (
    Case("memory in another unit", "work_mem", "64MB", "65536"),
    Case("half of a unit", "shared_buffers", "0.5GB", "65536"),
    Case("time in another unit", "statement_timeout", "2min", "120000"),
    Case("time with a space", "statement_timeout", " 30 s ", "30000"),
    Case("a bare number", "work_mem", "65536", "65536"),
    Case("no whole number of units", "work_mem", "100B", "100B"),
    Case("a unit that PostgreSQL does not know", "work_mem", "64mb", "64mb"),
    Case("a switch that is on", "jit", "ON", "1"),
    Case("a switch as RDS writes it", "jit", "1", "1"),
    Case("a formula of RDS's", "shared_buffers", "{DBInstanceClassMemory/32768}", "{DBInstanceClassMemory/32768}"),
    Case("a list", "shared_preload_libraries", "pgaudit,pg_cron", "pgaudit,pg_cron"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_value_is_written_as_rds_writes_it(case: Case) -> None:
    written = as_rds_writes(case.name, case.value)

    assert written == case.written
    assert as_rds_writes(case.name, written) == written


async def test_units_and_switches_are_the_servers(postgres_server: Server) -> None:
    rows = await postgres_server.execute("SELECT name, COALESCE(unit, ''), vartype FROM pg_catalog.pg_settings")
    known = {name: (unit, kind) for name, unit, kind in rows}

    assert {name: known[name][0] for name in UNIT_OF} == UNIT_OF
    assert {known[name][1] for name in SWITCHES} == {"bool"}
