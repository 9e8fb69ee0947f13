"""What each field of an instance does to its users when it changes, and how it goes to instances.patch. Pure.

https://cloud.google.com/sql/docs/postgres/edit-instance ("impact" of each setting), .../flags (which flags restart),
.../upgrade-major-db-version-inplace. A version, an edition and a maintenance version travel alone: Cloud SQL refuses
them beside anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from providers.external.observation import Change, Class
from providers.gcp.instances import states
from providers.gcp.instances.bodies import put, written
from providers.gcp.instances.facts import major_of
from providers.gcp.instances.translate import Seen
from providers.gcp.models import CloudSQLInstanceParameters
from providers.gcp.names import owner_from

LABELS, FLAGS = "userLabels", "databaseFlags"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where one field stands in a DatabaseInstance, what its change does to users, and whether it travels alone."""

    place: str
    kind: Class = Class.ONLINE
    alone: bool = False


_ADDRESS, _BACKUP = "settings.ipConfiguration.", "settings.backupConfiguration."
_INSIGHTS, _WINDOW = "settings.insightsConfig.", "settings.maintenanceWindow."
RULES: Mapping[str, Rule] = {
    "databaseVersion": Rule("databaseVersion", Class.LOSS, alone=True),
    "maintenanceVersion": Rule("maintenanceVersion", Class.RESTART, alone=True),
    "edition": Rule("settings.edition", Class.RESTART, alone=True),
    "tier": Rule("settings.tier", Class.RESTART),
    "availabilityType": Rule("settings.availabilityType", Class.RESTART),
    "activationPolicy": Rule("settings.activationPolicy", Class.LOCKOUT),
    "dataDiskSizeGb": Rule("settings.dataDiskSizeGb"),
    "storageAutoResize": Rule("settings.storageAutoResize"),
    "storageAutoResizeLimit": Rule("settings.storageAutoResizeLimit"),
    "ipv4Enabled": Rule(f"{_ADDRESS}ipv4Enabled", Class.LOCKOUT),
    "authorizedNetworks": Rule(f"{_ADDRESS}authorizedNetworks", Class.LOCKOUT),
    "privateNetwork": Rule(f"{_ADDRESS}privateNetwork", Class.RESTART),
    "allocatedIpRange": Rule(f"{_ADDRESS}allocatedIpRange", Class.RESTART),
    "enablePrivatePathForGoogleCloudServices": Rule(f"{_ADDRESS}enablePrivatePathForGoogleCloudServices"),
    "pscAllowedConsumerProjects": Rule(f"{_ADDRESS}pscConfig.allowedConsumerProjects", Class.LOCKOUT),
    "sslMode": Rule(f"{_ADDRESS}sslMode", Class.LOCKOUT),
    "connectorEnforcement": Rule("settings.connectorEnforcement", Class.LOCKOUT),
    FLAGS: Rule("settings.databaseFlags"),
    "backupEnabled": Rule(f"{_BACKUP}enabled"),
    "backupStartTime": Rule(f"{_BACKUP}startTime"),
    "backupLocation": Rule(f"{_BACKUP}location"),
    "retainedBackups": Rule(f"{_BACKUP}backupRetentionSettings.retainedBackups"),
    "pointInTimeRecoveryEnabled": Rule(f"{_BACKUP}pointInTimeRecoveryEnabled", Class.RESTART),
    "transactionLogRetentionDays": Rule(f"{_BACKUP}transactionLogRetentionDays"),
    "retainBackupsOnDelete": Rule("settings.retainBackupsOnDelete"),
    "zone": Rule("settings.locationPreference.zone", Class.RESTART),
    "secondaryZone": Rule("settings.locationPreference.secondaryZone"),
    "maintenanceDay": Rule(f"{_WINDOW}day"),
    "maintenanceHour": Rule(f"{_WINDOW}hour"),
    "maintenanceTrack": Rule(f"{_WINDOW}updateTrack"),
    "denyMaintenancePeriod": Rule("settings.denyMaintenancePeriods"),
    "queryInsightsEnabled": Rule(f"{_INSIGHTS}queryInsightsEnabled"),
    "queryPlansPerMinute": Rule(f"{_INSIGHTS}queryPlansPerMinute"),
    "queryStringLength": Rule(f"{_INSIGHTS}queryStringLength"),
    "recordApplicationTags": Rule(f"{_INSIGHTS}recordApplicationTags"),
    "recordClientAddress": Rule(f"{_INSIGHTS}recordClientAddress"),
    "dataCacheEnabled": Rule("settings.dataCacheConfig.dataCacheEnabled", Class.RESTART),
    "deletionProtectionEnabled": Rule("settings.deletionProtectionEnabled"),
    LABELS: Rule("settings.userLabels"),
}
# https://cloud.google.com/sql/docs/postgres/flags#list-flags-postgres: those that restart the instance.
STATIC_FLAGS = frozenset({
    "autovacuum_freeze_max_age", "autovacuum_max_workers", "autovacuum_multixact_freeze_max_age",
    "cloudsql.allow_passwordless_local_connections", "cloudsql.enable_auto_explain",
    "cloudsql.enable_index_advisor", "cloudsql.enable_pg_bigm", "cloudsql.enable_pg_cron",
    "cloudsql.enable_pg_hint_plan", "cloudsql.enable_pg_squeeze", "cloudsql.enable_pg_wait_sampling",
    "cloudsql.enable_pgaudit", "cloudsql.enable_pglogical", "cloudsql.iam_authentication",
    "cloudsql.logical_decoding", "cloudsql.max_failed_attempts_user", "cloudsql.pg_shadow_select_role",
    "cron.database_name", "cron.max_running_jobs", "huge_pages", "max_connections", "max_files_per_process",
    "max_locks_per_transaction", "max_logical_replication_workers", "max_pred_locks_per_transaction",
    "max_prepared_transactions", "max_replication_slots", "max_wal_senders", "max_worker_processes",
    "old_snapshot_threshold", "pg_stat_statements.max", "shared_buffers", "track_activity_query_size",
    "track_commit_timestamp", "wal_buffers",
})  # fmt: skip


_MOVED_BY_EDITION = frozenset({"retainedBackups", "transactionLogRetentionDays", "dataCacheEnabled"})


def classify(change: Change, observed: Seen) -> Change:
    """Return a change with its class, whether it travels alone, starts the instance, or cannot be sent now."""
    facts, name = observed.facts, change.path[0]
    rule = _special(change)
    if _is_unused(observed) and name != "databaseVersion":
        rule = replace(rule, kind=Class.ONLINE)
    starts = name == "activationPolicy" and change.want == states.ALWAYS and facts.activation == states.NEVER
    # A tier of the other edition is refused without it; the request for the edition names the tier as well.
    along = ("edition",) if name == "tier" and observed.spec.edition != _wanted_edition(change, observed) else ()
    is_alone = rule.alone or bool(along)
    return replace(change, kind=rule.kind, alone=is_alone, along=along, starts=starts, veto=_veto(change, observed))


def _is_unused(observed: Seen) -> bool:
    """Return whether it is a clone that bears the labels of its source yet: nobody uses it, and no change harms."""
    return observed.owner is not None and not observed.owner.owns(owner_from(observed.facts.labels))


def _wanted_edition(change: Change, observed: Seen) -> str | None:
    """Return the edition of a tier: only ENTERPRISE_PLUS has performance-optimized ones."""
    is_plus = str(change.want).startswith(("db-perf-optimized", "db-c4a", "db-memory-optimized"))
    return "ENTERPRISE_PLUS" if is_plus else observed.spec.edition


def outage(change: Change, observed: Seen) -> str:
    """Return for how long a change that interrupts does so.

    "Upgrade the database major version in-place": the instance is away meanwhile. "About maintenance": near zero with
    Enterprise Plus; of the other edition Google publishes no figure.
    """
    if change.path[0] == "databaseVersion":
        return "until the upgrade has ended"
    return "near zero" if observed.spec.edition == "ENTERPRISE_PLUS" and change.path[0] == "tier" else ""


def _special(change: Change) -> Rule:  # noqa: PLR0911 - each return is a row of the table
    rule = RULES[change.path[0]]
    match change.path[0], change.want, change.have:
        case "activationPolicy", states.ALWAYS, _:
            return replace(rule, kind=Class.ONLINE)
        case "backupEnabled" | "pointInTimeRecoveryEnabled", False, _:
            return replace(rule, kind=Class.LOSS)
        case "retainedBackups" | "transactionLogRetentionDays", int(want), int(have) if want < have:
            return replace(rule, kind=Class.LOSS)
        case "authorizedNetworks" | "pscAllowedConsumerProjects", tuple(want), tuple(have) if set(have) <= set(want):
            return replace(rule, kind=Class.ONLINE)
        case "ipv4Enabled", True, _:
            return replace(rule, kind=Class.ONLINE)
        case "sslMode", "ALLOW_UNENCRYPTED_AND_ENCRYPTED", _:
            return replace(rule, kind=Class.ONLINE)
        case "connectorEnforcement", "NOT_REQUIRED", _:
            return replace(rule, kind=Class.ONLINE)
        case "databaseFlags", _, _ if change.path[-1] in STATIC_FLAGS:
            return replace(rule, kind=Class.RESTART)
        case _:
            return rule


def _veto(change: Change, observed: Seen) -> tuple[str, str] | None:
    facts = observed.facts
    match change.path[0], change.want, change.have:
        case "dataDiskSizeGb", int(want), int(have) if want < have:
            return (
                "InvalidValue",
                f"dataDiskSizeGb {want} is less than {have}, which it has; Cloud SQL never shrinks a disk",
            )
        case "databaseVersion", str(want), str(have) if major_of(want) < major_of(have):
            return "InvalidValue", f"{want} is older than {have}, which runs; Cloud SQL makes no downgrade"
        case "privateNetwork", _, str(have) if facts.private_network:
            return "InvalidValue", (
                f"the instance is in the network {have}, and Cloud SQL takes none out of its network or into another;"
                " make another instance"
            )
        case _:
            return None


def patch(spec: CloudSQLInstanceParameters, observed: Seen, changes: Iterable[Change]) -> dict[str, Any]:
    """Return the body of the one instances.patch that the changes take: what changed, and the optimistic lock.

    None and an empty list in it are sent as such: they take away a label and the last member of a list.
    """
    body: dict[str, Any] = {}
    changes = tuple(changes)
    for change in changes:
        name = change.path[0]
        rule = RULES[name]
        match name:
            case "userLabels":
                put(body, f"{rule.place}.{change.path[1]}", change.want)
            case "databaseFlags":
                put(body, rule.place, _flags(observed, changes))
            case _:
                put(body, rule.place, written(name, change.want))
        if name == "edition":
            put(body, "settings.tier", spec.tier)
            _keep_what_it_moves(body, spec, observed)
        if name.startswith("maintenance") and "maintenanceWindow" in rule.place:
            _whole_window(body, spec, observed)
    if "settings" in body and observed.facts.settings_version:
        body["settings"]["settingsVersion"] = observed.facts.settings_version
    return body


def _keep_what_it_moves(body: dict[str, Any], spec: CloudSQLInstanceParameters, observed: Seen) -> None:
    """Name what another edition moves to its own default, where the spec has it as it is: it is not to be moved."""
    for field in msgspec.structs.fields(spec):
        wanted = getattr(spec, field.name)
        if (
            field.encode_name in _MOVED_BY_EDITION
            and wanted is not None
            and wanted == getattr(observed.spec, field.name)
        ):
            put(body, RULES[field.encode_name].place, written(field.encode_name, wanted))


def _flags(observed: Seen, changes: Iterable[Change]) -> Any:
    """Return all flags as they are to be: the list is replaced as a whole, and what was not decided now stays."""
    flags = dict(observed.facts.flags)
    for change in changes:
        if change.path[0] == FLAGS and change.want is None:
            flags.pop(change.path[1], None)
        elif change.path[0] == FLAGS:
            flags[change.path[1]] = str(change.want)
    return written(FLAGS, flags)


def _whole_window(body: dict[str, Any], spec: CloudSQLInstanceParameters, observed: Seen) -> None:
    """Name day and hour together: a window of one alone is refused."""
    window = body["settings"]["maintenanceWindow"]
    day, hour = observed.facts.window
    window.setdefault("day", spec.maintenance_day if spec.maintenance_day is not None else day)
    window.setdefault("hour", spec.maintenance_hour if spec.maintenance_hour is not None else hour)
