"""Why a server cannot serve a spec, before anything is made or changed there: version, extensions, settings, promises.

A shared server has one standby, one backup, one address for all its databases: no claim changes them. What a claim
asks of them is compared with what the platform team says of the server (`spec.offers`), and refused where that is less.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from providers.onprem.models import Offerings, PostgresDatabaseParameters, ProviderConfigSpec, Requirements
from providers.onprem.statements import SETTABLE

_LONGEST_LIST = 200
_ASK = "leave it out, or ask the platform team to have offers.{} say so once the server has it"


def refusal_of(spec: PostgresDatabaseParameters, major: int, config: ProviderConfigSpec) -> tuple[str, str] | None:
    """Return reason and sentence when this server, of this major version, cannot serve the spec: all that is wrong."""
    reason, texts = "InvalidValue", list(_refusals(spec, config))
    if spec.version is not None and spec.version != str(major):
        reason = "UnsupportedVersion"
        texts.insert(0, f"the server runs PostgreSQL {major}, not {spec.version}; ask for {major}")
    return (reason, ". Also: ".join(texts)) if texts else None


def _refusals(spec: PostgresDatabaseParameters, config: ProviderConfigSpec) -> Iterator[str]:
    foreign = sorted(set(spec.extensions or ()) - set(config.extensions))
    if foreign:
        offered = ", ".join(sorted(config.extensions))[:_LONGEST_LIST] or "none"
        yield (
            f"{_listed('extension', foreign)} not allowed here; allowed: {offered}; leave out what is not, or ask the"
            " platform team to add it to `extensions` of the ProviderConfig"
        )
    unknown = sorted(set(spec.parameters or ()) - SETTABLE)
    if unknown:
        near = ", ".join(difflib.get_close_matches(unknown[0], SETTABLE, 3))
        which = f"; near {unknown[0]}: {near}" if near else ""
        yield f"{_listed('parameter', unknown)} not to be set here{which}; the on-prem page lists what may"
    unmet = tuple(_unmet(spec.requirements or Requirements(), config.offerings))
    if unmet:
        yield f"this server cannot promise {'; nor '.join(unmet)}"


def _listed(noun: str, names: list[str]) -> str:
    text = ", ".join(names)[:_LONGEST_LIST]
    return f"{noun} {text} is" if len(names) == 1 else f"{noun}s {text} are"


def _unmet(required: Requirements, offerings: Offerings) -> Iterator[str]:
    if required.high_availability and not offerings.high_availability:
        yield f"highAvailability: no standby takes over; {_ASK.format('highAvailability')}"
    yield from _backups(required, offerings)
    if (
        required.storage_gib is not None
        and offerings.storage_gib is not None
        and required.storage_gib > offerings.storage_gib
    ):
        yield f"storageGiB {required.storage_gib}: one database here has room for {offerings.storage_gib} at most"
    if required.public_access and not offerings.public_access:
        yield f"network.public: it has no address on the internet; {_ASK.format('publicAccess')}"
    if required.allowed_cidrs is not None and set(required.allowed_cidrs) != set(offerings.allowed_cidrs):
        open_to = ", ".join(sorted(offerings.allowed_cidrs))[:200] or "networks that offers.allowedCIDRs does not name"
        yield f"network.allowedCIDRs: all its databases take connections from {open_to}; leave it out"
    if required.restore_from is not None:
        yield (
            f"restoreFrom {required.restore_from[:100]}: Fairlead takes no backups of it; leave it out and load the"
            " data, or have the platform team restore a database for fairlead.dev/adopt"
        )


def _backups(required: Requirements, offerings: Offerings) -> Iterator[str]:
    kept = offerings.backup_retention_days
    if required.backup_retention_days is not None and (kept is None or required.backup_retention_days > kept):
        kept_text = "offers no backups" if kept is None else f"offers backups of {kept} days"
        yield (
            f"backup.retentionDays {required.backup_retention_days}: the ProviderConfig {kept_text};"
            f" {_ASK.format('backupRetentionDays')}"
        )
    if required.backup_start_time is not None and required.backup_start_time != offerings.backup_start_time:
        start = offerings.backup_start_time
        when = f"at {start}" if start else "at an hour that offers.backupStartTime does not name"
        yield f"backup.startTime {required.backup_start_time}: all its databases are backed up {when}; leave it out"
