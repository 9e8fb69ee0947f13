"""What the API server itself refuses of Azure's kinds, and whether the sentence names the way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.azure import AZURE_CONFIG, CONFIGURATION, FIREWALL_RULE, FLEXIBLE_SERVER, SERVER_DATABASE
from tests.support.rules import Case, assert_configs, assert_creations, assert_edits, stored

# A process at work would answer what is stored.
pytestmark = pytest.mark.usefixtures("alone")

SUBNET = "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/p"
OTHER = "/subscriptions/s/resourceGroups/r/providers/Microsoft.DBforPostgreSQL/flexibleServers/other"
SERVER: dict[str, Any] = {
    "resourceGroupName": "databases",
    "location": "westeurope",
    "administratorLogin": "orders",
    "skuName": "Standard_D2ds_v5",
    "skuTier": "GeneralPurpose",
    "version": "16",
    "storageSizeGB": 128,
}


CREATIONS = (
    Case("a plain one", {}),
    Case("in a subnet", {"delegatedSubnetResourceId": SUBNET, "privateDnsZoneArmResourceId": SUBNET}),
    Case("on the internet", {"publicNetworkAccess": "Enabled"}),
    Case(
        "in a subnet and on the internet",
        {"delegatedSubnetResourceId": SUBNET, "publicNetworkAccess": "Enabled"},
        "leave publicNetworkAccess out",
    ),
    Case("a zone without a subnet", {"privateDnsZoneArmResourceId": SUBNET}, "give both"),
    Case("a reserved login", {"administratorLogin": "azure_superuser"}, "reserved by PostgreSQL or by Azure"),
    Case("a key without who uses it", {"primaryKeyURI": "https://vault.example/keys/k/1"}, "may use the key"),
    Case("tokens of no tenant", {"activeDirectoryAuth": "Enabled"}, "whose people and applications"),
    Case("a restore", {"createMode": "PointInTimeRestore", "sourceServerResourceId": OTHER}),
    Case("a restore of a claim", {"createMode": "PointInTimeRestore", "sourceClaim": "orders"}),
    Case("a restore of nothing", {"createMode": "PointInTimeRestore"}, "needs its source"),
    Case("a source without a restore", {"sourceClaim": "orders"}, "no other has one"),
    Case(
        "two sources",
        {"createMode": "GeoRestore", "sourceServerResourceId": OTHER, "sourceClaim": "orders"},
        "give one of the two",
    ),
    Case("an instant of nothing", {"pointInTimeUTC": "2026-11-20T12:00:00Z"}, "belongs to createMode"),
    Case("our own tag", {"tags": {"Fairlead-installation": "x"}}, "reserved"),
    Case("a tag of Azure's", {"tags": {"Microsoft.x": "x"}}, "reserved"),
    Case("a tag", {"tags": {"team": "x"}}),
    Case("a replica", {"createMode": "Replica", "sourceServerResourceId": OTHER}, "Unsupported value"),
    Case("a word that Azure has not", {"storageSize": 5}, "unknown field"),
)
EDITS = (
    Case("storage may grow", {"storageSizeGB": 256}),
    Case("storage may not shrink", {"storageSizeGB": 64}, "make a new smaller FlexibleServer"),
    Case("a version goes up", {"version": "17"}),
    Case("a version does not go down", {"version": "15"}, "restore an instant of before the upgrade"),
    Case("the login is fixed", {"administratorLogin": "other"}, "make further logins with SQL"),
    Case("the group is fixed", {"resourceGroupName": "others"}, "resourceGroupName is fixed at creation"),
    Case("the location is fixed", {"location": "uksouth"}, "location is fixed at creation"),
    Case("the network is fixed", {"delegatedSubnetResourceId": SUBNET}, "make a new FlexibleServer and move the data"),
    Case("the zone is fixed", {"availabilityZone": "2"}, "enable high availability and fail over"),
    Case("geo backups are fixed", {"geoRedundantBackup": "Enabled"}, "geoRedundantBackup is fixed at creation"),
    Case("the kind of storage is fixed", {"storageType": "PremiumV2_LRS"}, "storageType is fixed at creation"),
    Case("a size is changed", {"skuName": "Standard_D4ds_v5"}),
)


async def test_the_rules_of_servers(api: Api, namespace: str) -> None:
    await assert_creations(api, FLEXIBLE_SERVER, namespace, SERVER, CREATIONS)
    created = await stored(api, FLEXIBLE_SERVER, namespace, SERVER, version="16", storageSizeGB=128)
    await assert_edits(api, FLEXIBLE_SERVER, created, EDITS)


NAME = "databases/fl-orders"
CHILDREN = (
    (SERVER_DATABASE, {"name": "orders", "server": NAME}, ""),
    (SERVER_DATABASE, {"name": "orders", "serverRef": {"name": "orders"}}, ""),
    (SERVER_DATABASE, {"name": "orders"}, "give one of the two"),
    (SERVER_DATABASE, {"name": "postgres", "server": NAME}, "choose another one"),
    (FIREWALL_RULE, {"cidr": "203.0.113.0/24", "server": NAME}, ""),
    (FIREWALL_RULE, {"startIpAddress": "1.2.3.4", "endIpAddress": "1.2.3.9", "server": NAME}, ""),
    (FIREWALL_RULE, {"startIpAddress": "1.2.3.4", "server": NAME}, "give the range in one of two ways"),
    (FIREWALL_RULE, {"server": NAME}, "give the range in one of two ways"),
    (FIREWALL_RULE, {"cidr": "2001:db8::/32", "server": NAME}, "should match"),
    (CONFIGURATION, {"name": "work_mem", "value": "64MB", "server": NAME}, ""),
    (CONFIGURATION, {"name": "azure.extensions", "value": "", "server": NAME}, ""),
    (
        CONFIGURATION,
        {"name": "require_secure_transport", "value": "off", "server": NAME},
        "leave require_secure_transport as Azure sets it",
    ),
)


async def test_the_rules_of_what_is_inside_a_server(api: Api, namespace: str) -> None:
    for kind, fields, refused in CHILDREN:
        await assert_creations(api, kind, namespace, {}, [Case(f"{kind.kind} {fields}", fields, refused)])


CONFIG: dict[str, Any] = {
    "subscriptionID": "11111111-2222-3333-4444-555555555555",
    "credentials": {"source": "WorkloadIdentity"},
}
CONFIGS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, ""),
    ({"cloud": "AzureUSGovernment", "endpoint": "https://arm.example", "authorityHost": "https://arm.example"}, ""),
    ({"subscriptionID": "mine"}, "should match"),
    ({"credentials": {"source": "ClientSecret"}}, "set both or neither"),
    ({"credentials": {"source": "ClientSecret", "secretRef": {"name": "keys"}}}, ""),
    ({"credentials": {"source": "WorkloadIdentity", "secretRef": {"name": "keys"}}}, "set both or neither"),
    ({"credentials": {"source": "ManagedIdentity", "tenantID": CONFIG["subscriptionID"]}}, "a machine has one"),
    ({"authorityHost": "http://login.example"}, "should match"),
)


async def test_the_rules_of_a_providerconfig(api: Api) -> None:
    cases = [Case(str(edit), edit, refused) for edit, refused in CONFIGS]
    await assert_configs(api, AZURE_CONFIG, CONFIG, cases)
