"""A claim in a namespace of AWS: its network, its parameters, its instance, a login; by a key that may do no more."""

import asyncio
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import pytest_asyncio
from botocore.config import Config
from botocore.exceptions import ClientError

from devcloud.aws.platform import ACCESS_KEY, ACCOUNT, REGION
from tests.support.api import JsonObject
from tests.support.aws import (
    AWS_CONFIG,
    DB_PARAMETER_GROUP,
    DB_SUBNET_GROUP,
    KEY_SECRET,
    RDS_INSTANCE,
    Aws,
    at_work,
    instance,
)
from tests.support.aws import NAMESPACE as AWS_NAMESPACE
from tests.support.kinds import CLAIM, CONFIG_MAP, SECRET, claim, condition, is_ready
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

_OTHER_ACCOUNT, _OTHER_KEY = "210987654321", "AKIASOMEBODYELSE"
IAM = Path(__file__).resolve().parents[2] / "deploy" / "iam" / "aws"


def _policy(installation: str) -> JsonObject:
    """Return the shipped policies as one, made out to this account and installation."""
    statements: list[JsonObject] = []
    for path in sorted(IAM.glob("*.json")):
        text = path.read_text(encoding="utf-8").replace("ACCOUNT", ACCOUNT).replace("INSTALLATION", installation)
        statements += json.loads(text)["Statement"]
    return {"Version": "2012-10-17", "Statement": statements}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fenced(aws: Aws) -> Aws:
    """Return composer and provider at work, the provider with the rights of the shipped policies."""
    config_map = await aws.system.api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation"))
    key = {"access_key_id": ACCESS_KEY, "secret_access_key": aws.secret_key, "account": ACCOUNT}
    policy = _policy(config_map["data"]["id"])
    await aws.control("POST", "keys", {**key, "principal": "user/fairlead", "policy": policy})
    await at_work(aws)
    return aws


async def _group(aws: Aws, namespace: str, resource: str) -> JsonObject:
    for child in await aws.system.children(namespace, "orders"):
        if child["metadata"]["annotations"]["fairlead.dev/resource"] == resource:
            return child
    raise AssertionError(f"the claim has no {resource}")


async def test_a_claim_is_served_changed_and_taken_away(fenced: Aws) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        since = await fenced.mark()
        spec: dict[str, Any] = {"parameters": {"work_mem": "8MB"}, "deletionPolicy": "Snapshot"}
        await system.create(CLAIM, claim(namespace, "orders", **spec))
        made = await system.until(CLAIM, namespace, "orders", is_ready, limit_s=120)

        calls = [call["action"] for call in await fenced.changes(since)]
        assert sorted(calls) == [
            "CreateDBInstance",
            "CreateDBParameterGroup",
            "CreateDBSubnetGroup",
            "ModifyDBParameterGroup",
        ]
        assert calls[-1] == "CreateDBInstance"
        binding = await system.binding(namespace, "orders")
        assert (binding["provider"], binding["database"], binding["username"]) == ("aws", "orders", "orders_app")
        assert made["status"]["endpoint"] == binding["host"]
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        made_of_it = await fenced.instance_of(namespace, "orders")
        network, parameters = (
            await _group(fenced, namespace, "network"),
            await _group(fenced, namespace, "parameters"),
        )
        assert made_of_it["status"]["resolved"] == {
            "dbSubnetGroupName": network["status"]["externalName"],
            "dbParameterGroupName": parameters["status"]["externalName"],
        }
        shown = await fenced.person("describe_db_instances", DBInstanceIdentifier=made_of_it["status"]["externalName"])
        (running,) = shown["DBInstances"]
        assert running["DBSubnetGroup"]["DBSubnetGroupName"] == network["status"]["externalName"]
        assert running["DBParameterGroups"][0]["DBParameterGroupName"] == parameters["status"]["externalName"]

        await _edits_go_to_the_group(fenced, namespace, parameters["status"]["externalName"])
        await _teardown_is_in_order(fenced, namespace)
        await _a_row_is_read_back(fenced, namespace)


async def _edits_go_to_the_group(aws: Aws, namespace: str, name: str) -> None:
    """Prove that an edit of a dynamic parameter reaches the group alone; a person's change of it is put back."""
    since = await aws.mark()
    await aws.system.edit(CLAIM, namespace, "orders", {"spec": {"parameters": {"work_mem": "16MB"}}})
    await _until_parameter(aws, name, "work_mem", "16384")
    await aws.system.until(CLAIM, namespace, "orders", is_ready)
    assert [call["action"] for call in await aws.changes(since)] == ["ModifyDBParameterGroup"]

    row = {"ParameterName": "work_mem", "ParameterValue": "64", "ApplyMethod": "immediate"}
    await aws.person("modify_db_parameter_group", DBParameterGroupName=name, Parameters=[row])
    child = await _group(aws, namespace, "parameters")
    await aws.system.ask_for_a_pass(DB_PARAMETER_GROUP, namespace, child["metadata"]["name"])
    await _until_parameter(aws, name, "work_mem", "16384")


async def _until_parameter(aws: Aws, group: str, parameter: str, value: str) -> None:
    async def shown() -> bool:
        answer = await aws.person("describe_db_parameters", DBParameterGroupName=group, Source="user")
        parameters = {row["ParameterName"]: row["ParameterValue"] for row in answer["Parameters"]}
        return parameters.get(parameter) == value

    await eventually(shown, f"{parameter} of {group} is {value}", limit_s=60)


async def _teardown_is_in_order(aws: Aws, namespace: str) -> None:
    since = await aws.mark()
    await aws.system.delete(CLAIM, namespace, "orders")
    deleted = [call["action"] for call in await aws.changes(since) if call["outcome"] == "ok"]
    assert deleted[0] == "DeleteDBInstance"
    assert sorted(deleted[1:]) == ["DeleteDBParameterGroup", "DeleteDBSubnetGroup"]
    for kind in (DB_SUBNET_GROUP, DB_PARAMETER_GROUP):
        assert await aws.system.api.items(kind.path(namespace)) == []


async def _a_row_is_read_back(aws: Aws, namespace: str) -> None:
    """Prove that a deleted claim's data come back from its final snapshot, and go into a third claim meanwhile."""
    kept, since = {"databaseName": "orders", "username": "orders_app"}, await aws.mark()
    for number, (source, name) in enumerate((("orders", "again"), ("again", "twice"))):
        await aws.system.create(CLAIM, claim(namespace, name, **kept, restoreFrom={"claim": source}))
        await aws.system.until(CLAIM, namespace, name, is_ready, limit_s=120)
        async with await aws.system.login(namespace, name) as connection:
            rows = await (await connection.execute("SELECT name FROM goods ORDER BY name")).fetchall()
            await connection.execute("INSERT INTO goods VALUES (%s)", (f"row {number}",))
        assert rows == [("canary",), ("row 0",)][: number + 1]
    done = [call["action"] for call in await aws.changes(since) if call["action"].startswith(("Create", "Restore"))]
    assert [action for action in done if "Group" not in action] == [
        "RestoreDBInstanceFromDBSnapshot",
        "RestoreDBInstanceToPointInTime",
    ]
    for name in ("again", "twice"):
        await aws.system.delete(CLAIM, namespace, name)


async def test_the_shipped_policies_leave_what_is_not_ours_alone(fenced: Aws) -> None:
    made: dict[str, Any] = {
        "DBInstanceIdentifier": "fl-foreign",
        "DBInstanceClass": "db.t4g.micro",
        "Engine": "postgres",
    }
    login: dict[str, Any] = {"MasterUsername": "boss", "MasterUserPassword": "Sufficient-1", "AllocatedStorage": 20}
    await fenced.person("create_db_instance", **made, **login)
    await fenced.until("fl-foreign", lambda instance: instance["DBInstanceStatus"] == "available")

    denied = [
        await asyncio.to_thread(_refused, fenced, operation, parameters)
        for operation, parameters in (
            ("modify_db_instance", {"DBInstanceIdentifier": "fl-foreign", "BackupRetentionPeriod": 0}),
            ("delete_db_instance", {"DBInstanceIdentifier": "fl-foreign", "SkipFinalSnapshot": True}),
            ("create_db_instance", {**made, **login, "DBInstanceIdentifier": "fl-untagged"}),
        )
    ]
    assert denied == ["AccessDenied"] * 3
    await fenced.system.until(AWS_CONFIG, "", "default", is_ready)


def _refused(aws: Aws, operation: str, parameters: dict[str, Any]) -> str:
    """Call with the provider's own key; return the code of the refusal."""
    client = boto3.client(
        "rds",
        region_name=REGION,
        endpoint_url=aws.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=aws.secret_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    try:
        getattr(client, operation)(**parameters)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    finally:
        client.close()
    return ""


async def test_dead_and_foreign_credentials_are_named_and_change_nothing(fenced: Aws) -> None:
    system = fenced.system
    async with fenced.namespace() as namespace:
        for name in ("edited", "leaving"):
            await system.create(RDS_INSTANCE, instance(namespace, name))
        for name in ("edited", "leaving"):
            await system.until(RDS_INSTANCE, namespace, name, is_ready, limit_s=90)
        key = {"access_key_id": ACCESS_KEY, "secret_access_key": fenced.secret_key, "account": ACCOUNT}
        allowed = {**key, "principal": "user/fairlead", "policy": None}

        since = await fenced.mark()
        await fenced.control("POST", "keys", {**allowed, "expires_at": "2020-01-01T00:00:00Z"})
        await system.edit(RDS_INSTANCE, namespace, "edited", {"spec": {"forProvider": {"backupRetentionPeriod": 9}}})
        await system.api.delete(RDS_INSTANCE.path(namespace, "leaving"))
        await system.create(RDS_INSTANCE, instance(namespace, "coming"))
        for name in ("edited", "leaving", "coming"):
            await _until_reason(fenced, namespace, name, "CredentialsInvalid")
        assert await fenced.changes(since) == []

        await fenced.control("POST", "keys", {**allowed, "account": _OTHER_ACCOUNT, "access_key_id": _OTHER_KEY})
        await _use_key(fenced, _OTHER_KEY)
        for name in ("edited", "leaving", "coming"):
            await _until_reason(fenced, namespace, name, "AccountChanged")
        await system.until(AWS_CONFIG, "", "default", lambda obj: condition(obj, "Ready")["reason"] == "AccountChanged")
        assert await fenced.changes(since) == []

        await fenced.control("POST", "keys", {**allowed, "expires_at": None})
        await _use_key(fenced, ACCESS_KEY)
        await system.until(AWS_CONFIG, "", "default", is_ready, limit_s=90)
        for name in ("edited", "coming"):
            await system.ask_for_a_pass(RDS_INSTANCE, namespace, name)
            await system.until(RDS_INSTANCE, namespace, name, is_ready, limit_s=120)
        await system.api.until_gone(RDS_INSTANCE.path(namespace, "leaving"), limit_s=180)
        done = sorted(call["action"] for call in await fenced.changes(since) if call["outcome"] == "ok")
        assert done == ["CreateDBInstance", "DeleteDBInstance", "ModifyDBInstance"]
        assert {call["account"] for call in await fenced.changes(since)} == {ACCOUNT}


async def _use_key(aws: Aws, access_key_id: str) -> None:
    key = {"aws_access_key_id": access_key_id, "aws_secret_access_key": aws.secret_key}
    await aws.system.edit(SECRET, AWS_NAMESPACE, KEY_SECRET, {"stringData": key})


async def _until_reason(aws: Aws, namespace: str, name: str, reason: str) -> None:
    await aws.system.ask_for_a_pass(RDS_INSTANCE, namespace, name)

    def refused(obj: JsonObject) -> bool:
        return bool(condition(obj, "Synced").get("reason") == reason)

    await aws.system.until(RDS_INSTANCE, namespace, name, refused, limit_s=90)
