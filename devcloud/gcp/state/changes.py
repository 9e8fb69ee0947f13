"""Whether an instance may be as somebody asks, and what a change of it does to its sessions. Pure.

Sources: the reference of `DatabaseInstance` (what is immutable, what "can't be changed"); Config Connector, which sends
version, edition and maintenance version each alone; Cloud SQL's "Instance settings" (what restarts an instance).
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Literal

from devcloud.gcp.refusals import invalid
from devcloud.gcp.state import catalog
from devcloud.gcp.state.flags import FLAGS, refusal_of_flag
from devcloud.gcp.state.settings import Json
from devcloud.simulator.messages import Refusal

Effect = Literal["online", "restart", "upgrade"]
ONLINE_S, RESTART_S, UPGRADE_S = 15.0, 90.0, 600.0
LENGTH_S: dict[Effect, float] = {"online": ONLINE_S, "restart": RESTART_S, "upgrade": UPGRADE_S}
"""How long the operation of each runs."""

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LONGEST = 98
_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
_MOST_LABELS = 64
_IMMUTABLE = ("name", "region", "project", "instanceType", "masterInstanceName", "diskEncryptionConfiguration")
_MOST_DAYS = {"ENTERPRISE": 7, "ENTERPRISE_PLUS": 35}
_LEAST_GB, _MOST_GB = 10, 65_536


def refusal_of_name(project: str, name: str) -> str:
    """Return why an instance cannot have a name, empty when it can."""
    if _NAME.fullmatch(name) is None:
        return (
            f"Invalid instance name ({name}). Use lowercase letters, numbers, and hyphens. Start with a letter; end "
            "with a letter or a number."
        )
    if len(f"{project}:{name}") > _LONGEST:
        return f"Invalid instance name ({name}). With the project ID it has at most {_LONGEST} characters."
    return ""


def refuse_unlawful(instance: Json) -> None:
    """Refuse an instance that there cannot be.

    Raises:
        Refusal: Its first fault.
    """
    for sentence in _faults(instance):
        raise invalid(sentence)


def _faults(instance: Json) -> Iterator[str]:
    settings = instance["settings"]
    version = instance["databaseVersion"]
    if version not in catalog.VERSIONS:
        yield f"Database version {version} is not simulated; there are {', '.join(catalog.VERSIONS)}."
    if instance["region"] not in catalog.REGIONS:
        yield f"Invalid value for region: {instance['region']}."
    if not settings.get("tier"):
        yield "Missing parameter: tier."
    tier = catalog.refusal_of_tier(settings["tier"], settings.get("edition", "ENTERPRISE"))
    if tier:
        yield tier
    if settings["activationPolicy"] not in {"ALWAYS", "NEVER"}:
        policy = settings["activationPolicy"]
        yield f"Invalid flag for instance role: instances do not support '{policy}' activation policy."
    if not _LEAST_GB <= int(settings["dataDiskSizeGb"]) <= _MOST_GB:
        yield f"The disk size must be between {_LEAST_GB} and {_MOST_GB} GB."
    yield from _network_faults(settings["ipConfiguration"])
    yield from _backup_faults(settings)
    yield from _label_faults(settings.get("userLabels", {}))
    flags = settings.get("databaseFlags", [])
    yield from filter(None, (refusal_of_flag(flag["name"], flag.get("value", "")) for flag in flags))


def _network_faults(ip: Json) -> Iterator[str]:
    private = ip.get("privateNetwork") or ip.get("pscConfig", {}).get("pscEnabled")
    if not ip["ipv4Enabled"] and not private:
        yield "At least one of Public IP or Private IP or PSC connectivity must be enabled."
    if not ip["ipv4Enabled"] and ip["authorizedNetworks"]:
        yield "Authorized networks can be set only with a public IP."
    for network in ip["authorizedNetworks"]:
        try:
            parsed = ipaddress.ip_network(network.get("value", ""))
        except ValueError:
            yield f"Invalid network for authorized_networks: {network.get('value', '')}."
            continue
        if parsed.version != 4:  # noqa: PLR2004 - IPv4 is the reference's own restriction
            yield "IPv6 is not supported for authorized networks."


def _backup_faults(settings: Json) -> Iterator[str]:
    backups = settings["backupConfiguration"]
    if backups.get("pointInTimeRecoveryEnabled") and not backups["enabled"]:
        yield "Point-in-time recovery cannot be enabled when backups are disabled."
    days = backups["transactionLogRetentionDays"]
    most = _MOST_DAYS.get(settings.get("edition", "ENTERPRISE"), 7)
    if not 1 <= days <= most:
        yield f"Transaction log retention days must be between 1 and {most}."
    if re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", backups["startTime"]) is None:
        yield f"Invalid backup start time: {backups['startTime']}."


def _label_faults(labels: Json) -> Iterator[str]:
    if len(labels) > _MOST_LABELS:
        yield f"There are more than {_MOST_LABELS} labels."
    for key, value in labels.items():
        if _LABEL_KEY.fullmatch(key) is None or _LABEL_VALUE.fullmatch(value) is None:
            yield f"Invalid label: {key}={value}. Use lowercase letters, numbers, hyphens and underscores, up to 63."


def refuse_change(present: Json, wanted: Json) -> None:
    """Refuse a change that no instance can go through.

    Args:
        present: The instance before, as it is shown.
        wanted: As it would be after it.

    Raises:
        Refusal: What cannot be changed, or not together with the rest.
    """
    for name in _IMMUTABLE:
        if present.get(name) != wanted.get(name):
            raise invalid(f"{name} cannot be changed.")
    before, after = present["settings"], wanted["settings"]
    if int(after["dataDiskSizeGb"]) < int(before["dataDiskSizeGb"]):
        raise invalid("Disk size can not be decreased.")
    if after["dataDiskType"] != before["dataDiskType"]:
        raise invalid("Disk type can not be changed.")
    network = before["ipConfiguration"].get("privateNetwork")
    if network and after["ipConfiguration"].get("privateNetwork") != network:
        raise invalid("Private network can not be changed or removed once it is set.")
    _refuse_version(present["databaseVersion"], wanted["databaseVersion"])
    _refuse_company(present, wanted)
    refuse_unlawful(wanted)


def _refuse_version(present: str, wanted: str) -> None:
    if wanted in catalog.VERSIONS and catalog.major(wanted) < catalog.major(present):
        raise invalid(f"Database version {present} cannot be changed to the older {wanted}.")


def _refuse_company(present: Json, wanted: Json) -> None:
    changed = set(_changed(present, wanted))
    for alone, name in (
        ({"databaseVersion"}, "databaseVersion"),
        ({"maintenanceVersion"}, "maintenanceVersion"),
        # A tier belongs to one edition, and the disk's cache and log retention to it as well.
        (
            {"settings.edition", "settings.tier", "settings.dataCacheConfig", "settings.backupConfiguration"},
            "settings.edition",
        ),
    ):
        if name in changed and not changed <= alone:
            others = ", ".join(sorted(changed - alone))
            raise invalid(f"{name} cannot be updated together with other fields: {others}.")


def _changed(present: Json, wanted: Json) -> Iterator[str]:
    for name in sorted({*present, *wanted} - {"settings"}):
        if present.get(name) != wanted.get(name):
            yield name
    before, after = present["settings"], wanted["settings"]
    for name in sorted({*before, *after} - {"settingsVersion"}):
        if before.get(name) != after.get(name):
            yield f"settings.{name}"


def effect_of(present: Json, wanted: Json) -> Effect:
    """Return what a change does to the sessions of a running instance."""
    changed = set(_changed(present, wanted))
    if "databaseVersion" in changed:
        return "upgrade"
    if changed & {"settings.tier", "settings.edition", "settings.availabilityType", "maintenanceVersion"}:
        return "restart"
    zones = (instance["settings"].get("locationPreference", {}).get("zone") for instance in (present, wanted))
    if len(set(zones)) > 1 or _restarting_flags(present["settings"]) != _restarting_flags(wanted["settings"]):
        return "restart"
    return "online"


def _restarting_flags(settings: Json) -> dict[str, Any]:
    flags = settings.get("databaseFlags", [])
    return {flag["name"]: flag["value"] for flag in flags if FLAGS[flag["name"]].restarts}


def refuse_stale(present: Json, settings: Json, *, required: bool) -> None:
    """Refuse a settingsVersion that is not the present one: the optimistic lock of an update.

    Raises:
        Refusal: It is another one (412), or a PUT has none (400).
    """
    version = settings.get("settingsVersion")
    if version is None:
        if required:
            raise Refusal("required", "Required parameter: settings.settingsVersion", status=400)
        return
    if version != present["settings"]["settingsVersion"]:
        raise Refusal("staleData", "Condition does not match.")
