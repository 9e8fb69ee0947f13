"""RDS's answer in the model of the spec. Pure: order, case, versions, defaults and grown storage end here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from providers.aws.instances import create, states
from providers.aws.instances.facts import Facts
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Target
from providers.external.cloud_api.tags import missing_owner_tags, owner_from
from providers.external.cloud_api.versions import covers, major_of, satisfies
from providers.external.endpoint import UNVERIFIED, VERIFIED, Endpoint
from providers.external.observation import Change, Class, Observed, Queue, Value
from providers.external.sql import alternating
from runtime.objects import Object

VERSION = 2
"""Raised whenever the same answer of RDS would be read differently."""

Answer = Mapping[str, Any]
Where = Target[RDSInstanceParameters]
DEFAULT_PORT = 5432

_PENDING = {
    "DBInstanceClass": "dbInstanceClass",
    "AllocatedStorage": "allocatedStorage",
    "EngineVersion": "engineVersion",
    "Iops": "iops",
    "StorageThroughput": "storageThroughput",
    "StorageType": "storageType",
    "MultiAZ": "multiAZ",
    "BackupRetentionPeriod": "backupRetentionPeriod",
    "CACertificateIdentifier": "caCertificateIdentifier",
    "DBSubnetGroupName": "dbSubnetGroupName",
    "IAMDatabaseAuthenticationEnabled": "enableIAMDatabaseAuthentication",
}
# Made as soon as possible by itself, whatever ApplyImmediately says: never something that waits for the window.
_UNDER_WAY = frozenset({"MasterUserPassword", "PendingCloudwatchLogsExports", "Port"})
_MOST_INFOS = 16


def observed(answer: Answer, tags: Mapping[str, str], target: Where) -> Observed[RDSInstanceParameters, Facts]:
    """Project one instance of DescribeDBInstances; `tags` are all of its tags."""
    status = str(answer.get("DBInstanceStatus", ""))
    facts = _facts(answer, tags, target, status)
    waiting = answer.get("PendingModifiedValues") or {}
    return Observed(
        name=str(answer["DBInstanceIdentifier"]),
        incarnation=str(answer["DbiResourceId"]),
        owner=owner_from(tags),
        phase=states.phase_of(status),
        spec=_projected(answer, facts, target.spec),
        facts=facts,
        at_provider=_at_provider(answer),
        state=status,
        remedy=states.remedy(status),
        deadline=states.deadline(status, restored=create.with_data(target)),
        expected=states.expected(status, restored=create.with_data(target)),
        usable=states.usable(status),
        pending=tuple(sorted(facts.pending)),
        password_pending="MasterUserPassword" in waiting or status == states.RESETTING,
        password_elsewhere=bool(answer.get("MasterUserSecret")),
        restart=_restart(answer),
        tolerated=tuple(_tolerated(answer, facts, target.spec)),
    )


def endpoint_of(facts: Facts, ca: str) -> Endpoint:
    """Return how an application reaches the instance; without `ca`, the PEM of RDS's authority, nothing proves it."""
    return Endpoint(facts.address, facts.port, facts.database, VERIFIED if ca else UNVERIFIED, ca)


def _tolerated(answer: Answer, facts: Facts, spec: RDSInstanceParameters) -> Iterator[Change]:
    """Yield what RDS moved on by itself, and what a change would undo: it is listed, and left."""
    wanted, max_storage, present = spec.engine_version, spec.max_allocated_storage, answer.get("MaxAllocatedStorage")
    if wanted is not None and _runs(spec, facts.engine_version) and not covers(wanted, facts.engine_version):
        yield Change(("engineVersion",), wanted, facts.engine_version)
    if facts.allocated_storage > spec.allocated_storage > 0:
        yield Change(("allocatedStorage",), spec.allocated_storage, facts.allocated_storage)
    if max_storage is not None and max_storage <= facts.allocated_storage and max_storage != present:
        yield Change(("maxAllocatedStorage",), max_storage, present)


def _facts(answer: Answer, tags: Mapping[str, str], target: Where, status: str) -> Facts:
    endpoint, wanted = answer.get("Endpoint") or {}, target.spec.engine_version
    return Facts(
        arn=str(answer.get("DBInstanceArn", "")),
        status=status,
        address=str(endpoint.get("Address", "")),
        port=int(endpoint.get("Port") or 0),
        username=str(answer.get("MasterUsername", "")),
        database=_database(answer, target.spec),
        engine_version=str(answer.get("EngineVersion", "")),
        allocated_storage=int(answer.get("AllocatedStorage") or 0),
        window=str(answer.get("PreferredMaintenanceWindow", "")),
        protected=bool(answer.get("DeletionProtection", False)),
        tags=tags,
        pending=_queue(answer),
        allow_major=target.spec.allow_major_version_upgrade,
        kept_elsewhere=bool(answer.get("MasterUserSecret")),
        upgrading=wanted is not None and major_of(wanted) != major_of(str(answer.get("EngineVersion", ""))),
    )


def _database(answer: Answer, spec: RDSInstanceParameters) -> str:
    """Return the database that applications use: of a restored one the spec's, as RDS names its source's first one.

    One that was made without a name has the engine's own alone.
    """
    made_with = str(answer.get("DBName") or "")
    asked_for = spec.db_name or ""
    return (asked_for or made_with if create.restored(spec) else made_with or asked_for) or "postgres"


def _queue(answer: Answer) -> dict[str, Value]:
    waiting = answer.get("PendingModifiedValues") or {}
    queued: dict[str, Value] = {}
    for name, value in waiting.items():
        if name not in _UNDER_WAY and value not in (None, {}, []):
            queued[_PENDING.get(name, name)] = value if isinstance(value, str | int | bool) else json.dumps(value)
    return queued


def _same(wanted: str | None, present: str | None) -> str | None:
    """Return the spec's spelling where RDS only changed the case of the letters."""
    if wanted is not None and present is not None and wanted.lower() == present.lower():
        return wanted
    return present


def _max_storage(answer: Answer, facts: Facts, spec: RDSInstanceParameters) -> int | None:
    """Return how far RDS may grow the storage; it takes no limit that is not above what there is, as a restore has."""
    wanted: int | None = spec.max_allocated_storage
    present: int | None = answer.get("MaxAllocatedStorage")
    return wanted if wanted is not None and wanted <= facts.allocated_storage else present


def _projected(answer: Answer, facts: Facts, spec: RDSInstanceParameters) -> RDSInstanceParameters:
    version, storage = facts.engine_version, facts.allocated_storage
    interval = int(answer.get("MonitoringInterval") or 0)
    by_aws_backup = bool(answer.get("AwsBackupRecoveryPointArn"))
    retention = int(answer.get("BackupRetentionPeriod") or 0)
    return RDSInstanceParameters(
        db_instance_class=_same(spec.db_instance_class, answer.get("DBInstanceClass")) or "",
        # RDS never shrinks, rounds growth up, and may grow by itself: the spec says how much there is at least.
        allocated_storage=min(spec.allocated_storage or storage, storage),
        master_username=facts.username,
        engine_version=spec.engine_version if _runs(spec, version) else version,
        max_allocated_storage=_max_storage(answer, facts, spec),
        storage_type=_same(spec.storage_type, answer.get("StorageType")),
        iops=answer.get("Iops"),
        storage_throughput=answer.get("StorageThroughput"),
        storage_encrypted=bool(answer.get("StorageEncrypted", False)),
        kms_key_id=answer.get("KmsKeyId"),
        db_name=answer.get("DBName"),
        availability_zone=answer.get("AvailabilityZone"),
        port=facts.port or spec.port,
        multi_az=bool(answer.get("MultiAZ", False)),
        db_subnet_group_name=_same(
            spec.db_subnet_group_name, (answer.get("DBSubnetGroup") or {}).get("DBSubnetGroupName")
        ),
        vpc_security_group_ids=_security_groups(answer),
        publicly_accessible=bool(answer.get("PubliclyAccessible", False)),
        network_type=_same(spec.network_type, answer.get("NetworkType")),
        db_parameter_group_name=_same(spec.db_parameter_group_name, _first(answer, "DBParameterGroup")),
        option_group_name=_same(spec.option_group_name, _first(answer, "OptionGroupMembership", "OptionGroupName")),
        backup_retention_period=spec.backup_retention_period if by_aws_backup else retention,
        preferred_backup_window=spec.preferred_backup_window
        if by_aws_backup
        else _same(spec.preferred_backup_window, answer.get("PreferredBackupWindow")),
        preferred_maintenance_window=_same(spec.preferred_maintenance_window, facts.window),
        auto_minor_version_upgrade=bool(answer.get("AutoMinorVersionUpgrade", False)),
        ca_certificate_identifier=answer.get("CACertificateIdentifier"),
        enable_iam_database_authentication=bool(answer.get("IAMDatabaseAuthenticationEnabled", False)),
        enable_cloudwatch_logs_exports=_exports(answer),
        enable_performance_insights=bool(answer.get("PerformanceInsightsEnabled", False)),
        performance_insights_kms_key_id=answer.get("PerformanceInsightsKMSKeyId"),
        performance_insights_retention_period=answer.get("PerformanceInsightsRetentionPeriod"),
        database_insights_mode=_same(spec.database_insights_mode, answer.get("DatabaseInsightsMode")),
        monitoring_interval=interval,
        monitoring_role_arn=answer.get("MonitoringRoleArn") if interval else spec.monitoring_role_arn,
        copy_tags_to_snapshot=bool(answer.get("CopyTagsToSnapshot", False)),
        deletion_protection=facts.protected,
        tags=dict(facts.tags),
    )


def _runs(spec: RDSInstanceParameters, version: str) -> bool:
    return spec.engine_version is not None and satisfies(spec.engine_version, version)


def _security_groups(answer: Answer) -> tuple[str, ...]:
    groups = answer.get("VpcSecurityGroups") or ()
    return tuple(sorted(group["VpcSecurityGroupId"] for group in groups if group.get("Status") != "removing"))


def _first(answer: Answer, member: str, name: str = "") -> str | None:
    """Return the name of the group in force; RDS answers a list that never holds two."""
    groups = answer.get(f"{member}s") or ()
    return next((str(group[name or f"{member}Name"]) for group in groups if group.get("Status") != "removing"), None)


def _exports(answer: Answer) -> tuple[str, ...]:
    """Return the exported logs as they will be once what is under way is done."""
    waiting = (answer.get("PendingModifiedValues") or {}).get("PendingCloudwatchLogsExports") or {}
    enabled = {*(answer.get("EnabledCloudwatchLogsExports") or ()), *(waiting.get("LogTypesToEnable") or ())}
    return tuple(sorted(enabled - set(waiting.get("LogTypesToDisable") or ())))


def _restart(answer: Answer) -> str:
    waiting = [
        group["DBParameterGroupName"]
        for group in answer.get("DBParameterGroups") or ()
        if group.get("ParameterApplyStatus") == "pending-reboot"
    ]
    if not waiting:
        return ""
    return (
        f"static parameters of {', '.join(waiting)} wait for a restart, which RDS never makes by itself; reboot the"
        " instance when it suits"
    )


def _at_provider(answer: Answer) -> Object:
    endpoint, certificate = answer.get("Endpoint") or {}, answer.get("CertificateDetails") or {}
    pairs: dict[str, Any] = {
        "dbInstanceArn": answer.get("DBInstanceArn"),
        "dbiResourceId": answer.get("DbiResourceId"),
        "dbInstanceStatus": answer.get("DBInstanceStatus"),
        "engineVersion": answer.get("EngineVersion"),
        "allocatedStorage": answer.get("AllocatedStorage"),
        "maxAllocatedStorage": answer.get("MaxAllocatedStorage"),
        "dbInstanceClass": answer.get("DBInstanceClass"),
        "multiAZ": answer.get("MultiAZ"),
        "caCertificateIdentifier": answer.get("CACertificateIdentifier"),
        "certificateValidTill": _time(certificate.get("ValidTill")),
        "automaticRestartTime": _time(answer.get("AutomaticRestartTime")),
        "endpoint": _members(endpoint, {"Address": "address", "Port": "port", "HostedZoneId": "hostedZoneId"}),
        "pendingModifiedValues": _shown_queue(answer),
        "dbParameterGroups": [
            _members(member, {"DBParameterGroupName": "name", "ParameterApplyStatus": "applyStatus"})
            for member in answer.get("DBParameterGroups") or ()
        ],
        "statusInfos": [
            f"{member.get('StatusType', '')}: {member.get('Status', '')} {member.get('Message', '')}".strip()[:256]
            for member in (answer.get("StatusInfos") or ())[:_MOST_INFOS]
        ],
    }
    return {key: value for key, value in pairs.items() if value not in (None, "", {}, [])}


def _members(answer: Answer, names: Mapping[str, str]) -> Object:
    return {ours: answer[theirs] for theirs, ours in names.items() if answer.get(theirs) is not None}


def _shown_queue(answer: Answer) -> Object:
    """Return the queue for people; RDS masks a password that is under way."""
    waiting = answer.get("PendingModifiedValues") or {}
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in waiting.items() if value}
    return {name: ("****" if "Password" in name else value)[:256] for name, value in sorted(shown.items())}


def _time(value: Any) -> str | None:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "strftime") else None


def invariants(target: Where, observed: Observed[RDSInstanceParameters, Facts]) -> tuple[Change, ...]:
    """Return what is kept true whatever the spec says: our tags, and a queue that holds nothing against the spec."""
    tags = missing_owner_tags(target.owner, observed.facts.tags)
    return (*tags, *_against(target.spec, observed), *_of_roles(target, observed))


def logins(target: Where) -> tuple[str, str]:
    """Return the logins that alternate, or twice the administrator where it is the only one."""
    return alternating.logins_of(target, target.spec.master_username, may_alternate=_may_alternate(target.spec))


def alternates(target: Where) -> bool:
    """Return whether two logins take turns, or the one is about to give way to them."""
    first, second = logins(target)
    return first != second


def wanted_roles(target: Where, database: str, *, setting: str = "") -> alternating.Wanted:
    """Return what is to be true of an instance's roles; `setting` is the login whose password is being set."""
    return alternating.wanted_of(target, target.spec.master_username, database, setting=setting)


def _may_alternate(spec: RDSInstanceParameters) -> bool:
    major = major_of(spec.engine_version or "")
    return not major.isdigit() or int(major) >= alternating.OLDEST_MAJOR


def _of_roles(target: Where, observed: Observed[RDSInstanceParameters, Facts]) -> tuple[Change, ...]:
    """Return what differs about the roles; nothing where no session could read them."""
    facts = observed.facts
    if facts.administrator_refused:
        return (Change(("administrator", "password"), "the provider's own", "another one"),)
    return () if facts.roles is None else alternating.broken(wanted_roles(target, facts.database), facts.roles)


def _against(spec: RDSInstanceParameters, observed: Observed[RDSInstanceParameters, Facts]) -> tuple[Change, ...]:
    """Return the fields that are as the spec wants and that the queue would change."""
    facts = observed.facts
    changes = []
    for path, value in sorted(facts.pending.items()):
        name = _FIELDS.get(path)
        want: Value = getattr(spec, name) if name is not None else None
        if name is None or want is None or want != getattr(observed.spec, name) or _harmless(path, want, value):
            continue
        now: Value = facts.engine_version if path == "engineVersion" else getattr(observed.spec, name)
        changes.append(Change((path,), now, value, Class.ONLINE, Queue.CANCEL))
    return tuple(changes)


_FIELDS = {
    "dbInstanceClass": "db_instance_class",
    "allocatedStorage": "allocated_storage",
    "engineVersion": "engine_version",
    "iops": "iops",
    "storageThroughput": "storage_throughput",
    "storageType": "storage_type",
    "multiAZ": "multi_az",
    "backupRetentionPeriod": "backup_retention_period",
    "caCertificateIdentifier": "ca_certificate_identifier",
    "dbSubnetGroupName": "db_subnet_group_name",
    "enableIAMDatabaseAuthentication": "enable_iam_database_authentication",
}


def _harmless(path: str, want: Value, waiting: Value) -> bool:
    """Return whether what waits is as good as what is wanted: the same version, or more storage."""
    if path == "engineVersion":
        return covers(str(want), str(waiting))
    if path == "allocatedStorage":
        return True
    return str(want).lower() == str(waiting).lower()


def login_versions(observed: Observed[RDSInstanceParameters, Facts]) -> dict[str, str]:
    """Return when the administrator's login is to be proven anew: at another incarnation or another address.

    RDS shows no sign of a password that was changed by somebody else.
    """
    facts = observed.facts
    if not facts.address:
        return {}
    text = f"{observed.incarnation}\n{facts.address}\n{facts.port}"
    version = hashlib.sha256(text.encode()).hexdigest()[:16]
    return dict.fromkeys((facts.username, *alternating.names_of(facts.username).logins), version)
