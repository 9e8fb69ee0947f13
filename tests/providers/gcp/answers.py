"""What Cloud SQL answers of an instance, after recorded exchanges of the public API."""

from __future__ import annotations

from typing import Any

from providers.external.client import Target
from providers.external.observation import Observed
from providers.external.ownership import Owner
from providers.gcp.instances import translate
from providers.gcp.instances.facts import Facts
from providers.gcp.models import CloudSQLInstanceParameters

OWNER = Owner(
    "a1b2c3d4e5f60718",
    "00000000-0000-4000-8000-000000000000",
    "0123456789abcdef",
    "shop",
    "orders.v2",
    "instance",
    "11111111-0000-4000-8000-000000000000",
)
CREATED = "2026-11-01T12:34:56.123Z"


def spec(**fields: Any) -> CloudSQLInstanceParameters:
    """Return a spec with the fields that are required, and others."""
    required = {"region": "us-central1", "database_version": "POSTGRES_16", "tier": "db-custom-1-3840"}
    return CloudSQLInstanceParameters(**{**required, **fields})


def target(wanted: CloudSQLInstanceParameters | None = None, **more: Any) -> Target[CloudSQLInstanceParameters]:
    """Return whom an instance is for."""
    return Target("fl-orders-abcdefghij", wanted or spec(), OWNER, "abcdefghij", **more)


def instance(**settings: Any) -> dict[str, Any]:
    """Return an instance as instances.get shows a new one; `settings` stand in place of its own."""
    return {
        "name": "fl-orders-abcdefghij",
        "project": "shop-prod-314159",
        "region": "us-central1",
        "state": "RUNNABLE",
        "createTime": CREATED,
        "databaseVersion": "POSTGRES_16",
        "databaseInstalledVersion": "POSTGRES_16_9",
        "maintenanceVersion": "POSTGRES_16_9.R20250302.00_31",
        "connectionName": "shop-prod-314159:us-central1:fl-orders-abcdefghij",
        "gceZone": "us-central1-a",
        "ipAddresses": [
            {"ipAddress": "203.0.113.7", "type": "PRIMARY"},
            {"ipAddress": "203.0.113.8", "type": "OUTGOING"},
        ],
        "serverCaCert": {"cert": "PEM-1\n", "sha1Fingerprint": "12345678"},
        "settings": {
            "activationPolicy": "ALWAYS",
            "authorizedGaeApplications": [],
            "availabilityType": "ZONAL",
            "backupConfiguration": {
                "backupRetentionSettings": {"retainedBackups": 7, "retentionUnit": "COUNT"},
                "backupTier": "STANDARD",
                "enabled": False,
                "startTime": "12:00",
                "transactionLogRetentionDays": 7,
            },
            "connectorEnforcement": "NOT_REQUIRED",
            "dataDiskSizeGb": "10",
            "dataDiskType": "PD_SSD",
            "deletionProtectionEnabled": False,
            "edition": "ENTERPRISE",
            "ipConfiguration": {
                "authorizedNetworks": [],
                "ipv4Enabled": True,
                "requireSsl": False,
                "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
            },
            "locationPreference": {"zone": "us-central1-a"},
            "pricingPlan": "PER_USE",
            "replicationLagMaxSeconds": 31536000,
            "replicationType": "SYNCHRONOUS",
            "settingsVersion": "123",
            "storageAutoResize": True,
            "storageAutoResizeLimit": "0",
            "tier": "db-custom-1-3840",
            **settings,
        },
    }


def seen(
    wanted: CloudSQLInstanceParameters | None = None, answer: dict[str, Any] | None = None
) -> Observed[CloudSQLInstanceParameters, Facts]:
    """Return an answer as it is observed for a spec."""
    return translate.observed(instance() if answer is None else answer, target(wanted))
