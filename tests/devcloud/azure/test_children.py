"""What is in a server: databases, firewall rules, parameters."""

from __future__ import annotations

import pytest

from tests.devcloud.azure.conftest import Arm

RULE = {"startIpAddress": "10.0.0.1", "endIpAddress": "10.0.0.9"}


def test_parameter_counts_at_once_or_after_a_restart_and_goes_back_to_its_default(arm: Arm) -> None:
    arm.created()
    for name, value in (("work_mem", "8192"), ("max_connections", "100")):
        arm.until_done(arm.child(f"pg1/configurations/{name}", value=value, source="user-override"))

    dynamic = arm.get("pg1/configurations/work_mem")["properties"]
    static = arm.get("pg1/configurations/max_connections")["properties"]
    assert (dynamic["value"], dynamic["source"]) == ("8192", "user-override")
    assert (dynamic["isDynamicConfig"], dynamic["isConfigPendingRestart"]) == (True, False)
    assert (static["isDynamicConfig"], static["isConfigPendingRestart"]) == (False, True)
    arm.until_done(arm.call("POST", arm.path("pg1/restart")))
    static = arm.get("pg1/configurations/max_connections")["properties"]
    assert (static["value"], static["isConfigPendingRestart"]) == ("100", False)

    arm.until_done(arm.child("pg1/configurations/work_mem", value="4096", source="system-default"))

    shown = arm.get("pg1/configurations/work_mem")["properties"]
    assert (shown["value"], shown["defaultValue"], shown["source"]) == ("4096", "4096", "system-default")
    assert len(arm.get("pg1/configurations")["value"]) > 10


def test_upgrade_that_loses_an_extension_or_that_the_database_refuses_changes_nothing(arm: Arm) -> None:
    arm.created()
    arm.until_done(arm.child("pg1/configurations/azure.extensions", value="PG_TRGM,pgcrypto"))

    refused = arm.patch({"version": "18"})

    assert refused.refusal == (400, "MajorVersionUpgradeNotSupported")
    assert "extensions pgcrypto of" in refused.body["error"]["message"]
    arm.until_done(arm.child("pg1/configurations/azure.extensions", source="system-default"))
    assert arm.until_done(arm.patch({"version": "18"}))["status"] == "Failed"
    assert arm.get()["properties"]["version"] == "16"
    assert arm.until_done(arm.patch({"version": "17"}))["status"] == "Succeeded"
    assert arm.get()["properties"]["version"] == "17"


BAD_VALUE = (400, "InvalidParameterValue")


@pytest.mark.parametrize(
    ("rest", "body", "refusal"),
    [
        ("databases/app", {"collation": "xx"}, BAD_VALUE),
        ("firewallRules/r", {**RULE, "endIpAddress": "10.0.0.0"}, BAD_VALUE),
        ("configurations/work_mem", {"value": "much"}, BAD_VALUE),
        ("configurations/azure.extensions", {"value": "pg_trgm,sslinfo"}, BAD_VALUE),
        ("configurations/nothing", {"value": "1"}, (404, "ResourceNotFound")),
        ("configurations/server_version", {"value": "1"}, (400, "ConfigurationReadOnly")),
        ("databases/postgres", {"collation": "C"}, (409, "DatabaseAlreadyExists")),
    ],
)
def test_what_cannot_be_is_refused(rest: str, body: dict[str, str], refusal: tuple[int, str], arm: Arm) -> None:
    """REST reference: databases (set at creation), firewallRules, configurations (allowedValues, `isReadOnly`)."""
    arm.created()

    assert arm.child(f"pg1/{rest}", **body).refusal == refusal


def test_server_that_is_not_there_is_named_and_one_in_a_subnet_has_no_firewall_rules(arm: Arm) -> None:
    """Recorded, 2021-06-01: the sentence names the server."""
    reply = arm.call("DELETE", arm.path("none/configurations/pgaudit.log"))

    assert reply.refusal == (404, "ResourceNotFound")
    assert "flexibleServers/none'" in reply.body["error"]["message"]
    assert reply.headers["x-ms-failure-cause"] == "gateway"

    # "Networking overview": firewall rules are for public access alone.
    network = f"/subscriptions/{arm.served.subscription}/resourceGroups/n/providers/Microsoft.Network"
    subnet = {
        "delegatedSubnetResourceId": f"{network}/virtualNetworks/v/subnets/d",
        "privateDnsZoneArmResourceId": f"{network}/privateDnsZones/z",
    }
    shown = arm.created(network=subnet)["properties"]["network"]

    assert shown == {**subnet, "publicNetworkAccess": "Disabled"}
    assert arm.child("pg1/firewallRules/r", **RULE).refusal == (400, "FirewallRuleOperationsNotAllowed")
