"""What the API server itself refuses of Cloud SQL's kinds, and whether the sentence names the way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.gcp import CLOUD_SQL_DATABASE, CLOUD_SQL_INSTANCE, CLOUD_SQL_USER, GCP_CONFIG
from tests.support.kinds import Kind
from tests.support.rules import Case, assert_configs, assert_creations, assert_edits, stored

# A process at work would answer what is stored.
pytestmark = pytest.mark.usefixtures("alone")

NETWORK, OTHER_NETWORK = (f"projects/shop-prod-314159/global/networks/{name}" for name in ("default", "other"))
KEY = "projects/shop-prod-314159/locations/europe-west1/keyRings/r/cryptoKeys/k"
BACKUP = {"backup": "projects/shop-prod-314159/backups/1"}
INSTANCE: dict[str, Any] = {
    "region": "europe-west1",
    "databaseVersion": "POSTGRES_16",
    "tier": "db-custom-2-8192",
    "dataDiskSizeGb": 50,
    "dataDiskType": "PD_SSD",
    "privateNetwork": NETWORK,
    "ipv4Enabled": False,
}
CREATIONS = (
    Case("a plain one", {}),
    Case("restored", {"restoreFrom": BACKUP}),
    Case("with a window", {"maintenanceDay": 7, "maintenanceHour": 3}),
    Case("with half a window", {"maintenanceDay": 7}, "set both or neither"),
    Case("a second zone alone", {"secondaryZone": "europe-west1-c"}, "set both or neither"),
    Case(
        "to an instant without backups", {"pointInTimeRecoveryEnabled": True, "backupEnabled": False}, "needs backups"
    ),
    Case("our own label", {"userLabels": {"fairlead-identity": "x"}}, "does not begin with fairlead-"),
    Case("a label", {"userLabels": {"team": "x"}}),
    Case("a flag's name that is none", {"databaseFlags": {"Work Mem": "1"}}, "as work_mem"),
    Case("a word that Cloud SQL has not", {"diskSize": 5}, "unknown field"),
    Case("an edition that is not sold", {"edition": "DEVELOPER"}, "Unsupported value"),
)
EDITS = (
    Case(
        "the region is fixed",
        {"region": "us-central1"},
        "make a new CloudSQLInstance there and move the data",
    ),
    Case("the kind of disk is fixed", {"dataDiskType": "PD_HDD"}, "make a new CloudSQLInstance from a backup"),
    Case("the kind of disk stays named", {"dataDiskType": None}, "dataDiskType is fixed at creation"),
    Case("service connect is fixed", {"pscEnabled": True}, "pscEnabled is fixed at creation; make a new"),
    Case("the collation is fixed", {"collation": "C"}, "make a new CloudSQLInstance and move the data"),
    Case("the key is fixed", {"kmsKeyName": KEY}, "kmsKeyName is fixed at creation; make a new CloudSQLInstance from"),
    Case("the source is fixed", {"restoreFrom": BACKUP}, "make a new CloudSQLInstance with the other source"),
    Case("the network is not exchanged", {"privateNetwork": OTHER_NETWORK}, "from a backup with restoreFrom"),
    Case("the network is not removed", {"privateNetwork": None}, "cannot be removed or exchanged"),
    Case("the disk does not shrink", {"dataDiskSizeGb": 20}, "make a smaller CloudSQLInstance and move the data"),
    Case("the disk grows", {"dataDiskSizeGb": 100}),
    Case("the tier changes", {"tier": "db-custom-4-16384"}),
    Case("the version rises", {"databaseVersion": "POSTGRES_17"}),
    Case("the edition changes", {"edition": "ENTERPRISE_PLUS"}),
)


async def test_the_rules_of_instances(api: Api, namespace: str) -> None:
    await assert_creations(api, CLOUD_SQL_INSTANCE, namespace, INSTANCE, CREATIONS)
    created = await stored(api, CLOUD_SQL_INSTANCE, namespace, INSTANCE, dataDiskSizeGb=50)
    await assert_edits(api, CLOUD_SQL_INSTANCE, created, EDITS)


DATABASE = {"instance": "fl-orders", "name": "orders", "charset": "UTF8"}
USER = {"instance": "fl-orders", "name": "orders", "database": "fl-orders/orders"}
BY_REFERENCE = {"instance": None, "instanceRef": {"name": "orders"}}
INSIDE = (
    (
        CLOUD_SQL_DATABASE,
        DATABASE,
        (
            Case("the same", {}),
            Case("the instance is fixed", {"instance": "fl-other"}, "make another object for the other instance"),
            Case("it is not named otherwise either", BY_REFERENCE, "instance is fixed at creation"),
            Case("two instances", {"instanceRef": {"name": "orders"}}, "give one of the two"),
            Case("the name is fixed", {"name": "other"}, "make another CloudSQLDatabase and move the data"),
            Case("the charset is fixed", {"charset": "LATIN1"}, "charset is fixed at creation; make another"),
            Case("the collation is fixed", {"collation": "C"}, "collation is fixed at creation; make another"),
        ),
    ),
    (
        CLOUD_SQL_USER,
        USER,
        (
            Case("the same", {}),
            Case("roles change", {"databaseRoles": ["readers"]}),
            Case("another database", {"database": "fl-orders/other"}),
            Case("the instance is fixed", {"instance": "fl-other"}, "make another object for the other instance"),
            Case("the name is fixed", {"name": "other"}, "name is fixed at creation; make another CloudSQLUser"),
            Case("the type is fixed", {"type": "CLOUD_IAM_USER"}, "type is fixed at creation; make another"),
            Case(
                "the logins are fixed",
                {"logins": "Alternating", "databaseRoles": ["owner"]},
                "logins is fixed at creation; make another CloudSQLUser",
            ),
            Case("two databases", {"databaseRef": {"name": "orders"}}, "give one of the two"),
        ),
    ),
)


@pytest.mark.parametrize(("kind", "fields", "cases"), INSIDE, ids=[kind.kind for kind, _, _ in INSIDE])
async def test_the_rules_of_what_is_inside_an_instance(
    api: Api, namespace: str, kind: Kind, fields: dict[str, Any], cases: tuple[Case, ...]
) -> None:
    await assert_edits(api, kind, await stored(api, kind, namespace, fields), cases)


CONFIG: dict[str, Any] = {"project": "shop-prod-314159", "credentials": {"source": "MetadataServer"}}
CONFIGS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, ""),
    ({"credentials": {"source": "ServiceAccountKey"}}, "secretRef belongs to"),
    ({"credentials": {"source": "ServiceAccountKey", "secretRef": {"name": "key"}}}, ""),
    ({"credentials": {"source": "MetadataServer", "secretRef": {"name": "key"}}}, "secretRef belongs to"),
    ({"credentials": {"source": "Default"}}, "Unsupported value"),
    ({"project": "Shop"}, "should match"),
)


async def test_the_rules_of_a_providerconfig(api: Api) -> None:
    cases = [Case(str(edit), edit, refused) for edit, refused in CONFIGS]
    await assert_configs(api, GCP_CONFIG, CONFIG, cases)
