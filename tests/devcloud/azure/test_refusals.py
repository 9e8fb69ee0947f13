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
    new("a password with the login", PASSWORDS, "PasswordNotComplex", administratorLoginPassword="A1-myAdmin-1"),
    new("too many days of backups", "Backup and restore: 7 to 35 days", VALUE, backup={"backupRetentionDays": 36}),
    new("a subnet without a DNS zone", "Networking overview", MISSING, network={"delegatedSubnetResourceId": SUBNET}),
    new("an unknown property", "the simulation's own", "InvalidRequestContent", storge={"storageSizeGB": 128}),
    Case(
        "a creation of what is there", MODEL, "PUT", {**WHOLE, "createMode": "Create"}, "ServerNameAlreadyExists", 409
    ),
    named("a name in capitals", "Fresh"),
    placed("a region without the service", "LocationNotAvailableForResourceType", location="moonbase"),
    Case("another region", ARM, "PUT", {}, "InvalidResourceLocation", 409, envelope={"location": "westeurope"}),
    sized("a size of another tier", "Standard_B1ms", "GeneralPurpose"),
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
    Case(
        "a standby of the smallest tier",
        "High availability: not for Burstable",
        "PATCH",
        {"highAvailability": {"mode": "ZoneRedundant"}},
        "HAForBurstableNotSupported",
        envelope={"sku": {"name": "Standard_B2s", "tier": "Burstable"}},
    ),
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
