"""Users and databases of an instance."""

from __future__ import annotations

import json

import pytest

from tests.devcloud.gcp.conftest import Cloud, Json, query

ACCOUNT = "app@fairlead-devcloud.iam"


def users(cloud: Cloud) -> dict[str, Json]:
    return {item["name"]: item for item in cloud.call("GET", "instances/db-1/users").body["items"]}


def test_user_comes_changes_and_goes(cloud: Cloud) -> None:
    cloud.created()
    # With nothing behind the instance there is nothing to wait for: the recorded answer is DONE as well.
    made = cloud.call("POST", "instances/db-1/users", {"name": "app", "password": "app-pass"})
    assert (made.body["status"], made.body["operationType"]) == ("DONE", "CREATE_USER")

    assert sorted(users(cloud)) == ["app", "postgres"]
    shown = users(cloud)["app"]
    assert {name: value for name, value in shown.items() if name != "etag"} == {
        "host": "",
        "instance": "db-1",
        "kind": "sql#user",
        "name": "app",
        "project": cloud.served.project,
    }
    # By the discovery document the roles of an update are those of its query; those of its body are passed over.
    change = {"password": "more-pass", "databaseRoles": ["owners"]}
    granting = f"{query(name='app')}&databaseRoles=readers&databaseRoles=writers"
    cloud.done(cloud.call("PUT", f"instances/db-1/users{granting}", change))
    assert cloud.call("GET", "instances/db-1/users/app").body["databaseRoles"] == ["readers", "writers"]
    cloud.done(cloud.call("DELETE", f"instances/db-1/users{query(name='app')}"))
    assert sorted(users(cloud)) == ["postgres"]
    # Also the role that a user has without any is shown once it was asked for.
    both = ["cloudsqlsuperuser", "readers"]
    superuser = {"name": "app", "password": "app-pass", "databaseRoles": both}
    cloud.done(cloud.call("POST", "instances/db-1/users", superuser))
    assert users(cloud)["app"]["databaseRoles"] == both


@pytest.mark.parametrize("kind", ["CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT", "CLOUD_IAM_GROUP"])
def test_user_of_iam_has_no_password(kind: str, cloud: Cloud) -> None:
    cloud.created()
    body = {"name": ACCOUNT, "type": kind}
    assert cloud.call("POST", "instances/db-1/users", {**body, "password": "p"}).refusal == (400, "invalid")

    cloud.done(cloud.call("POST", "instances/db-1/users", body))

    assert users(cloud)[ACCOUNT]["type"] == kind
    password = {"password": "p"}
    assert cloud.call("PUT", f"instances/db-1/users{query(name=ACCOUNT)}", password).refusal == (400, "invalid")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"name": "postgres", "type": "CLOUD_IAM_GROUP"}, "exists with the same name"),
        ({"name": "app", "type": "CLOUD_IAM_USER"}, "full email address"),
        ({"name": "app"}, "password"),
        ({"name": "", "password": "p"}, "name"),
        ({"name": "x" * 64, "password": "p"}, "name"),
        ({"name": "pg_app", "password": "p"}, "reserved"),
        ({"name": "app", "password": "p", "host": "%"}, "Host"),
        ({"name": "app@p.iam.gserviceaccount.com", "type": "CLOUD_IAM_SERVICE_ACCOUNT"}, ".gserviceaccount.com"),
        ({"name": "app", "type": "ENTRAID_USER"}, "not simulated"),
        ({"name": "app", "password": "p", "databaseRoles": ['a"b']}, "role"),
    ],
)
def test_user_is_refused(body: Json, says: str, cloud: Cloud) -> None:
    cloud.created()

    reply = cloud.call("POST", "instances/db-1/users", body)

    assert reply.refusal == (400, "invalid")
    assert says in reply.message


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


@pytest.mark.parametrize(
    ("password", "says"),
    [("Short-1", "shorter"), ("only-lower-letters", "simpler"), ("Contains-app-1", "name"), ("Sufficient-1", "")],
)
def test_password_policy_is_held(password: str, says: str, cloud: Cloud) -> None:
    policy = {
        "enablePasswordPolicy": True,
        "minLength": 10,
        "complexity": "COMPLEXITY_DEFAULT",
        "disallowUsernameSubstring": True,
    }
    cloud.created(passwordValidationPolicy=policy)

    reply = cloud.call("POST", "instances/db-1/users", {"name": "app", "password": password})

    assert reply.status == (400 if says else 200)
    assert says in json.dumps(reply.body)
    assert password not in json.dumps(reply.body)
