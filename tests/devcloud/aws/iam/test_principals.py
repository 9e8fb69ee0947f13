"""Who may call: signatures, keys, roles, policies, accounts, as STS and IAM have it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.devcloud.aws.conftest import Cloud, refusal


def _key(cloud: Cloud, name: str, **settings: Any) -> Any:
    cloud.control("POST", "keys", {"access_key_id": name, "secret_access_key": f"secret-of-{name}", **settings})
    return cloud.client(key=(name, f"secret-of-{name}"))


def _allow(action: str, condition: dict[str, Any] | None = None) -> dict[str, Any]:
    allowed: dict[str, Any] = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return allowed if condition is None else {**allowed, "Condition": condition}


def test_a_creation_needs_a_permission_on_each_resource_to_tag_and_once_to_make_the_role_of_rds(cloud: Cloud) -> None:
    account = "210987654321"
    _key(cloud, "AKIAFRESH00000000000", account=account).create_db_parameter_group(
        DBParameterGroupName="own", DBParameterGroupFamily="postgres16", Description="d"
    )
    ours = {
        **_allow("rds:CreateDBInstance", {"StringLike": {"aws:RequestTag/owner": "fairlead-*"}}),
        "Resource": "arn:aws:rds:*:*:db:fl-*",
    }
    name_it = {**_allow("rds:CreateDBInstance"), "Resource": "arn:aws:rds:*:*:pg:own"}
    tag_it = _allow("rds:AddTagsToResource", {"Null": {"aws:ResourceTag/owner": "true"}})
    link_it = _allow("iam:CreateServiceLinkedRole", {"StringEquals": {"iam:AWSServiceName": "rds.amazonaws.com"}})
    cover_it = _allow("rds:CreateDBSubnetGroup")
    tags = [{"Key": "owner", "Value": "fairlead-1"}]

    def key(number: int, *statements: dict[str, Any]) -> Any:
        return _key(cloud, f"AKIATAGGED{number:010}", account=account, policy={"Statement": statements})

    def creating(number: int, *statements: dict[str, Any], **request: Any) -> None:
        Cloud(cloud.served, key(number, *statements)).create(f"fl-{number}", DBParameterGroupName="own", **request)

    assert refusal(lambda: creating(1, ours, name_it, tag_it)) == ("AccessDenied", 403)
    assert refusal(lambda: creating(2, ours, name_it, Tags=tags)) == ("AccessDenied", 403)
    assert refusal(lambda: creating(3, ours, tag_it, Tags=tags)) == ("AccessDenied", 403)
    assert refusal(lambda: creating(4, ours, name_it, tag_it, Tags=tags)) == ("InvalidParameterValue", 400)
    group = {"DBSubnetGroupName": "g", "DBSubnetGroupDescription": "d", "SubnetIds": ["subnet-none"]}
    with pytest.raises(ClientError, match="Missing necessary credentials"):
        key(5, cover_it).create_db_subnet_group(**group)
    creating(6, ours, name_it, tag_it, link_it, Tags=tags)
    creating(7, ours, name_it, tag_it, Tags=tags)
