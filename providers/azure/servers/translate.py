"""ARM's answer about a server in the model of the spec. Pure: letter case, defaults and grown storage end here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from providers.azure.listed import ServerState
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import owner_in, spelled_tags
from providers.azure.servers import roles, states
from providers.azure.servers.facts import DEFAULT_DATABASE, Facts, at_least_tier
from providers.azure.servers.states import Window
from providers.external.client import Target
from providers.external.cloud_api.tags import missing_owner_tags, owner_tags
from providers.external.endpoint import NO_ENDPOINT, VERIFIED, Endpoint
from providers.external.observation import RESTART, Change, Class, Observed, Phase, Value, digest
from providers.external.sql.alternating import names_of
from runtime.objects import Object

VERSION = 2
"""Raised whenever the same answer of ARM would be read differently."""

Answer = Mapping[str, Any]
Where = Target[FlexibleServerParameters]
PORT = 5432
ValueT = TypeVar("ValueT", bound=Value)
# What changes from day to day without anybody's act.
_VOLATILE = frozenset({"earliestRestoreDate", "replicaCapacity", "lastModifiedAt", "lastModifiedBy"})
_LONGEST_SHOWN = 512


def observed(answer: Answer, target: Where, ca: str = "") -> Observed[FlexibleServerParameters, Facts]:
    """Project one server as GET answers it; `ca` is the PEM by which it is verified, empty for the system's roots."""
    properties = _part(answer, "properties")
    facts = _facts(answer, properties)
    incarnation = incarnation_of(answer)
    spec = target.spec
    return Observed(
        name=target.name,
        incarnation=incarnation,
        owner=owner_in(facts.tags),
        # What has no date of creation yet is being made: which server it is cannot be said.
        phase=states.phase_of(facts.state) if incarnation else Phase.BUSY,
        spec=_projected(answer, properties, facts, spec),
        facts=facts,
        at_provider=_at_provider(answer, properties, facts),
        state=facts.state,
        remedy=states.remedy(facts.state),
        deadline=states.deadline(facts.state, restored=is_restored(spec)),
        usable=states.usable(facts.state),
        tolerated=tuple(_tolerated(facts, spec, _text(_part(properties, "storage"), "tier"))),
        endpoint=endpoint_of(facts, spec, ca),
    )


def endpoint_of(facts: Facts, spec: FlexibleServerParameters, ca: str) -> Endpoint:
    """Return how an application reaches the server, and by whose certificates it is verified."""
    if not facts.host:
        return NO_ENDPOINT
    return Endpoint(facts.host, PORT, spec.database_name or DEFAULT_DATABASE, VERIFIED, ca)


def is_restored(spec: FlexibleServerParameters) -> bool:
    """Return whether the server begins with another's data, and with that one's password."""
    return spec.create_mode != "Create"


def incarnation_of(answer: Answer) -> str:
    """Return what identifies this very server: when it was made, in one spelling; empty while ARM does not say.

    ARM writes up to seven decimals of a second, with `Z` or an offset.
    """
    text = str(_part(answer, "systemData").get("createdAt") or "")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat()


def state_of(answer: Answer) -> ServerState:
    """Return what an answer about a server says to what is in it."""
    state = _text(_part(answer, "properties"), "state")
    return ServerState(state, incarnation_of(answer), owner_in(_part(answer, "tags")))


def stable(answer: Any) -> Any:
    """Return an answer without what changes from day to day by itself, its keys in small letters."""
    match answer:
        case dict():
            return {key.lower(): stable(value) for key, value in answer.items() if key not in _VOLATILE}
        case list():
            return [stable(value) for value in answer]
        case _:
            return answer


def _part(answer: Answer, *path: str) -> Answer:
    """Return a nested object, empty where it or one around it is absent or null."""
    for name in path:
        value = answer.get(name)
        answer = value if isinstance(value, dict) else {}
    return answer


def _text(answer: Answer, name: str) -> str:
    return str(answer.get(name) or "")


def _facts(answer: Answer, properties: Answer) -> Facts:
    network, storage = _part(properties, "network"), _part(properties, "storage")
    return Facts(
        id=_text(answer, "id"),
        state=_text(properties, "state"),
        location=_text(answer, "location"),
        host=_text(properties, "fullyQualifiedDomainName"),
        version=_text(properties, "version"),
        minor_version=_text(properties, "minorVersion"),
        storage_gib=int(storage.get("storageSizeGB") or 0),
        storage_type=_text(storage, "type"),
        public=_text(network, "publicNetworkAccess").lower() == "enabled",
        injected=bool(network.get("delegatedSubnetResourceId")),
        encrypted_by_key=_text(_part(properties, "dataEncryption"), "type").lower() == "azurekeyvault",
        window=_window(_part(properties, "maintenanceWindow")),
        tags={str(key): str(value) for key, value in _part(answer, "tags").items()},
    )


def _window(answer: Answer) -> Window | None:
    if _text(answer, "customWindow").lower() != "enabled":
        return None
    return Window(*(int(answer.get(name) or 0) for name in ("dayOfWeek", "startHour", "startMinute")))


def _same(wanted: ValueT, present: Any) -> ValueT:
    """Return the spec's spelling where ARM only changed the case of the letters; an empty text is none."""
    if isinstance(wanted, str) and isinstance(present, str) and wanted.lower() == present.lower():
        return wanted
    value: ValueT = None if present == "" else present  # type: ignore[assignment]  # as ARM's reference types it
    return value


def _derived(wanted: ValueT, present: Any) -> ValueT:
    """Return a value that ARM leaves out of answers where it does not apply: then the spec's stands for it."""
    return wanted if present in (None, "") else _same(wanted, present)


def _tier(wanted: str | None, present: Any, gib: int) -> str | None:
    """Return the performance tier; one that came with grown storage cannot be undone, and counts as the spec's."""
    is_least = bool(wanted) and str(present or "").upper() == at_least_tier(str(wanted), gib)
    return wanted if is_least else _derived(wanted, present)


def _projected(
    answer: Answer, properties: Answer, facts: Facts, spec: FlexibleServerParameters
) -> FlexibleServerParameters:
    storage, backup = _part(properties, "storage"), _part(properties, "backup")
    available, network = _part(properties, "highAvailability"), _part(properties, "network")
    auth, window = _part(properties, "authConfig"), _part(properties, "maintenanceWindow")
    key, sku = _part(properties, "dataEncryption"), _part(answer, "sku")
    mode = _same(spec.high_availability_mode, available.get("mode") or "Disabled")
    return FlexibleServerParameters(
        resource_group_name=spec.resource_group_name,
        location=spec.location or facts.location,
        administrator_login=_text(properties, "administratorLogin"),
        sku_name=_same(spec.sku_name, _text(sku, "name")) or "",
        sku_tier=_same(spec.sku_tier, _text(sku, "tier")),
        # Azure chooses the minor version, and shows the major one: "16" runs as 16.4.
        version=_same(spec.version, facts.version.partition(".")[0]),
        # It is never made smaller, and grows by itself where autoGrow is on: the spec says how much there is at least.
        storage_size_gb=min(spec.storage_size_gb or facts.storage_gib, facts.storage_gib),
        storage_type=_same(spec.storage_type, storage.get("type")),
        geo_redundant_backup=_same(spec.geo_redundant_backup, backup.get("geoRedundantBackup")),
        availability_zone=_same(spec.availability_zone, properties.get("availabilityZone")),
        delegated_subnet_resource_id=_same(spec.delegated_subnet_resource_id, network.get("delegatedSubnetResourceId")),
        private_dns_zone_arm_resource_id=_same(
            spec.private_dns_zone_arm_resource_id, network.get("privateDnsZoneArmResourceId")
        ),
        auto_grow=_same(spec.auto_grow, storage.get("autoGrow") or "Disabled"),
        storage_tier=_tier(spec.storage_tier, storage.get("tier"), facts.storage_gib),
        iops=_derived(spec.iops, storage.get("iops")),
        throughput=_derived(spec.throughput, storage.get("throughput")),
        backup_retention_days=int(backup.get("backupRetentionDays") or 0),
        high_availability_mode=mode,
        # Without a standby there is no zone for it.
        standby_availability_zone=spec.standby_availability_zone
        if mode == "Disabled"
        else _derived(spec.standby_availability_zone, available.get("standbyAvailabilityZone")),
        public_network_access=spec.public_network_access
        if facts.injected
        else _same(spec.public_network_access, network.get("publicNetworkAccess") or "Enabled"),
        password_auth=_same(spec.password_auth, auth.get("passwordAuth") or "Enabled"),
        active_directory_auth=_same(spec.active_directory_auth, auth.get("activeDirectoryAuth") or "Disabled"),
        tenant_id=_derived(spec.tenant_id, auth.get("tenantId")),
        primary_key_uri=_same(spec.primary_key_uri, key.get("primaryKeyURI")),
        primary_user_assigned_identity_id=_same(
            spec.primary_user_assigned_identity_id, key.get("primaryUserAssignedIdentityId")
        ),
        custom_window=_same(spec.custom_window, window.get("customWindow") or "Disabled"),
        day_of_week=int(window.get("dayOfWeek") or 0),
        start_hour=int(window.get("startHour") or 0),
        start_minute=int(window.get("startMinute") or 0),
        tags=spelled_tags(facts.tags, spec.tags or {}),
    )


def _tolerated(facts: Facts, spec: FlexibleServerParameters, tier: str) -> Iterator[Change]:
    """Yield what Azure moved on by itself, and nobody can undo: it is listed, and left."""
    gib = facts.storage_gib
    if spec.storage_size_gb is not None and gib > spec.storage_size_gb:
        yield Change(("storageSizeGB",), spec.storage_size_gb, gib)
    if spec.storage_tier is not None and spec.storage_tier != tier.upper() == at_least_tier(spec.storage_tier, gib):
        yield Change(("storageTier",), spec.storage_tier, tier)


def _at_provider(answer: Answer, properties: Answer, facts: Facts) -> Object:
    available = _part(properties, "highAvailability")
    pairs: dict[str, Any] = {
        "id": facts.id[:_LONGEST_SHOWN],
        "state": facts.state,
        "location": facts.location,
        "fullyQualifiedDomainName": facts.host,
        "version": facts.version,
        "minorVersion": facts.minor_version,
        "skuName": _text(_part(answer, "sku"), "name"),
        "storageSizeGB": facts.storage_gib,
        "availabilityZone": _text(properties, "availabilityZone"),
        "standbyAvailabilityZone": _text(available, "standbyAvailabilityZone"),
        "highAvailabilityState": _text(available, "state"),
        "publicNetworkAccess": _text(_part(properties, "network"), "publicNetworkAccess"),
        "replicationRole": _text(properties, "replicationRole"),
        "createdAt": incarnation_of(answer),
    }
    return {name: value for name, value in pairs.items() if value not in ("", 0)}


def invariants(target: Where, seen: Observed[FlexibleServerParameters, Facts]) -> tuple[Change, ...]:
    """Return what is kept true whatever the spec says: our tags, the roles of two logins, a restart that is due."""
    tags = missing_owner_tags(target.owner, spelled_tags(seen.facts.tags, owner_tags(target.owner)))
    return (*tags, *roles.differences(target, seen), *_restart(seen.facts))


def _restart(facts: Facts) -> Iterator[Change]:
    """Yield the restart that configurations wait for; of a server that nobody uses it interrupts nobody."""
    if facts.restart_for:
        kind = Class.ONLINE if facts.is_new else Class.RESTART
        yield Change(RESTART, "done", f"due for {', '.join(facts.restart_for)}", kind, alone=True, first=True)


def login_versions(seen: Observed[FlexibleServerParameters, Facts]) -> dict[str, str]:
    """Return when each login is to be proven anew: at another incarnation or another host.

    ARM shows no sign of a password that was changed by somebody else.
    """
    if not seen.facts.host:
        return {}
    administrator = seen.spec.administrator_login
    version = digest([seen.incarnation, seen.facts.host])
    return dict.fromkeys((administrator, *names_of(administrator).logins), version)
