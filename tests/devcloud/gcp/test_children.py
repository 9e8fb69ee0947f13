"""Users and databases of an instance."""

from __future__ import annotations

from tests.devcloud.gcp.conftest import Cloud, Json, query


def users(cloud: Cloud) -> dict[str, Json]:
    return {item["name"]: item for item in cloud.call("GET", "instances/db-1/users").body["items"]}


def test_user_is_created_again_without_a_word_and_what_is_absent_is_not_found(cloud: Cloud) -> None:
    cloud.created()
    body = {"name": "app", "password": "first-pass"}
    cloud.done(cloud.call("POST", "instances/db-1/users", body))

    operation = cloud.done(cloud.call("POST", "instances/db-1/users", {**body, "databaseRoles": ["readers"]}))

    assert operation["operationType"] == "CREATE_USER"
    assert sorted(users(cloud)) == ["app", "postgres"]
    assert users(cloud)["app"]["databaseRoles"] == ["readers"]
    iam = {"name": "app", "type": "CLOUD_IAM_GROUP"}
    assert cloud.call("POST", "instances/db-1/users", iam).refusal == (400, "invalid")

    for method, sent in (("PUT", {"password": "p"}), ("DELETE", None)):
        assert cloud.call(method, f"instances/db-1/users{query(name='none')}", sent).refusal == (404, "notFound")
    assert cloud.call("GET", "instances/db-1/users/none").refusal == (404, "notFound")
    # terraform-provider-google, thread 3820
    assert cloud.call("DELETE", f"instances/db-1/users{query(name='postgres')}").refusal == (400, "invalid")

    operation = cloud.done(cloud.call("POST", "instances/db-1/databases", {"name": "app"}))

    assert operation["operationType"] == "CREATE_DATABASE"
    shown = cloud.call("GET", "instances/db-1/databases/app").body
    assert (shown["charset"], shown["collation"], shown["kind"]) == ("UTF8", "en_US.UTF8", "sql#database")
    again = cloud.call("POST", "instances/db-1/databases", {"name": "app"})
    assert again.refusal == (400, "invalid")
    assert 'database "app" already exists' in again.message
    cloud.done(cloud.call("DELETE", "instances/db-1/databases/app"))
    for method in ("GET", "DELETE"):
        assert cloud.call(method, "instances/db-1/databases/app").refusal == (404, "notFound")
    assert cloud.call("DELETE", "instances/db-1/databases/postgres").refusal == (400, "invalid")
