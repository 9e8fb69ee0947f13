"""Who may call: signatures, keys, roles, policies, accounts, as STS and IAM have it."""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from typing import Any

import boto3
from botocore import UNSIGNED
from botocore.config import Config

from tests.devcloud.aws.conftest import REGION, Cloud, refusal

ROLE = "arn:aws:iam::123456789012:role/fairlead-provider"


def _key(cloud: Cloud, name: str, **settings: Any) -> Any:
    cloud.control("POST", "keys", {"access_key_id": name, "secret_access_key": f"secret-of-{name}", **settings})
    return cloud.client(key=(name, f"secret-of-{name}"))


def test_a_caller_is_known_by_its_key_or_its_pod_and_learns_its_account(cloud: Cloud) -> None:
    identity = cloud.client("sts").get_caller_identity()

    assert (identity["Account"], identity["Arn"]) == ("123456789012", "arn:aws:iam::123456789012:user/fairlead")

    unknown = cloud.client(key=("AKIANOBODY0000000000", "x"))
    wrong = cloud.client(key=(cloud.served.credentials[0], "not-the-secret"))
    expired = _key(cloud, "AKIAEXPIRED000000000", expires_at="2020-01-01T00:00:00Z")

    assert refusal(unknown.describe_db_instances) == ("InvalidClientTokenId", 403)
    assert refusal(wrong.describe_db_instances) == ("SignatureDoesNotMatch", 403)
    assert refusal(expired.describe_db_instances) == ("ExpiredToken", 403)

    request = urllib.request.Request(  # noqa: S310 - our own server's
        f"{cloud.served.url}/_eks/v1/credentials", headers={"Authorization": cloud.served.pod_token}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - as above
        credentials = json.load(reply)
    sts = cloud.client(
        "sts", key=(credentials["AccessKeyId"], credentials["SecretAccessKey"]), aws_session_token=credentials["Token"]
    )

    assert sts.get_caller_identity()["Arn"] == "arn:aws:sts::123456789012:assumed-role/fairlead-provider/eks"


def test_accounts_and_regions_do_not_see_one_another(cloud: Cloud) -> None:
    cloud.created()
    other = _key(cloud, "AKIAOTHER00000000000", account="210987654321", principal="user/other")
    elsewhere = cloud.client(region="us-east-1")

    assert other.describe_db_instances()["DBInstances"] == []
    assert elsewhere.describe_db_instances()["DBInstances"] == []
    assert len(cloud.rds.describe_db_instances()["DBInstances"]) == 1


def _allow(action: str, condition: dict[str, Any] | None = None) -> dict[str, Any]:
    allowed: dict[str, Any] = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return allowed if condition is None else {**allowed, "Condition": condition}


def test_a_policy_allows_by_action_and_tag_and_a_deny_wins(cloud: Cloud) -> None:
    cloud.created("ours", Tags=[{"Key": "team", "Value": "a"}])
    cloud.created("theirs", Tags=[{"Key": "team", "Value": "b"}])
    own = {"StringEquals": {"aws:ResourceTag/team": "a"}}
    policy = {
        "Statement": [
            _allow("rds:Describe*"),
            _allow("rds:ModifyDBInstance", own),
            _allow("rds:DeleteDBInstance", own),
            {"Effect": "Deny", "Action": "rds:DeleteDBInstance", "Resource": "arn:aws:rds:*:*:db:ours"},
        ]
    }
    rds = _key(cloud, "AKIALIMITED000000000", policy=policy)

    assert len(rds.describe_db_instances()["DBInstances"]) == 2
    rds.modify_db_instance(DBInstanceIdentifier="ours", DeletionProtection=False)
    change = {"DBInstanceIdentifier": "theirs", "DeletionProtection": False}
    assert refusal(lambda: rds.modify_db_instance(**change)) == ("AccessDenied", 403)
    drop = {"DBInstanceIdentifier": "ours", "SkipFinalSnapshot": True}
    assert refusal(lambda: rds.delete_db_instance(**drop)) == ("AccessDenied", 403)


def test_a_creation_needs_a_permission_on_each_resource_and_to_tag(cloud: Cloud) -> None:
    cloud.rds.create_db_parameter_group(
        DBParameterGroupName="own", DBParameterGroupFamily="postgres16", Description="d"
    )
    ours = {
        **_allow("rds:CreateDBInstance", {"StringLike": {"aws:RequestTag/owner": "fairlead-*"}}),
        "Resource": "arn:aws:rds:*:*:db:fl-*",
    }
    name_it = {**_allow("rds:CreateDBInstance"), "Resource": "arn:aws:rds:*:*:pg:own"}
    tag_it = _allow("rds:AddTagsToResource", {"Null": {"aws:ResourceTag/owner": "true"}})
    tags = [{"Key": "owner", "Value": "fairlead-1"}]

    def creating(number: int, *statements: dict[str, Any], **request: Any) -> None:
        key = _key(cloud, f"AKIATAGGED{number:010}", policy={"Statement": statements})
        Cloud(cloud.served, key).create(f"fl-{number}", DBParameterGroupName="own", **request)

    assert refusal(lambda: creating(1, ours, name_it, tag_it)) == ("AccessDenied", 403)
    assert refusal(lambda: creating(2, ours, name_it, Tags=tags)) == ("AccessDenied", 403)
    assert refusal(lambda: creating(3, ours, tag_it, Tags=tags)) == ("AccessDenied", 403)
    creating(4, ours, name_it, tag_it, Tags=tags)


def test_a_role_is_assumed_by_whom_it_trusts_and_its_session_ends(cloud: Cloud) -> None:
    sts = cloud.client("sts")
    credentials = sts.assume_role(RoleArn=ROLE, RoleSessionName="work", DurationSeconds=900)["Credentials"]
    session = cloud.client(
        key=(credentials["AccessKeyId"], credentials["SecretAccessKey"]), aws_session_token=credentials["SessionToken"]
    )
    without_token = cloud.client(key=(credentials["AccessKeyId"], credentials["SecretAccessKey"]))

    assert session.describe_db_instances()["DBInstances"] == []
    assert refusal(without_token.describe_db_instances) == ("InvalidClientTokenId", 403)
    cloud.control("POST", "roles", {"name": "closed", "trust": {"accounts": ["210987654321"]}})
    closed = {"RoleArn": "arn:aws:iam::123456789012:role/closed", "RoleSessionName": "work"}
    assert refusal(lambda: sts.assume_role(**closed)) == ("AccessDenied", 403)
    cloud.control("POST", "clock", {"advance_s": 901})
    assert refusal(session.describe_db_instances) == ("ExpiredToken", 403)


def _token(subject: str, expires_at: float) -> str:
    claims = json.dumps({"sub": subject, "exp": expires_at}).encode()
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"RS256"}', claims, b"s"))


def test_a_web_identity_is_known_by_its_subject(cloud: Cloud) -> None:
    trust = {"subjects": ["system:serviceaccount:fairlead-aws:*"]}
    cloud.control("POST", "roles", {"name": "pods", "trust": trust})
    sts = boto3.client(
        "sts", region_name=REGION, endpoint_url=cloud.served.url, config=Config(signature_version=UNSIGNED)
    )

    def assume(token: str) -> Any:
        role = "arn:aws:iam::123456789012:role/pods"
        return sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="work", WebIdentityToken=token)

    later = time.time() + 10**9
    subject = "system:serviceaccount:fairlead-aws:fairlead-provider-aws"
    assert assume(_token(subject, later))["SubjectFromWebIdentityToken"] == subject
    assert refusal(lambda: assume(_token("system:serviceaccount:other:x", later))) == ("AccessDenied", 403)
    assert refusal(lambda: assume(_token(subject, 1.0))) == ("ExpiredTokenException", 400)
    assert refusal(lambda: assume("no token at all")) == ("InvalidIdentityToken", 400)


def test_an_action_that_is_not_simulated_says_so(cloud: Cloud) -> None:
    cluster = {"DBClusterIdentifier": "c", "Engine": "aurora-postgresql"}

    assert refusal(lambda: cloud.rds.create_db_cluster(**cluster)) == ("InvalidAction", 400)
    assert refusal(lambda: cloud.create(Domain="d-1234567890")) == ("InvalidParameterCombination", 400)
