"""The protocol as clients meet it: pages, filters, markers, escapes, request ids; and what is offered."""

from __future__ import annotations

from typing import Any

from tests.devcloud.aws.conftest import Cloud


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
    assert len(cloud.rds.describe_db_parameters(**name)["Parameters"]) < len(parameters_now)
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
