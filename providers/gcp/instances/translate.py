"""Cloud SQL's answer in the model of the spec. Pure: order, numbers, versions, defaults and grown storage end here.

What an answer leaves out has the default that the API gives it (resource `instances`, and recorded answers); what has
no known default reads as the spec has it: some fields are taken and never shown again, `edition` of some instances.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from providers.external.client import Target
from providers.external.observation import Change, Observed
from providers.gcp.instances import states
from providers.gcp.instances.facts import Answer, Facts, addresses, member, number, settings_of
from providers.gcp.instances.flags import as_cloud_sql_writes
from providers.gcp.models import CloudSQLInstanceParameters, DenyMaintenancePeriod
from providers.gcp.names import owner_from, owner_labels
from runtime.objects import Object

VERSION = 2
"""Raised whenever the same answer of Cloud SQL would be read differently."""

Where = Target[CloudSQLInstanceParameters]
Seen = Observed[CloudSQLInstanceParameters, Facts]
T = TypeVar("T")
_MOST_ADDRESSES = 8
_NETWORK = "/global/networks/"


def observed(answer: Answer, target: Where) -> Seen:
    """Project one instance of instances.get or instances.list."""
    facts = facts_of(answer)
    suspended = tuple(str(reason) for reason in answer.get("suspensionReason") or ())
    return Observed(
        name=str(answer.get("name", target.name)),
        incarnation=str(answer.get("createTime", "")),
        owner=owner_from(facts.labels),
        phase=states.phase_of(facts.state, facts.activation),
        spec=_projected(answer, facts, target.spec),
        facts=facts,
        at_provider=_at_provider(answer, facts),
        state=states.shown(facts.state, facts.activation),
        remedy=states.remedy(facts.state, facts.activation, suspended),
        deadline=states.deadline(facts.state, restored=target.spec.restore_from is not None or bool(target.restore)),
        usable=states.usable(facts.state, facts.activation),
        tolerated=tuple(_tolerated(answer, facts, target.spec)),
    )


def facts_of(answer: Answer) -> Facts:
    """Read what decisions need."""
    settings = settings_of(answer)
    window = member(settings, "maintenanceWindow")
    return Facts(
        state=str(answer.get("state", "")),
        activation=str(settings.get("activationPolicy", states.ALWAYS)),
        settings_version=str(settings.get("settingsVersion", "")),
        version=str(answer.get("databaseVersion", "")),
        disk_gb=number(settings.get("dataDiskSizeGb")),
        auto_resize=bool(settings.get("storageAutoResize", True)),
        edition=str(settings.get("edition", "")),
        protected=bool(settings.get("deletionProtectionEnabled", False)),
        labels={str(key): str(value) for key, value in member(settings, "userLabels").items()},
        window=(number(window.get("day")), number(window.get("hour"))),
        private_network=str(member(settings, "ipConfiguration").get("privateNetwork", "")),
        flags=_flags(settings),
    )


def invariants(target: Where, seen: Seen) -> tuple[Change, ...]:
    """Return what is kept true whatever the spec says: our labels."""
    labels = seen.facts.labels
    wanted = sorted(owner_labels(target.owner).items())
    return tuple(
        Change(("userLabels", key), value, labels.get(key)) for key, value in wanted if labels.get(key) != value
    )


def _flags(settings: Answer) -> dict[str, str]:
    return {str(flag["name"]): str(flag.get("value", "")) for flag in settings.get("databaseFlags") or ()}


def _as_wanted(flags: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return flags, where a value means what the spec says as the spec says it."""
    return {
        name: wanted[name] if name in wanted and as_cloud_sql_writes(name, wanted[name]) == value else value
        for name, value in flags.items()
    }


def _or(value: Any, default: T) -> T:
    """Return what the answer says, or what an answer that says nothing means."""
    return default if value is None else value


def _same(wanted: str | None, present: str | None) -> str | None:
    """Return the spec's spelling where only the case of letters differs, and where the answer says nothing."""
    if not present:
        return wanted
    return wanted if wanted is not None and wanted.lower() == present.lower() else present


def _number(value: Any, default: int | None) -> int | None:
    return default if value in (None, "") else number(value)


def _disk(facts: Facts, spec: CloudSQLInstanceParameters) -> int:
    """Return the size as the spec has it where it is a floor: Cloud SQL grows a disk by itself and never shrinks it.

    What was restored has the disk of its source at least.
    """
    wanted = spec.data_disk_size_gb
    is_floor = (facts.auto_resize and spec.storage_auto_resize is not False) or spec.restore_from is not None
    return min(wanted, facts.disk_gb) if wanted is not None and is_floor else facts.disk_gb


def _network(wanted: str | None, present: str) -> str | None:
    """Return the spec's spelling of a network: the API may write the project by its number, or the whole URL."""
    if wanted is None or not present:
        return present or None
    same = wanted.partition(_NETWORK)[2] == present.partition(_NETWORK)[2] != ""
    return wanted if same else present


def _zones(spec: CloudSQLInstanceParameters, place: Answer) -> tuple[str | None, str | None]:
    """Return zone and secondary zone; a failover exchanges the two, and nobody is to fail back for that."""
    zone, secondary = place.get("zone"), place.get("secondaryZone")
    if zone and (zone, secondary) == (spec.secondary_zone, spec.zone):
        return spec.zone, spec.secondary_zone
    return _same(spec.zone, zone), _same(spec.secondary_zone, secondary)


def _networks(address: Answer) -> tuple[str, ...]:
    """Return the authorized networks; an address without a length is itself alone."""
    values = (str(entry.get("value", "")) for entry in address.get("authorizedNetworks") or ())
    return tuple(sorted(value if "/" in value else f"{value}/32" for value in values))


def _projected(answer: Answer, facts: Facts, spec: CloudSQLInstanceParameters) -> CloudSQLInstanceParameters:
    settings = settings_of(answer)
    address, backup = member(settings, "ipConfiguration"), member(settings, "backupConfiguration")
    place, window = member(settings, "locationPreference"), member(settings, "maintenanceWindow")
    insights, psc = member(settings, "insightsConfig"), member(address, "pscConfig")
    track, newer = window.get("updateTrack"), _runs_newer(answer, spec)
    zone, secondary_zone = _zones(spec, place)
    shown: Any = _or
    return CloudSQLInstanceParameters(
        region=str(answer.get("region", spec.region)),
        database_version=facts.version,
        tier=_same(spec.tier, settings.get("tier")) or "",
        edition=shown(settings.get("edition") or None, spec.edition),
        availability_type=shown(_same(spec.availability_type, settings.get("availabilityType")), "ZONAL"),
        activation_policy=shown(facts.activation, states.ALWAYS),
        data_disk_type=settings.get("dataDiskType"),
        data_disk_size_gb=_disk(facts, spec),
        storage_auto_resize=facts.auto_resize,
        storage_auto_resize_limit=number(settings.get("storageAutoResizeLimit")),
        ipv4_enabled=bool(address.get("ipv4Enabled", True)),
        authorized_networks=_networks(address),
        private_network=_network(spec.private_network, facts.private_network),
        allocated_ip_range=_same(spec.allocated_ip_range, address.get("allocatedIpRange")),
        enable_private_path_for_google_cloud_services=bool(
            address.get("enablePrivatePathForGoogleCloudServices", False)
        ),
        psc_enabled=bool(psc.get("pscEnabled", False)),
        psc_allowed_consumer_projects=tuple(sorted(map(str, psc.get("allowedConsumerProjects") or ()))),
        ssl_mode=shown(address.get("sslMode"), "ALLOW_UNENCRYPTED_AND_ENCRYPTED"),
        connector_enforcement=shown(settings.get("connectorEnforcement"), "NOT_REQUIRED"),
        database_flags=_as_wanted(facts.flags, spec.database_flags or {}),
        backup_enabled=bool(backup.get("enabled", False)),
        backup_start_time=_same(spec.backup_start_time, backup.get("startTime")),
        backup_location=_same(spec.backup_location, backup.get("location")),
        retained_backups=_number(
            member(backup, "backupRetentionSettings").get("retainedBackups"), spec.retained_backups
        ),
        point_in_time_recovery_enabled=bool(backup.get("pointInTimeRecoveryEnabled", False)),
        transaction_log_retention_days=_number(
            backup.get("transactionLogRetentionDays"), spec.transaction_log_retention_days
        ),
        retain_backups_on_delete=shown(settings.get("retainBackupsOnDelete"), spec.retain_backups_on_delete),
        zone=zone,
        secondary_zone=secondary_zone,
        maintenance_day=number(window.get("day")),
        # The hour of no day is none that somebody set.
        maintenance_hour=number(window.get("hour")) if window.get("day") else None,
        maintenance_track=shown(track or None, spec.maintenance_track),
        maintenance_version=spec.maintenance_version if newer else answer.get("maintenanceVersion"),
        deny_maintenance_period=_denied(settings),
        query_insights_enabled=bool(insights.get("queryInsightsEnabled", False)),
        query_plans_per_minute=_number(insights.get("queryPlansPerMinute"), spec.query_plans_per_minute),
        query_string_length=_number(insights.get("queryStringLength"), spec.query_string_length),
        record_application_tags=bool(insights.get("recordApplicationTags", False)),
        record_client_address=bool(insights.get("recordClientAddress", False)),
        data_cache_enabled=bool(member(settings, "dataCacheConfig").get("dataCacheEnabled", False)),
        deletion_protection_enabled=facts.protected,
        kms_key_name=member(answer, "diskEncryptionConfiguration").get("kmsKeyName"),
        user_labels=dict(facts.labels),
    )


def _denied(settings: Answer) -> DenyMaintenancePeriod | None:
    periods = settings.get("denyMaintenancePeriods") or ()
    if not periods:
        return None
    first = periods[0]
    start, end = str(first.get("startDate", "")), str(first.get("endDate", ""))
    return DenyMaintenancePeriod(start, end, str(first.get("time") or "00:00:00"))


def _runs_newer(answer: Answer, spec: CloudSQLInstanceParameters) -> bool:
    """Return whether Google went on to a later maintenance version than the wanted one: nothing goes back."""
    present = str(answer.get("maintenanceVersion", ""))
    if spec.maintenance_version is None:
        return False
    return not present or _release(present) >= _release(spec.maintenance_version)


def _release(version: str) -> tuple[str, str]:
    """Return what orders maintenance versions, of `POSTGRES_16_4.R20250101.00_05` the day and the number after it."""
    _, _, release = version.partition(".R")
    day, _, build = release.partition(".")
    return day, build


def _tolerated(answer: Answer, facts: Facts, spec: CloudSQLInstanceParameters) -> Iterator[Change]:
    """Yield what Cloud SQL moved on by itself, and what no change would undo: it is listed, and left."""
    wanted = spec.data_disk_size_gb
    if wanted is not None and facts.disk_gb > wanted and _disk(facts, spec) == wanted:
        yield Change(("dataDiskSizeGb",), wanted, facts.disk_gb)
    present = answer.get("maintenanceVersion")
    if _runs_newer(answer, spec) and present and present != spec.maintenance_version:
        yield Change(("maintenanceVersion",), spec.maintenance_version, str(present))


def _texts(answer: Answer, name: str) -> list[str]:
    return [str(text)[:64] for text in answer.get(name) or ()]


def _at_provider(answer: Answer, facts: Facts) -> Object:
    settings, certificate = settings_of(answer), member(answer, "serverCaCert")
    pairs: dict[str, Any] = {
        "state": states.shown(facts.state, facts.activation),
        "suspensionReason": _texts(answer, "suspensionReason")[:8],
        "connectionName": answer.get("connectionName"),
        "databaseVersion": facts.version,
        "databaseInstalledVersion": answer.get("databaseInstalledVersion"),
        "maintenanceVersion": answer.get("maintenanceVersion"),
        "availableMaintenanceVersions": [str(text)[:64] for text in answer.get("availableMaintenanceVersions") or ()][
            :16
        ],
        "tier": settings.get("tier"),
        "edition": settings.get("edition"),
        "dataDiskSizeGb": facts.disk_gb,
        "activationPolicy": facts.activation,
        "ipAddresses": [
            {"type": kind, "ipAddress": address}
            for kind, address in sorted(addresses(answer).items())[:_MOST_ADDRESSES]
        ],
        "dnsName": answer.get("dnsName"),
        "pscServiceAttachmentLink": answer.get("pscServiceAttachmentLink"),
        "serverCaCertExpirationTime": certificate.get("expirationTime"),
        "serverCaCertSha1Fingerprint": certificate.get("sha1Fingerprint"),
        "serviceAccountEmailAddress": answer.get("serviceAccountEmailAddress"),
        "gceZone": answer.get("gceZone"),
        "settingsVersion": facts.settings_version,
        "createTime": answer.get("createTime"),
    }
    return {key: value for key, value in pairs.items() if value not in (None, "", [], 0)}
