"""What tests can do to the service: faults, lag, limits, changes behind the API's back, and the log of calls."""

from __future__ import annotations

import urllib.error
from typing import Any

import pytest

from tests.devcloud.aws.conftest import Cloud, refusal

TAG = [{"Key": "fairlead-identity", "Value": "1"}, {"Key": "team", "Value": "a"}]


def _audit(cloud: Cloud) -> list[tuple[str, str]]:
    return [(call["action"], call["outcome"]) for call in cloud.control("GET", "audit")]


def test_a_fault_comes_as_often_as_asked_for_the_call_and_name_asked(cloud: Cloud) -> None:
    fault = {"action": "Create*", "code": "Throttling", "times": 2, "identifier": "db-*"}
    cloud.control("POST", "faults", fault)

    cloud.create("other")
    assert refusal(lambda: cloud.create("db-1")) == ("Throttling", 400)
    assert refusal(lambda: cloud.create("db-1")) == ("Throttling", 400)
    cloud.create("db-1")
    assert [outcome for _, outcome in _audit(cloud)] == ["ok", "Throttling", "Throttling", "ok"]


def test_lists_lag_behind_gets(cloud: Cloud) -> None:
    cloud.created("old")
    cloud.control("POST", "clock", {"advance_s": 100})
    cloud.control("POST", "behaviour", {"list_lag_s": 60})
    cloud.create("new")
    cloud.control("POST", "instances/old", {"vanish": True})

    assert [instance["DBInstanceIdentifier"] for instance in cloud.rds.describe_db_instances()["DBInstances"]] == [
        "old"
    ]
    assert cloud.look("new")["DBInstanceIdentifier"] == "new"
    assert refusal(lambda: cloud.look("old")) == ("DBInstanceNotFound", 404)
    cloud.control("POST", "clock", {"advance_s": 61})
    assert [instance["DBInstanceIdentifier"] for instance in cloud.rds.describe_db_instances()["DBInstances"]] == [
        "new"
    ]


def test_a_robot_strips_tags_again_and_again(cloud: Cloud) -> None:
    cloud.created(Tags=TAG)
    arn = cloud.look()["DBInstanceArn"]
    cloud.control("POST", "behaviour", {"tag_robot": {"strip": ["fairlead-*"], "every_s": 0.01}})

    assert cloud.until(lambda shown: shown["TagList"] == TAG[1:])
    cloud.rds.add_tags_to_resource(ResourceName=arn, Tags=TAG[:1])
    assert cloud.until(lambda shown: shown["TagList"] == TAG[1:])
    cloud.control("POST", "behaviour", {"tag_robot": None})


QUOTAS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"quotas": {"instances": 1}}, "InstanceQuotaExceeded"),
    ({"quotas": {"storage_gib": 39}}, "StorageQuotaExceeded"),
    ({"no_capacity": ["db.t4g.micro"]}, "InsufficientDBInstanceCapacity"),
    ({"hidden_versions": ["16.4"]}, "InvalidParameterCombination"),
)


@pytest.mark.parametrize(("behaviour", "code"), QUOTAS, ids=[code for _, code in QUOTAS])
def test_a_creation_beyond_what_is_left_is_refused(behaviour: dict[str, Any], code: str, cloud: Cloud) -> None:
    cloud.create("db-1")
    cloud.control("POST", "behaviour", behaviour)

    assert refusal(lambda: cloud.create("db-2")) == (code, 400)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("faults", {"kind": "explode"}),
        ("behaviour", {"quota": {}}),
        ("clock", {"speed": "fast"}),
        ("instances/none", {"vanish": True}),
        ("nothing", {}),
    ],
)
def test_a_control_call_that_makes_no_sense_is_refused(path: str, body: dict[str, Any], cloud: Cloud) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        cloud.control("POST", path, body)

    assert error.value.code == 400
    assert path.split("/", 1)[0] in error.value.read().decode()
