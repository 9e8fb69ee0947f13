"""The actions that list what is offered, what happened, what waits."""

from datetime import timedelta

from devcloud.aws.api.calls import Action, Call, page
from devcloud.aws.api.views import tree_of
from devcloud.aws.api.wire import Tree
from devcloud.aws.refusals import invalid_combination
from devcloud.aws.state import catalog, windows
from devcloud.aws.state.model import Event
from devcloud.simulator.messages import Refusal

_DAYS_KEPT = 14


def describe_events(call: Call) -> Tree:
    """DescribeEvents: of the last hour, or of the time asked for within fourteen days."""
    source, kind = call.get("SourceIdentifier"), call.get("SourceType")
    if source is not None and kind is None:
        raise invalid_combination("If SourceIdentifier is supplied, SourceType must also be provided.")
    now = call.region.now()
    since = call.get("StartTime") or now - timedelta(minutes=int(call.parameters.get("Duration", 60)))
    until = call.get("EndTime") or now
    categories = set(call.get("EventCategories") or ())
    events = [
        (f"{index:012d}", event)
        for index, event in enumerate(call.region.events)
        if max(since, now - timedelta(days=_DAYS_KEPT)) <= event.date <= until
        and kind in {None, event.source_type}
        and source in {None, event.source_identifier}
        and (not categories or categories & set(event.event_categories))
    ]
    listed, marker = page(call, events, _number)
    return {"Events": [tree_of(event) for _, event in listed], **marker}


def _number(numbered: tuple[str, Event]) -> str:
    return numbered[0]


def describe_versions(call: Call) -> Tree:
    """DescribeDBEngineVersions."""
    engine, wanted = call.get("Engine"), call.get("EngineVersion")
    family = call.get("DBParameterGroupFamily")
    offered = [version for version in catalog.VERSIONS if version not in call.behaviour.hidden_versions]
    versions = [
        version
        for version in offered
        if engine in {None, catalog.ENGINE}
        and wanted in {None, version, catalog.major(version)}
        and family in {None, f"{catalog.ENGINE}{catalog.major(version)}"}
    ]
    if call.get("DefaultOnly"):
        versions = (
            versions[-1:]
            if wanted is not None
            else [version for version in versions if version == catalog.DEFAULT_VERSION]
        )
    listed, marker = page(call, versions, _order)
    return {"DBEngineVersions": [_version(version, offered) for version in listed], **marker}


def _order(version: str) -> str:
    major, _, minor = version.partition(".")
    return f"{int(major):04d}.{int(minor):04d}"


def _version(version: str, offered: list[str]) -> Tree:
    targets = [target for target in catalog.targets(version) if target in offered]
    return {
        "Engine": catalog.ENGINE,
        "EngineVersion": version,
        "MajorEngineVersion": catalog.major(version),
        "DBParameterGroupFamily": f"{catalog.ENGINE}{catalog.major(version)}",
        "DBEngineDescription": "PostgreSQL",
        "DBEngineVersionDescription": f"PostgreSQL {version}-R1",
        "Status": "available",
        "ExportableLogTypes": list(catalog.LOG_TYPES),
        "SupportsLogExportsToCloudwatchLogs": True,
        "SupportsReadReplica": True,
        "SupportedCACertificateIdentifiers": list(catalog.CERTIFICATES),
        "SupportsCertificateRotationWithoutRestart": True,
        "ValidUpgradeTarget": [
            {
                "Engine": catalog.ENGINE,
                "EngineVersion": target,
                "Description": f"PostgreSQL {target}-R1",
                "AutoUpgrade": target == catalog.automatic_target(version),
                "IsMajorVersionUpgrade": catalog.major(target) != catalog.major(version),
            }
            for target in targets
        ],
    }


def describe_orderable(call: Call) -> Tree:
    """DescribeOrderableDBInstanceOptions."""
    wanted, kind = call.get("EngineVersion"), call.get("DBInstanceClass")
    versions = [version for version in catalog.VERSIONS if wanted in {None, version}] if _postgres(call) else []
    classes = [name for name in catalog.CLASSES if kind in {None, name} and name not in call.behaviour.no_capacity]
    options = [
        (f"{_order(version)} {instance_class} {storage}", version, instance_class, storage)
        for version in versions
        for instance_class in sorted(classes)
        for storage in sorted(catalog.STORAGE)
    ]
    options.sort()
    listed, marker = page(call, options, lambda option: option[0])
    shown = [_option(call.region.name, *rest) for _, *rest in listed]
    return {"OrderableDBInstanceOptions": shown, **marker}


def _postgres(call: Call) -> bool:
    return bool(call.text("Engine") == catalog.ENGINE)


def _option(region: str, version: str, instance_class: str, kind: str) -> Tree:
    limits = catalog.STORAGE[kind]
    return {
        "Engine": catalog.ENGINE,
        "EngineVersion": version,
        "DBInstanceClass": instance_class,
        "LicenseModel": "postgresql-license",
        "AvailabilityZones": [{"Name": f"{region}{letter}"} for letter in "abc"],
        "MultiAZCapable": True,
        "ReadReplicaCapable": True,
        "Vpc": True,
        "SupportsStorageEncryption": True,
        "StorageType": kind,
        "SupportsIops": limits.least_iops is not None,
        "SupportsStorageAutoscaling": kind != "standard",
        "SupportsIAMDatabaseAuthentication": True,
        "SupportsPerformanceInsights": True,
        "SupportsEnhancedMonitoring": True,
        "MinStorageSize": limits.least_gib,
        "MaxStorageSize": limits.most_gib,
        "SupportedNetworkTypes": ["IPV4"],
    }


def describe_certificates(call: Call) -> Tree:
    """DescribeCertificates."""
    wanted = call.get("CertificateIdentifier")
    if wanted is not None and wanted not in catalog.CERTIFICATES:
        raise Refusal("CertificateNotFound", f"Certificate {wanted} not found.")
    names = sorted(certificate for certificate in catalog.CERTIFICATES if wanted in {None, certificate})
    listed, marker = page(call, names, str)
    now = call.region.now()
    shown = [
        {
            "CertificateIdentifier": name,
            "CertificateType": "CA",
            "Thumbprint": "0" * 40,
            "ValidFrom": now.replace(year=2021),
            "ValidTill": now.replace(year=2061),
            "CertificateArn": f"arn:aws:rds:{call.region.name}::cert:{name}",
            "CustomerOverride": False,
        }
        for name in listed
    ]
    return {"Certificates": shown, "DefaultCertificateForNewLaunches": catalog.DEFAULT_CERTIFICATE, **marker}


def describe_pending_maintenance(call: Call) -> Tree:
    """DescribePendingMaintenanceActions: minor upgrades that the next window brings."""
    wanted = call.get("ResourceIdentifier")
    now = call.region.now()
    pending = []
    for _, record in sorted(call.region.instances.items()):
        shown = record.shown
        target = catalog.automatic_target(shown.engine_version) if shown.auto_minor_version_upgrade else None
        if target is None or wanted not in {None, shown.db_instance_arn}:
            continue
        window = windows.last_maintenance_start(shown.preferred_maintenance_window, now) + timedelta(weeks=1)
        action = {
            "Action": "db-upgrade",
            "AutoAppliedAfterDate": window,
            "CurrentApplyDate": window,
            "Description": f"Automatic minor version upgrade to postgres {target}",
        }
        pending.append({"ResourceIdentifier": shown.db_instance_arn, "PendingMaintenanceActionDetails": [action]})
    listed, marker = page(call, pending, lambda resource: str(resource["ResourceIdentifier"]))
    return {"PendingMaintenanceActions": listed, **marker}


def describe_account(call: Call) -> Tree:
    """DescribeAccountAttributes: the quotas and what is used of them."""
    region, quotas = call.region, call.behaviour.quotas
    manual = sum(snapshot.snapshot_type == "manual" for snapshot in region.snapshots.values())
    stored = sum(record.shown.allocated_storage for record in region.instances.values())
    rows = (
        ("DBInstances", len(region.instances), quotas.instances),
        ("ManualSnapshots", manual, quotas.snapshots),
        ("AllocatedStorage", stored, quotas.storage_gib),
        ("DBSubnetGroups", len(region.subnet_groups), quotas.subnet_groups),
        ("DBParameterGroups", len(region.parameter_groups), quotas.parameter_groups),
    )
    return {"AccountQuotas": [{"AccountQuotaName": name, "Used": used, "Max": most} for name, used, most in rows]}


ACTIONS: dict[str, Action] = {
    "DescribeEvents": describe_events,
    "DescribeDBEngineVersions": describe_versions,
    "DescribeOrderableDBInstanceOptions": describe_orderable,
    "DescribeCertificates": describe_certificates,
    "DescribePendingMaintenanceActions": describe_pending_maintenance,
    "DescribeAccountAttributes": describe_account,
}
