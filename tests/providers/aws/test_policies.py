"""The shipped policies of IAM allow in RDS what the provider calls, and nothing else."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import botocore.session
from botocore import xform_name

from providers.aws.groups import dataless
from providers.aws.groups.kinds import ParameterGroups, SubnetGroups

ROOT = Path(__file__).resolve().parents[3]
# DeleteDBInstance makes its final snapshot, with the instance's tags, as whoever called it.
_BY_ITSELF = {"CreateDBSnapshot"}
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


def _allowed() -> set[str]:
    policies = [json.loads(path.read_text()) for path in sorted((ROOT / "deploy" / "iam" / "aws").glob("*.json"))]
    actions_of_statements = [statement["Action"] for policy in policies for statement in policy["Statement"]]
    actions = {action for entry in actions_of_statements for action in ([entry] if isinstance(entry, str) else entry)}
    return {action.removeprefix("rds:") for action in actions if action.startswith("rds:")}


def test_policies_allow_each_call_and_nothing_that_is_not_called() -> None:
    called = _called()

    assert {"CreateDBInstance", "ResetDBParameterGroup", "ModifyDBSubnetGroup", "DeleteDBParameterGroup"} <= called
    assert _allowed() == called | _BY_ITSELF
