"""Instances through one account, over the wire, at a simulated RDS."""

from __future__ import annotations

import asyncio
import json
import urllib.request

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount
from providers.aws.names import tags_of
from providers.aws.rds import RdsInstances
from providers.identity import Owner

OURS = Owner("home", "uid-2", "0123456789abcdef", "shop", "orders", "instance")
FORMER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance")


def _lists(simulator: Served) -> int:
    with urllib.request.urlopen(f"{simulator.url}/_control/audit?since=0", timeout=60) as answer:  # noqa: S310 - loop-back
        calls = json.load(answer)
    return sum(call["action"] == "DescribeDBInstances" and not call["identifier"] for call in calls)


async def test_births_side_by_side_search_one_list(account: AwsAccount, simulator: Served) -> None:
    made = await account.call(
        "create_db_instance", "make it", DBInstanceIdentifier="fl-former", DBInstanceClass="db.t4g.micro",
        Engine="postgres", AllocatedStorage=20, MasterUsername="app", MasterUserPassword="Sufficient-1",
        Tags=tags_of(FORMER),
    )  # fmt: skip
    cloud, before = RdsInstances(account), _lists(simulator)

    found = await asyncio.gather(*(cloud.find(OURS) for _ in range(8)))

    expected = ("fl-former", made["DBInstance"]["DbiResourceId"], FORMER)
    assert [[(one.name, one.incarnation, one.owner) for one in each] for each in found] == [[expected]] * 8
    assert _lists(simulator) - before == 1
