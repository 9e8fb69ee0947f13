"""An instance's settings as the API shows them: what Google adds by itself, what a change makes of them. Pure.

The defaults are those of the recorded instances: fields that nobody sent come back with every answer.
"""

import copy
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
"""A resource, or a part of one, as JSON has it: 64-bit numbers are strings."""

UNSPECIFIED_LOGS = "TRANSACTIONAL_LOG_STORAGE_STATE_UNSPECIFIED"
# Fields that are taken and never shown.
WRITE_ONLY = frozenset({"rootPassword"})
# What a caller sends and the service decides.
_OUTPUT_ONLY = frozenset(
    {
        *("state", "project", "connectionName", "ipAddresses", "serverCaCert", "selfLink", "createTime", "etag"),
        *("gceZone", "secondaryGceZone", "databaseInstalledVersion", "backendType", "upgradableDatabaseVersions"),
        *("serviceAccountEmailAddress", "satisfiesPzi", "satisfiesPzs", "availableMaintenanceVersions", "dnsName"),
        *("currentDiskSize", "diskEncryptionStatus", "suspensionReason", "ipv6Address", "writeEndpoint", "kind"),
    }
)


def defaults(edition: str, zone: str) -> Json:
    """Return the settings of an instance for which nothing but a tier was asked."""
    plus = edition == "ENTERPRISE_PLUS"
    return {
        "activationPolicy": "ALWAYS",
        "authorizedGaeApplications": [],
        "availabilityType": "ZONAL",
        "backupConfiguration": {
            "backupRetentionSettings": {"retainedBackups": 15 if plus else 7, "retentionUnit": "COUNT"},
            "backupTier": "STANDARD",
            "enabled": False,
            "kind": "sql#backupConfiguration",
            "startTime": "12:00",
            "transactionLogRetentionDays": 14 if plus else 7,
            "transactionalLogStorageState": UNSPECIFIED_LOGS,
        },
        "connectorEnforcement": "NOT_REQUIRED",
        "dataDiskSizeGb": "10",
        "dataDiskType": "PD_SSD",
        "deletionProtectionEnabled": False,
        "edition": edition,
        "ipConfiguration": {
            "authorizedNetworks": [],
            "ipv4Enabled": True,
            "requireSsl": False,
            "sslMode": "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
        },
        "kind": "sql#settings",
        "locationPreference": {"kind": "sql#locationPreference", "zone": zone},
        "pricingPlan": "PER_USE",
        "replicationLagMaxSeconds": 31_536_000,
        "replicationType": "SYNCHRONOUS",
        "settingsVersion": "1",
        "storageAutoResize": True,
        "storageAutoResizeLimit": "0",
    }


def of_edition(edition: str, before: Mapping[str, Any]) -> Json:
    """Return what another edition changes by itself: how much is kept by default, and whether the cache is on.

    Source: recorded changes of edition, by Config Connector's mock of Cloud SQL.
    """
    usual, former = (defaults(name, "")["backupConfiguration"] for name in (edition, before.get("edition", "")))
    kept = before["backupConfiguration"]
    backups: Json = {}
    if kept["transactionLogRetentionDays"] == former["transactionLogRetentionDays"]:
        backups["transactionLogRetentionDays"] = usual["transactionLogRetentionDays"]
    if kept["backupRetentionSettings"] == former["backupRetentionSettings"]:
        backups["backupRetentionSettings"] = usual["backupRetentionSettings"]
    return {"backupConfiguration": backups, "dataCacheConfig": {"dataCacheEnabled": edition == "ENTERPRISE_PLUS"}}


def merged(present: Json, change: Mapping[str, Any]) -> Json:
    """Return a resource after a patch, as Google has it: objects merge, lists and values replace, null clears.

    Source: "Working with partial resources" of the Google APIs; for `userLabels` gcloud, whose `sql instances patch`
    sends null for each label that it removes and nothing for those that stay.
    """
    result = copy.deepcopy(present)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = merged(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = copy.deepcopy(value)
    return result


def chosen(body: Mapping[str, Any]) -> Json:
    """Return of a body what the caller may choose; what the service decides is passed over, as Google does."""
    passed_over = _OUTPUT_ONLY | WRITE_ONLY
    return {name: value for name, value in body.items() if name not in passed_over and value is not None}


def settled(settings: Json, dropped: tuple[str, ...] = ()) -> Json:
    """Return settings as the service keeps them: kinds filled in, spellings made one, dropped fields gone."""
    result = {name: value for name, value in copy.deepcopy(settings).items() if name not in dropped}
    ip = result["ipConfiguration"]
    for network in ip["authorizedNetworks"]:
        network["kind"] = "sql#aclEntry"
    if "sslMode" in ip:
        ip["requireSsl"] = ip["sslMode"] == "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
    for name in {"maintenanceWindow", "locationPreference"} & result.keys():
        result[name]["kind"] = f"sql#{name}"
    insights = result.get("insightsConfig")
    if insights is not None and insights.get("queryInsightsEnabled"):
        result["insightsConfig"] = {"queryPlansPerMinute": 5, "queryStringLength": 1024, **insights}
    _settle_logs(result["backupConfiguration"])
    return result


def _settle_logs(backups: Json) -> None:
    if "pointInTimeRecoveryEnabled" not in backups:
        return
    # Shown beside it once somebody sent it (recorded).
    backups["replicationLogArchivingEnabled"] = backups["pointInTimeRecoveryEnabled"]
    unspecified = backups.get("transactionalLogStorageState", UNSPECIFIED_LOGS) == UNSPECIFIED_LOGS
    if backups["pointInTimeRecoveryEnabled"] and unspecified:
        backups["transactionalLogStorageState"] = "CLOUD_STORAGE"
