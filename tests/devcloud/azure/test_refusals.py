"""What Azure refuses of a server, each with the place that says so; no refusal has an effect.

Sources: `MODEL` are the models of azure-mgmt-rdbms 10.1.1 and azure-mgmt-postgresqlflexibleservers 3.0.0, which say of
each property whether it is read, created or updated; the others are pages of Azure Database for PostgreSQL flexible
server, and of Azure Resource Manager (`ARM`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from devcloud.azure.entra.directory import SUBSCRIPTION
from tests.devcloud.azure.conftest import PASSWORD, SERVER, Arm

MODEL = "azure-mgmt-postgresqlflexibleservers 3.0.0, models"
STORAGE = "Storage options: sizes of Premium SSD; storage can only be scaled up"
NAMES = "Server concepts; CheckNameAvailability: 3 to 63 small letters, digits and hyphens"
PASSWORDS = "Create a server: 8 to 128 characters of three of four classes"
ARM = "Azure Resource Manager: resolve common deployment errors"
LONG = "Aa1-" * 40
WHOLE = SERVER["properties"]
_NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/n/providers/Microsoft.Network"
SUBNET, ZONE = f"{_NETWORK}/virtualNetworks/v/subnets/d", f"{_NETWORK}/privateDnsZones/z"


class Case(msgspec.Struct, frozen=True):
    says: str
    source: str
    method: str
    properties: dict[str, Any]
    code: str
    status: int = 400
    name: str = "present"
    envelope: dict[str, Any] = {}
    version: str = "2025-08-01"


def new(says: str, source: str, code: str, /, **properties: Any) -> Case:
    return Case(says, source, "PUT", {**WHOLE, **properties}, code, name="fresh")


def edit(says: str, source: str, code: str, /, **properties: Any) -> Case:
    return Case(says, source, "PATCH", properties, code)


def named(says: str, name: str) -> Case:
    return Case(says, NAMES, "PUT", WHOLE, "InvalidServerName", name=name)


def placed(says: str, code: str, /, **envelope: Any) -> Case:
    return Case(says, ARM, "PUT", WHOLE, code, name="fresh", envelope=envelope)


def sized(says: str, name: str, tier: str) -> Case:
    return Case(says, MODEL, "PATCH", {}, VALUE, envelope={"sku": {"name": name, "tier": tier}})


VALUE, MISSING, FIXED = "InvalidParameterValue", "MissingRequiredParameter", "PropertyChangeNotAllowed"
CASES = (
    new("a size that no disk has", STORAGE, VALUE, storage={"storageSizeGB": 100}),
    new("a version that there is not", "Supported versions", VALUE, version="12"),
    new("no administrator", MODEL, MISSING, administratorLogin=None),
    new("no password", MODEL, MISSING, administratorLoginPassword=None),
    new("a reserved administrator", "Create a server: administrator", VALUE, administratorLogin="azure_superuser"),
    new("an administrator that begins with pg_", "Create a server: administrator", VALUE, administratorLogin="pg_me"),
    new("a short password", PASSWORDS, "PasswordTooShort", administratorLoginPassword="Aa1-"),
    new("a long password", PASSWORDS, "PasswordTooLong", administratorLoginPassword=LONG),
    new("a simple password", PASSWORDS, "PasswordNotComplex", administratorLoginPassword="aaaaaaaaa1"),
    new("a password with the login", PASSWORDS, "PasswordNotComplex", administratorLoginPassword="A1-myAdmin-1"),
    new("too few days of backups", "Backup and restore: 7 to 35 days", VALUE, backup={"backupRetentionDays": 6}),
    new("too many days of backups", "Backup and restore: 7 to 35 days", VALUE, backup={"backupRetentionDays": 36}),
    new("a word that is none of an enum", MODEL, VALUE, highAvailability={"mode": "Often"}),
    new("a number in words", MODEL, VALUE, storage={"storageSizeGB": "128"}),
    new("a day after Saturday", MODEL, VALUE, maintenanceWindow={"dayOfWeek": 7}),
    new("a zone that there is not", MODEL, VALUE, availabilityZone="4"),
    new("a subnet without a DNS zone", "Networking overview", MISSING, network={"delegatedSubnetResourceId": SUBNET}),
    new("a copy of nothing", MODEL, MISSING, createMode="PointInTimeRestore"),
    new("a copy without a moment", MODEL, MISSING, createMode="PointInTimeRestore", sourceServerResourceId="/none"),
    new("an unknown property", "the simulation's own", "InvalidRequestContent", storge={"storageSizeGB": 128}),
    new("a mode that is not simulated", "the simulation's own", "CreateModeNotSupported", createMode="Replica"),
    Case("an update of nothing", MODEL, "PUT", {"createMode": "Update"}, "ResourceNotFound", 404, "fresh"),
    Case(
        "a creation of what is there", MODEL, "PUT", {**WHOLE, "createMode": "Create"}, "ServerNameAlreadyExists", 409
    ),
    named("a name in capitals", "Fresh"),
    named("a short name", "ab"),
    named("a name with a hyphen at its end", "fresh-"),
    placed("no region", "LocationRequired", location=None),
    placed("a region without the service", "LocationNotAvailableForResourceType", location="moonbase"),
    placed("no size", MISSING, sku=None),
    Case("another region", ARM, "PUT", {}, "InvalidResourceLocation", 409, envelope={"location": "westeurope"}),
    Case(
        "tags that differ in letter case alone",
        ARM,
        "PATCH",
        {},
        "InvalidTags",
        envelope={"tags": {"a": "1", "A": "2"}},
    ),
    sized("a size of another tier", "Standard_B1ms", "GeneralPurpose"),
    sized("a tier that there is not", "Standard_B1ms", "Basic"),
    edit("less storage", STORAGE, VALUE, storage={"storageSizeGB": 64}),
    edit("an older version", "Major version upgrades", VALUE, version="15"),
    edit("another administrator", MODEL, FIXED, administratorLogin="other"),
    edit("another redundancy of backups", MODEL, FIXED, backup={"geoRedundantBackup": "Enabled"}),
    edit("another zone", MODEL, FIXED, availabilityZone="3"),
    edit(
        "a subnet later",
        "Networking overview",
        FIXED,
        network={"delegatedSubnetResourceId": SUBNET, "privateDnsZoneArmResourceId": ZONE},
    ),
    edit("another kind of encryption", "Data encryption", FIXED, dataEncryption={"type": "AzureKeyVault"}),
    edit("a create mode of creations", MODEL, VALUE, createMode="Create"),
    edit("a simple password later", PASSWORDS, "PasswordNotComplex", administratorLoginPassword="aaaaaaaaa1"),
    Case(
        "a standby of the smallest tier",
        "High availability: not for Burstable",
        "PATCH",
        {"highAvailability": {"mode": "ZoneRedundant"}},
        "HAForBurstableNotSupported",
        envelope={"sku": {"name": "Standard_B2s", "tier": "Burstable"}},
    ),
    Case("an upgrade by a version that has none", MODEL, "PATCH", {"version": "17"}, FIXED, version="2021-06-01"),
    Case("a version of later", MODEL, "PUT", {**WHOLE, "version": "18"}, VALUE, name="fresh", version="2024-08-01"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_refusal(case: Case, arm: Arm) -> None:
    before = arm.created("present")
    envelope = {"location": "uksouth", "sku": SERVER["sku"], **case.envelope} if case.method == "PUT" else case.envelope
    sent = {name: value for name, value in envelope.items() if value is not None}
    properties = {name: value for name, value in case.properties.items() if value is not None}

    reply = arm.call(case.method, arm.path(case.name), {**sent, "properties": properties}, version=case.version)

    assert reply.refusal == (case.status, case.code), reply.body
    for password in (PASSWORD, LONG, "aaaaaaaaa1"):
        assert password not in str(reply.body)
    assert arm.get("present") == before
    assert list(arm.control("GET", "servers")) == ["present"]


def test_name_that_another_subscription_has_is_taken(arm: Arm) -> None:
    """Names are those of DNS, for all of Azure (CheckNameAvailability)."""
    arm.created()
    arm.call("PUT", f"{arm.group_path}-2", {"location": "uksouth"}, version="2020-06-01")

    path = arm.path().replace("/rg/", "/rg-2/")
    reply = arm.call("PUT", path, SERVER)

    assert reply.refusal == (409, "ServerNameAlreadyExists")
    assert arm.call("GET", path).refusal == (404, "ResourceNotFound")


INSIDE = {
    "databases/app": {"charset": "UTF8"},
    "firewallRules/office": {"startIpAddress": "10.0.0.1", "endIpAddress": "10.0.0.9"},
    "configurations/work_mem": {"value": "8192", "source": "user-override"},
}


@pytest.mark.parametrize(("honoured", "status"), [(False, 202), (True, 412)])
@pytest.mark.parametrize("rest", ["", *INSIDE])
def test_condition_of_a_put_counts_where_tests_say_so(*, honoured: bool, status: int, rest: str, arm: Arm) -> None:
    """No recording shows an ETag of a flexible server: by default the condition is passed over."""
    arm.created()
    path, body = arm.path(f"pg1/{rest}") if rest else arm.path(), {"properties": INSIDE[rest]} if rest else SERVER
    if rest:
        arm.until_done(arm.call("PUT", path, body))
    arm.behave(honours_if_none_match=honoured)

    assert arm.call("PUT", path, body, headers={"If-None-Match": "*"}).status == status


def test_condition_of_a_put_lets_what_is_new_pass(arm: Arm) -> None:
    arm.created()
    arm.behave(honours_if_none_match=True)

    for rest in ("databases/app", "firewallRules/office"):
        body, headers = {"properties": INSIDE[rest]}, {"If-None-Match": "*"}
        accepted = arm.call("PUT", arm.path(f"pg1/{rest}"), body, headers=headers)
        assert accepted.status == 202
        arm.until_done(accepted)


def test_database_that_somebody_makes_behind_the_api_is_shown(arm: Arm) -> None:
    arm.created()
    path = "servers/pg1/databases/theirs"
    arm.control("POST", path, {"charset": "UTF8", "collation": "C"})
    assert arm.get("pg1/databases/theirs")["properties"] == {"charset": "UTF8", "collation": "C"}

    arm.control("DELETE", path)
    assert arm.call("GET", arm.path("pg1/databases/theirs")).refusal == (404, "ResourceNotFound")
