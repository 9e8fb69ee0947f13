"""The shipped policies of IAM allow in RDS what the provider calls and nothing else, and a fresh account's database."""

from __future__ import annotations

import inspect
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from devcloud.aws.server import Served
from providers.aws.groups import dataless
from providers.aws.groups.kinds import ParameterGroups, SubnetGroups
from tests.providers.aws.rds_world import RdsPaced, RdsWorld
from tests.support.simulator_control import control

ROOT = Path(__file__).resolve().parents[3]
# DeleteDBInstance makes its final snapshot, with the instance's tags, as whoever called it.
_BY_ITSELF = {"CreateDBSnapshot"}
ACCOUNT = "210987654321"
KEY, ROLE = f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/own", f"arn:aws:iam::{ACCOUNT}:role/rds-monitoring"
_VERB = re.compile(r"_change\(\s*\"(\w+)\"")


def _called() -> set[str]:
    model = botocore.session.get_session().get_service_model("rds")
    actions = {xform_name(operation): operation for operation in model.operation_names}
    text = "".join(path.read_text() for path in sorted((ROOT / "providers" / "aws").rglob("*.py")))
    words = {word for word in re.findall(r"\"(\w+)\"", text) if word in actions}
    for kind in (SubnetGroups, ParameterGroups):
        verbs = _VERB.findall(inspect.getsource(dataless.Dataless)) + _VERB.findall(inspect.getsource(kind))
        words |= {f"{verb}_{kind.call}" for verb in verbs} | {f"describe_{kind.call}s"}
    return {actions[word] for word in words}


def _statements(folder: str = "") -> list[dict[str, Any]]:
    texts = [path.read_text() for path in sorted((ROOT / "deploy" / "iam" / "aws" / folder).glob("*.json"))]
    filled = [text.replace("ACCOUNT", ACCOUNT).replace("INSTALLATION", "home") for text in texts]
    filled = [text.replace("KEY_ARN", KEY).replace("MONITORING_ROLE_ARN", ROLE) for text in filled]
    return [statement for text in filled for statement in json.loads(text)["Statement"]]


def _allowed() -> set[str]:
    actions_of_statements = [statement["Action"] for statement in _statements()]
    actions = {action for entry in actions_of_statements for action in ([entry] if isinstance(entry, str) else entry)}
    return {action.removeprefix("rds:") for action in actions if action.startswith("rds:")}


def test_policies_allow_each_call_and_nothing_that_is_not_called() -> None:
    called = _called()

    assert {"CreateDBInstance", "ResetDBParameterGroup", "ModifyDBSubnetGroup", "DeleteDBParameterGroup"} <= called
    assert _allowed() == called | _BY_ITSELF


class _LimitedWorld(RdsWorld):
    """A world of an account that has had no database, with the rights of some statements."""

    @property
    def keys(self) -> dict[str, str]:
        return {"aws_access_key_id": "AKIALIMITED", "aws_secret_access_key": "s3cr3t"}

    def allow(self, statements: list[dict[str, Any]]) -> None:
        """Give the credentials these rights instead of those of before."""
        key = {"access_key_id": "AKIALIMITED", "secret_access_key": "s3cr3t", "account": ACCOUNT}
        control(self.served, "POST", "keys", {**key, "policy": {"Statement": statements}})


@pytest.mark.rds
async def test_first_instance_of_an_account_waits_for_the_right_to_make_the_role_of_rds(stopped: Served) -> None:
    world = _LimitedWorld(stopped)
    paced = RdsPaced(world)
    world.allow([entry for entry in _statements() if entry["Action"] != "iam:CreateServiceLinkedRole"])
    world.ask()
    await paced.until(world.now + timedelta(hours=1))
    assert world.reason() == "AccessDenied"
    assert "aws iam create-service-linked-role --aws-service-name rds.amazonaws.com" in world.condition()["message"]

    world.allow(_statements())
    await paced.until(world.now + timedelta(minutes=30))
    assert world.condition("Ready")["status"] == "True"
    world.delete()
    paced.wake()
    await paced.settle()
    assert world.get() is None


@pytest.mark.rds
@pytest.mark.parametrize(
    ("named", "lacks"),
    [
        ({"kmsKeyId": KEY, "storageEncrypted": True}, "kms:CreateGrant"),
        ({"monitoringInterval": 60, "monitoringRoleArn": ROLE}, "iam:PassRole"),
    ],
    ids=["key", "role"],
)
async def test_key_or_role_of_ones_own_needs_an_optional_policy(
    named: dict[str, Any], lacks: str, stopped: Served
) -> None:
    world = _LimitedWorld(stopped)
    paced = RdsPaced(world)
    world.allow(_statements())
    world.ask(parameters=named)
    await paced.until(world.now + timedelta(minutes=1))
    assert (world.reason(), lacks in world.condition()["message"]) == ("AccessDenied", True)

    world.allow([*_statements(), *_statements("optional")])
    await paced.until(world.now + timedelta(minutes=30))
    assert world.condition("Ready")["status"] == "True"
