"""Every reference by name in a spec has a row that says what proves whose the thing is that it leads to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from composer.render.operators.table import KINDS
from fairlead.yaml_files import objects_in
from tests.architecture.tree import CRDS, ROOT

_PAGE: Final = (ROOT / "docs" / "dev" / "references.md").read_text(encoding="utf-8")
_ROWS: Final = [row for row in _PAGE.splitlines() if row.startswith("| `")]
_PATTERNS: Final = [pattern for row in _ROWS for pattern in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
# Fields, most by their last word, whose texts are no names of anything else.
_TEXTS_TEXT: Final = """
    Cluster.spec.backup.target Composition.offers.*.refused Composition.offers.*.values.[]
    Composition.passwords.[].name Composition.resources.[].name
    Database.spec.extensions.name FlexibleServer.spec.backup FlexibleServersConfiguration.spec.source
    ScheduledBackup.spec.target activationPolicy administratorLogin allocatedStorage allowConnections
    allowMajorVersionUpgrade allowedCIDRs allowedSourceRanges authorizedNetworks autoMinorVersionUpgrade
    availabilityType availabilityZone availabilityZones backupConfiguration backupLocation backupOwnerReference
    backupRetentionPeriod backupStartTime builtinLocale caBundle carriedOut charset cidr classes collation
    connectionLimit connectorEnforcement copyTagsToSnapshot dataCacheConfig databaseFlags databaseName
    databaseReclaimPolicy databaseVersion dbClusterInstanceClass dbInstanceClass dbName dbParameterGroupFamily
    dbSubnetGroupDescription deletionPolicy deletionProtection deletionProtectionEnabled denyMaintenancePeriod
    deploymentStrategy description diskAutoresize diskAutoresizeLimit diskSize diskType edition
    enableCloudwatchLogsExports enableConnectionPooler enableLogicalBackup enablePDB enablePodAntiAffinity
    enablePodMonitor enableReplicaConnectionPooler enableSuperuserAccess encoding endDate endIpAddress engine
    engineMode engineVersion ensure extensions failoverDelay failsafe_mode family
    finalDBSnapshotIdentifierPrefix floors forEach hash highAvailability icuLocale ignoreFields immediate
    insightsConfig instances iops ipv4Enabled key lcCollate lcCtype licenseModel locale localeCType
    localeCollate localeProvider location locationPreference logLevel logicalBackupSchedule loop_wait
    maintenanceVersion maintenanceWindow maintenanceWindows manageMasterUserPassword masterUsername
    maxAllocatedStorage maxDBConnections maxStopDelay maxSwitchoverDelay maxSyncReplicas maximum_lag_on_failover
    method minSyncReplicas mode multiAZ namePrefix networkType nodeMaintenanceWindow numberOfInstances online
    onlineConfiguration parameterOverrides parameters passwordPolicy passwordValidationPolicy paused
    performanceInsightsEnabled performanceInsightsRetentionPeriod podAntiAffinityType pointInTimeUTC poolMode
    port preferredBackupWindow preferredMaintenanceWindow pricingPlan primaryUpdateMethod primaryUpdateStrategy
    publicNetworkAccess publiclyAccessible readyWhen region requireSsl resizeInUseVolumes resources
    retentionPolicy retry_timeout scalingConfiguration schedule schema secondaryZone
    serverlessV2ScalingConfiguration size sku skuName smartShutdownTimeout sslMode standbyAvailabilityZone
    startDate startDelay startIpAddress startTime stopDelay storage storageEncrypted storageThroughput
    storageTier storageType suspend switchoverDelay synchronous synchronous_mode synchronous_mode_strict
    synchronous_node_count tags throughput tier tiers time token topologyKey ttl type userLabels username value
    version waves when zone
"""
_TEXTS: Final = frozenset(_TEXTS_TEXT.split())


def _leaves(schema: Any, path: str) -> Iterator[str]:
    """Yield the paths of a schema's free texts: a new kind of thing is named by one of those."""
    for name, below in (schema.get("properties") or {}).items():
        yield from _leaves(below, f"{path}.{name}")
    if isinstance(more := schema.get("additionalProperties"), dict):
        yield from _leaves(more, f"{path}.*")
    if "items" in schema:
        yield from _leaves(schema["items"], f"{path}.[]")
    if schema.get("type") == "string" and "enum" not in schema:
        yield path


def _fields() -> Iterator[str]:
    for file in sorted(CRDS.glob("*.yaml")):
        for crd in objects_in(CRDS, file.name):
            for version in crd["spec"]["versions"]:
                spec = version["schema"]["openAPIV3Schema"]["properties"].get("spec") or {}
                yield from _leaves(spec, crd["spec"]["names"]["kind"])
    for group_kind, kind in KINDS.items():
        yield from (f"{group_kind.partition('.')[0]}.{path}" for path in kind.fields if path.startswith("spec."))


FIELDS: Final = sorted(set(_fields()))


def _has_row(field: str) -> bool:
    return any(fnmatchcase(field, pattern.replace("[]", "[[]]")) for pattern in _PATTERNS)


def test_every_reference_has_a_row() -> None:
    last = {field: field.removesuffix(".[]").removesuffix(".*").rpartition(".")[2] for field in FIELDS}

    assert [field for field in FIELDS if _TEXTS.isdisjoint({field, last[field]}) and not _has_row(field)] == []


def test_every_row_is_of_references_that_there_are() -> None:
    unused = [
        pattern
        for pattern in _PATTERNS
        if not any(fnmatchcase(field, pattern.replace("[]", "[[]]")) for field in FIELDS)
    ]

    assert unused == []
    assert {row.count(" | ") for row in _ROWS} == {3}
