"""The protocol as clients meet it: pages, filters, markers, escapes, request ids; and what is offered."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.devcloud.aws.conftest import REGION, Cloud, refusal


def _listed(cloud: Cloud, **request: Any) -> list[str]:
    pages = cloud.rds.get_paginator("describe_db_instances").paginate(**request)
    return [instance["DBInstanceIdentifier"] for page in pages for instance in page["DBInstances"]]


def test_all_instances_are_listed_page_by_page_in_order(cloud: Cloud) -> None:
    cloud.control("POST", "behaviour", {"quotas": {"instances": 500}})
    names = [f"db-{number:03d}" for number in range(130)]
    for name in names:
        cloud.create(name)
    cloud.control("DELETE", "audit")

    assert _listed(cloud) == names
    assert [call["action"] for call in cloud.control("GET", "audit")] == ["DescribeDBInstances"] * 2
    first = cloud.rds.describe_db_instances(MaxRecords=20)
    cloud.control("POST", f"instances/{names[19]}", {"vanish": True})
    second = cloud.rds.describe_db_instances(MaxRecords=20, Marker=first["Marker"])
    assert [instance["DBInstanceIdentifier"] for instance in second["DBInstances"]] == names[20:40]


def test_instances_are_found_by_arn_name_and_filter_and_answers_have_request_ids(
    cloud: Cloud,
) -> None:
    answer = cloud.rds.describe_db_instances()["ResponseMetadata"]

    assert answer["RequestId"] == answer["HTTPHeaders"]["x-amzn-requestid"]
    assert answer["RequestId"] == cloud.control("GET", "audit")[0]["request_id"]

    first, _ = cloud.create("db-1"), cloud.create("db-2")

    assert _listed(cloud, DBInstanceIdentifier=first["DBInstanceArn"]) == ["db-1"]
    assert _listed(cloud, DBInstanceIdentifier="DB-1") == ["db-1"]
    names = [{"Name": "db-instance-id", "Values": ["db-2", "db-3"]}]
    assert _listed(cloud, Filters=names) == ["db-2"]
    resources = [{"Name": "dbi-resource-id", "Values": [first["DbiResourceId"]]}]
    assert _listed(cloud, Filters=resources) == ["db-1"]
    assert _listed(cloud, Filters=names + resources) == []


def test_text_of_any_kind_survives_the_way_there_and_back(cloud: Cloud) -> None:
    tags = [{"Key": "Größe", "Value": "a + b = c/d @ e: -_."}, {"Key": "empty", "Value": ""}]
    arn = cloud.create(Tags=tags)["DBInstanceArn"]
    group = {"DBSubnetGroupName": "g", "DBSubnetGroupDescription": "<a> & \"b\" 'c'\x01"}
    subnets = ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"]
    reply = cloud.rds.create_db_subnet_group(**group, SubnetIds=subnets)["DBSubnetGroup"]

    assert cloud.rds.list_tags_for_resource(ResourceName=arn)["TagList"] == tags
    assert reply["DBSubnetGroupDescription"] == "<a> & \"b\" 'c'"
    assert [subnet["SubnetIdentifier"] for subnet in reply["Subnets"]] == subnets


def test_tags_are_added_replaced_and_removed(cloud: Cloud) -> None:
    arn = cloud.create(Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])["DBInstanceArn"]

    cloud.rds.add_tags_to_resource(ResourceName=arn, Tags=[{"Key": "a", "Value": "3"}])
    cloud.rds.remove_tags_from_resource(ResourceName=arn, TagKeys=["b", "absent"])
    assert cloud.look()["TagList"] == [{"Key": "a", "Value": "3"}]


def test_groups_have_tags_too(cloud: Cloud) -> None:
    tags = [{"Key": "a", "Value": "1"}]
    subnets = ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"]
    arns = [
        cloud.rds.create_db_subnet_group(
            DBSubnetGroupName="Own", DBSubnetGroupDescription="d", SubnetIds=subnets, Tags=tags
        )["DBSubnetGroup"]["DBSubnetGroupArn"],
        cloud.rds.create_db_parameter_group(
            DBParameterGroupName="Own", DBParameterGroupFamily="postgres17", Description="d", Tags=tags
        )["DBParameterGroup"]["DBParameterGroupArn"],
    ]

    for arn in arns:
        assert arn.endswith(":own")
        assert cloud.rds.list_tags_for_resource(ResourceName=arn)["TagList"] == tags
        cloud.rds.remove_tags_from_resource(ResourceName=arn, TagKeys=["a"])
        assert cloud.rds.list_tags_for_resource(ResourceName=arn)["TagList"] == []


def test_groups_are_listed_with_the_services_own_and_deleted(cloud: Cloud) -> None:
    cloud.rds.create_db_parameter_group(
        DBParameterGroupName="own", DBParameterGroupFamily="postgres16", Description="d"
    )
    groups = cloud.rds.describe_db_parameter_groups()["DBParameterGroups"]

    names = [group["DBParameterGroupName"] for group in groups]
    assert names == [*(f"default.postgres{major}" for major in range(13, 19)), "own"]
    cloud.rds.delete_db_parameter_group(DBParameterGroupName="own")
    own = {"DBParameterGroupName": "own"}
    assert refusal(lambda: cloud.rds.describe_db_parameter_groups(**own)) == ("DBParameterGroupNotFound", 404)
    assert refusal(lambda: cloud.rds.delete_db_subnet_group(DBSubnetGroupName="own")) == (
        "DBSubnetGroupNotFoundFault",
        404,
    )


def test_parameters_show_who_set_them_and_the_offer_is_listed(cloud: Cloud) -> None:
    name = {"DBParameterGroupName": "own"}
    cloud.rds.create_db_parameter_group(**name, DBParameterGroupFamily="postgres14", Description="d")
    changed = {"ParameterName": "work_mem", "ParameterValue": "8192", "ApplyMethod": "immediate"}
    cloud.rds.modify_db_parameter_group(**name, Parameters=[changed])

    def parameters(**request: Any) -> dict[str, dict[str, Any]]:
        pages = cloud.rds.get_paginator("describe_db_parameters").paginate(**name, **request)
        return {parameter["ParameterName"]: parameter for page in pages for parameter in page["Parameters"]}

    assert {key: parameter["ParameterValue"] for key, parameter in parameters(Source="user").items()} == {
        "work_mem": "8192"
    }
    parameters_now = parameters()
    assert (parameters_now["work_mem"]["ApplyType"], parameters_now["max_connections"]["ApplyType"]) == (
        "dynamic",
        "static",
    )
    assert parameters_now["rds.force_ssl"]["ParameterValue"] == "0", "on by default from PostgreSQL 15"
    assert "ParameterValue" not in parameters_now["statement_timeout"]

    versions = cloud.rds.describe_db_engine_versions(Engine="postgres", EngineVersion="16.4")["DBEngineVersions"]
    targets = {target["EngineVersion"]: target for target in versions[0]["ValidUpgradeTarget"]}

    assert versions[0]["DBParameterGroupFamily"] == "postgres16"
    assert targets["16.10"]["AutoUpgrade"]
    assert targets["17.4"]["IsMajorVersionUpgrade"]
    assert "16.3" not in targets
    pages = cloud.rds.get_paginator("describe_orderable_db_instance_options").paginate(
        Engine="postgres", EngineVersion="16.4", DBInstanceClass="db.t4g.micro"
    )
    kinds = {option["StorageType"] for page in pages for option in page["OrderableDBInstanceOptions"]}
    assert kinds == {"standard", "gp2", "gp3", "io1", "io2"}
    certificates = cloud.rds.describe_certificates()
    assert certificates["DefaultCertificateForNewLaunches"] == "rds-ca-rsa2048-g1"
    assert len(certificates["Certificates"]) == 3
    cloud.create()
    used = {quota["AccountQuotaName"]: quota for quota in cloud.rds.describe_account_attributes()["AccountQuotas"]}
    assert (used["DBInstances"]["Used"], used["DBInstances"]["Max"]) == (1, 40)


def test_events_are_of_the_last_hour_by_source_and_carry_no_number(cloud: Cloud) -> None:
    cloud.created("db-1")
    cloud.created("db-2")
    source = {"SourceType": "db-instance", "SourceIdentifier": "db-1"}

    events = cloud.rds.describe_events(**source, EventCategories=["creation"])["Events"]
    assert [event["Message"] for event in events] == ["DB instance created"]
    assert set(events[0]) == {
        *("SourceIdentifier", "SourceType", "Message", "EventCategories", "Date", "SourceArn"),
    }
    cloud.advance(3700)
    assert cloud.rds.describe_events(**source)["Events"] == []
    assert len(cloud.rds.describe_events(**source, Duration=120)["Events"]) == 3


def _raw(cloud: Cloud, body: str) -> tuple[int, str]:
    url = f"{cloud.served.url}/"
    request = AWSRequest("POST", url, data=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    SigV4Auth(Credentials(*cloud.served.credentials), "rds", REGION).add_auth(request)
    sent = urllib.request.Request(url, data=body.encode(), headers=dict(request.headers), method="POST")  # noqa: S310 - our own server's
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(sent, timeout=60)  # noqa: S310 - as above
    return error.value.code, error.value.read().decode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Action=MakeDBInstance&Version=2014-10-31", "InvalidAction"),
        ("Action=DescribeDBInstances&Version=2009-01-01", "InvalidAction"),
        ("Action=DescribeDBInstances&Version=2014-10-31&MaxRecords=many", "InvalidParameterValue"),
        ("Action=StopDBInstance&Version=2014-10-31", "MissingParameter"),
        ("Action=ModifyDBInstance&Version=2014-10-31&DBInstanceIdentifier=a&MultiAZ=maybe", "InvalidParameterValue"),
        ("Action=DescribeEvents&Version=2014-10-31&StartTime=yesterday", "InvalidParameterValue"),
        ("", "InvalidAction"),
    ],
)
def test_a_request_that_is_none_is_refused_by_name(body: str, code: str, cloud: Cloud) -> None:
    status, text = _raw(cloud, body)

    assert status == 400
    assert f"<Code>{code}</Code>" in text
