"""A claim in a namespace of AWS: its network, its parameters, its instance, a login; by a key that may do no more."""

from typing import Any

from tests.support.api import JsonObject
from tests.support.aws import (
    DB_PARAMETER_GROUP,
    DB_SUBNET_GROUP,
    Aws,
)
from tests.support.kinds import CLAIM, claim, is_ready
from tests.support.waiting import eventually


async def _group(aws: Aws, namespace: str, resource: str) -> JsonObject:
    for child in await aws.system.children(namespace, "orders"):
        if child["metadata"]["annotations"]["fairlead.dev/resource"] == resource:
            return child
    raise AssertionError(f"the claim has no {resource}")


async def live(aws: Aws) -> None:
    """Serve a claim, edit it, put drift back, and take it away with a snapshot whose row is read back."""
    system = aws.system
    async with aws.namespace() as namespace:
        since = await aws.mark()
        spec: dict[str, Any] = {"parameters": {"work_mem": "8MB"}, "deletionPolicy": "Snapshot"}
        await system.create(CLAIM, claim(namespace, "orders", **spec))
        made = await system.until(CLAIM, namespace, "orders", is_ready, limit_s=120)

        calls = [call["action"] for call in await aws.changes(since)]
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
        made_of_it = await aws.instance_of(namespace, "orders")
        network, parameters = (
            await _group(aws, namespace, "network"),
            await _group(aws, namespace, "parameters"),
        )
        assert made_of_it["status"]["resolved"] == {
            "dbSubnetGroupName": network["status"]["externalName"],
            "dbParameterGroupName": parameters["status"]["externalName"],
        }
        shown = await aws.person("describe_db_instances", DBInstanceIdentifier=made_of_it["status"]["externalName"])
        (running,) = shown["DBInstances"]
        assert running["DBSubnetGroup"]["DBSubnetGroupName"] == network["status"]["externalName"]
        assert running["DBParameterGroups"][0]["DBParameterGroupName"] == parameters["status"]["externalName"]

        await _edits_go_to_the_group(aws, namespace, parameters["status"]["externalName"])
        await _teardown_is_in_order(aws, namespace)
        await _a_row_is_read_back(aws, namespace)


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
