"""Which kind of ours a managed resource of Crossplane becomes, and where each of its fields goes. Pure.

Sources: the CRDs of crossplane-contrib's provider-upjet-aws, -gcp and -azure (rds.aws, sql.gcp, dbforpostgresql.azure),
provider-aws (database.aws, rds.aws) and provider-sql (postgresql.sql).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

OF_THE_CLAIM: Final = "claim.metadata.name | dns_label(50) | replace('-', '_')"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field goes; `form` is how its value is written there, empty where as it is.

    `gib`: of MiB; `enabled`: Enabled or Disabled of a truth; `sku`, `tier`: the class of `GP_Standard_D4s_v3`, and the
    tier that this begins with; `map`: name and value of a list; `values`: `value` of each element of a list.
    """

    path: str
    form: str = ""


@dataclass(frozen=True, slots=True)
class KindRule:
    """A kind of ours for a kind of Crossplane's; all paths are those below `spec.forProvider`.

    `fields` are the places of Crossplane's fields, several for one that says several things. `references` are our field
    and the kind of the resource of the same Composition that Crossplane's selectors and references lead to. `unneeded`
    are fields for which there is another place, with the words for it. `status` are our paths for Crossplane's
    below `status.atProvider`. `name` is our field for its external name, and `defaults` are expressions for what a
    Composition of Crossplane's need not say. `has_login`: it publishes a connection.
    """

    cloud: str
    kind: str
    fields: Mapping[str, tuple[Place, ...]]
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unneeded: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    has_login: bool = False

    @property
    def api_version(self) -> str:
        """The group and version of our kind."""
        return f"{self.cloud}.fairlead.dev/v1alpha1"


def _same(*names: str) -> dict[str, tuple[Place, ...]]:
    return {name: (Place(name),) for name in names}


def _renamed(**names: str) -> dict[str, tuple[Place, ...]]:
    return {name: (Place(path),) for name, path in names.items()}


_REGION: Final = {"region": "the ProviderConfig's region"}
_PASSWORD: Final = dict.fromkeys(
    (
        "autoGeneratePassword",
        "autogeneratePassword",
        "passwordSecretRef",
        "masterPasswordSecretRef",
        "masterUserPasswordSecretRef",
        "administratorPasswordSecretRef",
    ),
    "a password is always made here",
)
_DELETION: Final = dict.fromkeys(
    (
        "skipFinalSnapshot",
        "skipFinalSnapshotBeforeDeletion",
        "finalSnapshotIdentifier",
        "finalDBSnapshotIdentifier",
    ),
    "the claim's deletionPolicy",
)
_AT_ONCE: Final = dict.fromkeys(
    ("applyImmediately", "applyModificationsImmediately"), "a change's class says when it is made"
)
_OF_RDS: Final = (
    "allocatedStorage", "engine", "engineVersion", "maxAllocatedStorage", "storageType", "iops", "storageThroughput",
    "storageEncrypted", "kmsKeyId", "dbName", "port", "availabilityZone", "dbSubnetGroupName", "vpcSecurityGroupIds",
    "publiclyAccessible", "networkType", "optionGroupName", "backupRetentionPeriod", "autoMinorVersionUpgrade",
    "allowMajorVersionUpgrade", "monitoringInterval", "monitoringRoleArn", "copyTagsToSnapshot", "deletionProtection",
    "deleteAutomatedBackups", "tags",
)  # fmt: skip
_RDS_STATUS: Final = {
    "address": "status.connection.host", "endpoint.address": "status.connection.host",
    "endpoint": "status.connection.host", "port": "status.connection.port", "endpoint.port": "status.connection.port",
    "arn": "status.atProvider.dbInstanceArn", "dbInstanceArn": "status.atProvider.dbInstanceArn",
    "engineVersionActual": "status.atProvider.engineVersion", "engineVersion": "status.atProvider.engineVersion",
    "id": "status.externalName",
}  # fmt: skip
_RDS_REFERENCES: Final = {
    "dbSubnetGroupName": ("dbSubnetGroupNameRef", "DBSubnetGroup"),
    "parameterGroupName": ("dbParameterGroupNameRef", "DBParameterGroup"),
    "dbParameterGroupName": ("dbParameterGroupNameRef", "DBParameterGroup"),
}
_RDS_UNNEEDED: Final = {**_REGION, **_PASSWORD, **_DELETION, **_AT_ONCE, "licenseModel": "that of PostgreSQL"}
_UPJET_RDS: Final = KindRule(
    "aws", "RDSInstance",
    _same(*_OF_RDS)
    | _renamed(
        instanceClass="dbInstanceClass", username="masterUsername", multiAz="multiAZ",
        backupWindow="preferredBackupWindow", maintenanceWindow="preferredMaintenanceWindow",
        parameterGroupName="dbParameterGroupName",
        caCertIdentifier="caCertificateIdentifier", iamDatabaseAuthenticationEnabled="enableIAMDatabaseAuthentication",
        enabledCloudwatchLogsExports="enableCloudwatchLogsExports",
        performanceInsightsEnabled="enablePerformanceInsights",
        performanceInsightsKmsKeyId="performanceInsightsKMSKeyId", databaseInsightsMode="databaseInsightsMode",
        performanceInsightsRetentionPeriod="performanceInsightsRetentionPeriod", dbName="dbName", name="dbName",
    ),
    _RDS_REFERENCES, _RDS_UNNEEDED, _RDS_STATUS, has_login=True,
)  # fmt: skip
_COMMUNITY_RDS: Final = KindRule(
    "aws", "RDSInstance",
    _same(
        *_OF_RDS, "dbInstanceClass", "masterUsername", "multiAZ", "preferredBackupWindow", "preferredMaintenanceWindow",
        "dbParameterGroupName", "caCertificateIdentifier", "enableIAMDatabaseAuthentication",
        "enablePerformanceInsights", "performanceInsightsKMSKeyId", "performanceInsightsRetentionPeriod",
    )
    | _renamed(vpcSecurityGroupIDs="vpcSecurityGroupIds"),
    _RDS_REFERENCES, _RDS_UNNEEDED, _RDS_STATUS, has_login=True,
)  # fmt: skip
_PARAMETER_GROUP: Final = KindRule(
    "aws", "DBParameterGroup",
    {**_same("description", "tags", "dbParameterGroupFamily"), **_renamed(family="dbParameterGroupFamily"),
     "parameter": (Place("parameters", "map"),), "parameters": (Place("parameters", "map"),)},
    unneeded=_REGION, status={"arn": "status.atProvider.dbParameterGroupArn", "id": "status.externalName"},
)  # fmt: skip
_SUBNET_GROUP: Final = KindRule(
    "aws", "DBSubnetGroup",
    {**_same("subnetIds", "tags"), **_renamed(description="dbSubnetGroupDescription", subnetIDs="subnetIds")},
    unneeded=_REGION, status={"arn": "status.atProvider.dbSubnetGroupArn", "id": "status.externalName"},
)  # fmt: skip
_SETTINGS: Final = {
    "tier": "tier", "edition": "edition", "availabilityType": "availabilityType",
    "activationPolicy": "activationPolicy", "diskType": "dataDiskType", "dataDiskType": "dataDiskType",
    "diskSize": "dataDiskSizeGb", "dataDiskSizeGb": "dataDiskSizeGb",
    "diskAutoresize": "storageAutoResize", "storageAutoResize": "storageAutoResize",
    "diskAutoresizeLimit": "storageAutoResizeLimit", "connectorEnforcement": "connectorEnforcement",
    "collation": "collation", "userLabels": "userLabels", "deletionProtectionEnabled": "deletionProtectionEnabled",
    "ipConfiguration.ipv4Enabled": "ipv4Enabled", "ipConfiguration.privateNetwork": "privateNetwork",
    "ipConfiguration.allocatedIpRange": "allocatedIpRange", "ipConfiguration.sslMode": "sslMode",
    "backupConfiguration.enabled": "backupEnabled", "backupConfiguration.startTime": "backupStartTime",
    "backupConfiguration.location": "backupLocation",
    "backupConfiguration.pointInTimeRecoveryEnabled": "pointInTimeRecoveryEnabled",
    "backupConfiguration.transactionLogRetentionDays": "transactionLogRetentionDays",
    "backupConfiguration.backupRetentionSettings.retainedBackups": "retainedBackups",
    "locationPreference.zone": "zone", "locationPreference.secondaryZone": "secondaryZone",
    "maintenanceWindow.day": "maintenanceDay", "maintenanceWindow.hour": "maintenanceHour",
    "maintenanceWindow.updateTrack": "maintenanceTrack",
    "insightsConfig.queryInsightsEnabled": "queryInsightsEnabled",
    "insightsConfig.queryStringLength": "queryStringLength",
    "insightsConfig.recordApplicationTags": "recordApplicationTags",
    "insightsConfig.recordClientAddress": "recordClientAddress",
}  # fmt: skip
_CLOUD_SQL: Final = KindRule(
    "gcp", "CloudSQLInstance",
    {
        **_same("region", "databaseVersion", "maintenanceVersion"), "encryptionKeyName": (Place("kmsKeyName"),),
        **{f"settings.{name}": (Place(path),) for name, path in _SETTINGS.items()},
        "settings.databaseFlags": (Place("databaseFlags", "map"),),
        "settings.ipConfiguration.authorizedNetworks": (Place("authorizedNetworks", "values"),),
    },
    unneeded={**_PASSWORD, "project": "the ProviderConfig's project",
              "rootPasswordSecretRef": "a password is always made here",
              "deletionProtection": "deletionProtection of the claim"},
    status={"connectionName": "status.atProvider.connectionName", "firstIpAddress": "status.connection.host",
            "publicIpAddress": "status.connection.host", "privateIpAddress": "status.connection.host",
            "databaseInstalledVersion": "status.atProvider.databaseInstalledVersion", "id": "status.externalName",
            "serviceAccountEmailAddress": "status.atProvider.serviceAccountEmailAddress"},
)  # fmt: skip
_INSTANCE: Final = {"instance": ("instanceRef", "CloudSQLInstance")}
_CLOUD_SQL_DATABASE: Final = KindRule(
    "gcp", "CloudSQLDatabase", _same("instance", "charset", "collation"), _INSTANCE,
    {"project": "the ProviderConfig's project", "deletionPolicy": "the claim's deletionPolicy"},
    name="name", defaults={"name": OF_THE_CLAIM},
)  # fmt: skip
_CLOUD_SQL_USER: Final = KindRule(
    "gcp", "CloudSQLUser", _same("instance", "type", "databaseRoles"), _INSTANCE,
    {**_PASSWORD, "project": "the ProviderConfig's project", "deletionPolicy": "the claim's deletionPolicy"},
    name="name", defaults={"name": f"{OF_THE_CLAIM} ~ '_app'"}, has_login=True,
)  # fmt: skip
_FLEXIBLE_SERVER: Final = KindRule(
    "azure", "FlexibleServer",
    {
        **_same("location", "resourceGroupName", "version", "administratorLogin", "storageTier", "backupRetentionDays",
                "createMode", "tags"),
        **_renamed(zone="availabilityZone", delegatedSubnetId="delegatedSubnetResourceId",
                   privateDnsZoneId="privateDnsZoneArmResourceId", sourceServerId="sourceServerResourceId"),
        "skuName": (Place("skuName", "sku"), Place("skuTier", "tier")), "storageMb": (Place("storageSizeGB", "gib"),),
        "autoGrowEnabled": (Place("autoGrow", "enabled"),),
        "geoRedundantBackupEnabled": (Place("geoRedundantBackup", "enabled"),),
        "publicNetworkAccessEnabled": (Place("publicNetworkAccess", "enabled"),),
        "highAvailability.mode": (Place("highAvailabilityMode"),),
        "highAvailability.standbyAvailabilityZone": (Place("standbyAvailabilityZone"),),
        "authentication.activeDirectoryAuthEnabled": (Place("activeDirectoryAuth", "enabled"),),
        "authentication.passwordAuthEnabled": (Place("passwordAuth", "enabled"),),
        "authentication.tenantId": (Place("tenantId"),),
        "maintenanceWindow.dayOfWeek": (Place("dayOfWeek"),), "maintenanceWindow.startHour": (Place("startHour"),),
        "maintenanceWindow.startMinute": (Place("startMinute"),),
    },
    unneeded=_PASSWORD,
    status={"fqdn": "status.atProvider.fullyQualifiedDomainName", "id": "status.atProvider.id"},
    defaults={"databaseName": OF_THE_CLAIM}, has_login=True,
)  # fmt: skip
_SERVER: Final = {"serverId": ("serverRef", "FlexibleServer")}
_CONFIGURATION: Final = KindRule("azure", "FlexibleServerConfiguration", _same("name", "value"), _SERVER, name="name")
_FLEXIBLE_DATABASE: Final = KindRule(
    "azure",
    "FlexibleServerDatabase",
    _same("charset", "collation"),
    _SERVER,
    name="name",
    defaults={"name": OF_THE_CLAIM},
)
_FIREWALL_RULE: Final = KindRule(
    "azure", "FlexibleServerFirewallRule", _same("startIpAddress", "endIpAddress"), _SERVER
)
_ONPREM: Final = KindRule(
    "onprem", "PostgresDatabase",
    {**_same("connectionLimit", "encoding", "lcCollate"), **_renamed(lcCType="lcCtype")},
    unneeded={"owner": "a role of its own"}, name="databaseName",
    defaults={"databaseName": OF_THE_CLAIM, "username": OF_THE_CLAIM}, has_login=True,
)  # fmt: skip
RULES: Final[Mapping[tuple[str, str], KindRule]] = {
    ("rds.aws", "Instance"): _UPJET_RDS,
    ("rds.aws", "DBInstance"): _COMMUNITY_RDS,
    ("database.aws", "RDSInstance"): _COMMUNITY_RDS,
    ("rds.aws", "ParameterGroup"): _PARAMETER_GROUP,
    ("rds.aws", "DBParameterGroup"): _PARAMETER_GROUP,
    ("rds.aws", "SubnetGroup"): _SUBNET_GROUP,
    ("database.aws", "DBSubnetGroup"): _SUBNET_GROUP,
    ("sql.gcp", "DatabaseInstance"): _CLOUD_SQL,
    ("database.gcp", "CloudSQLInstance"): _CLOUD_SQL,
    ("sql.gcp", "Database"): _CLOUD_SQL_DATABASE,
    ("sql.gcp", "User"): _CLOUD_SQL_USER,
    ("dbforpostgresql.azure", "FlexibleServer"): _FLEXIBLE_SERVER,
    ("dbforpostgresql.azure", "FlexibleServerConfiguration"): _CONFIGURATION,
    ("dbforpostgresql.azure", "FlexibleServerDatabase"): _FLEXIBLE_DATABASE,
    ("dbforpostgresql.azure", "FlexibleServerFirewallRule"): _FIREWALL_RULE,
    ("postgresql.sql", "Database"): _ONPREM,
}
"""By the group, without who publishes it, and the kind."""
