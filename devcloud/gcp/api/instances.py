"""The methods of instances: each refuses, or starts the operation that does it."""

from datetime import timedelta
from fnmatch import fnmatchcase

import msgspec

from devcloud.gcp.api.calls import Call, Cloud, page
from devcloud.gcp.api.messages import time_text
from devcloud.gcp.api.starting import Kind, started
from devcloud.gcp.api.views import instance_view, service_agent
from devcloud.gcp.databases import ADMINISTRATOR
from devcloud.gcp.refusals import (
    in_progress,
    invalid,
    name_taken,
    no_instance,
    not_authorized,
    not_running,
    not_simulated,
    wrong_state,
)
from devcloud.gcp.state import catalog, changes, settings
from devcloud.gcp.state.model import Backup, DatabaseOf, Instance, User
from devcloud.gcp.state.settings import Json
from devcloud.gcp.state.world import new_uid
from devcloud.simulator.operations import OperationError
from runtime import randomness

CREATE_S, DELETE_S, RESTART_S, FAILOVER_S = 240.0, 60.0, 60.0, 90.0
_MOST = 500
_FIRST_OF_PLUS = 16
_NOT_SIMULATED = frozenset(
    {
        *("masterInstanceName", "replicaConfiguration", "onPremisesConfiguration", "failoverReplica", "replicaNames"),
        *("replicationCluster", "nodeCount", "tags", "databaseCenterIntegration"),
    }
)
_DELETABLE = frozenset({"RUNNABLE", "SUSPENDED", "FAILED", "MAINTENANCE"})
BACKUP_FAILED = OperationError(code="INTERNAL_ERROR", message="The final backup could not be taken.")


# Reading


def get(cloud: Cloud, call: Call) -> Json:
    """Return an instance, as it was `get_lag_s` ago."""
    key = f"{call.project}:{call.instance}"
    lag = cloud.behaviour.get_lag_s
    if lag:
        shown = cloud.world.history.as_of(key, cloud.world.clock.now() - timedelta(seconds=lag))
    else:
        shown = cloud.world.instances[key].shown if key in cloud.world.instances else None
    if shown is None:
        gone = any(fnmatchcase(call.instance, pattern) for pattern in cloud.behaviour.forbidden_when_gone)
        raise not_authorized() if gone else no_instance()
    return instance_view(call.project, shown, call.version)


def list_instances(cloud: Cloud, call: Call) -> Json:
    """Return a page of instances, as they were `list_lag_s` ago; a region out of reach is left out with a warning."""
    world = cloud.world
    moment = world.clock.now() - timedelta(seconds=cloud.behaviour.list_lag_s)
    keys = [key for key in world.history.names() if key.startswith(f"{call.project}:")]
    shown = (world.history.as_of(key, moment) for key in keys)
    lost = cloud.behaviour.unreachable_regions
    matching = [item for item in shown if item is not None and _matches(item, call.parameters.get("filter", ""))]
    items, token = page([item for item in matching if item["region"] not in lost], call, size=_MOST)
    answer: Json = {"kind": "sql#instancesList"}
    if items:
        answer["items"] = [instance_view(call.project, item, call.version) for item in items]
    if token:
        answer["nextPageToken"] = token
    if lost:
        answer["warnings"] = [
            {"code": "REGION_UNREACHABLE", "message": f"The region {region} is unreachable.", "region": region}
            for region in lost
        ]
    return answer


def _matches(shown: Json, expression: str) -> bool:
    """Return whether an instance meets a filter: terms `field:value` with AND (or blanks) between them."""
    for term in expression.replace(" AND ", " ").split():
        name, colon, value = term.partition(":")
        if not colon:
            raise invalid(f"Invalid filter: {expression}.")
        part: object = shown
        for step in name.split("."):
            part = part.get(step) if isinstance(part, dict) else None
        if str(part) != value.strip('"'):
            return False
    return True


# Creating


def insert(cloud: Cloud, call: Call) -> Json:
    """Create an instance."""
    body, name = call.body, str(call.body.get("name", ""))
    if "maintenanceVersion" in body:
        raise invalid("Maintenance version cannot be set when an instance is created.")
    refuse_name(cloud, call, name)
    wanted = new_resource(cloud, call, _with_edition(settings.chosen(body)))
    password = str(body.get("rootPassword", "")) or randomness.token_hex(24)
    have(cloud, wanted, password)
    return started(cloud, call, name, Kind("CREATE", CREATE_S))


def refuse_name(cloud: Cloud, call: Call, name: str) -> None:
    """Refuse a new instance of a name that is none, or taken.

    Raises:
        Refusal: So it is, or the body has what is not simulated.
    """
    sentence = changes.refusal_of_name(call.project, name)
    if sentence:
        raise invalid(sentence)
    for unknown in sorted(_NOT_SIMULATED & call.body.keys()):
        raise not_simulated(f"The field {unknown} of an instance")
    key = f"{call.project}:{name}"
    if key in cloud.world.instances or cloud.world.is_reserved(key):
        raise name_taken(reserved=key not in cloud.world.instances)


def new_resource(cloud: Cloud, call: Call, sent: Json) -> Json:
    """Return a new instance as the API shows it at first.

    Raises:
        Refusal: There cannot be such a one.
    """
    region = sent.get("region") or "us-central1"
    # What is null is as what is not sent.
    chosen = settings.merged({}, sent.get("settings") or {})
    edition = chosen.get("edition") or _edition_of(str(chosen.get("tier", "")))
    if region not in catalog.REGIONS:
        raise invalid(f"Invalid value for region: {region}.")
    kept = settings.merged(settings.defaults(edition, catalog.zone_in(region)), {**chosen, "settingsVersion": "1"})
    wanted: Json = {
        **sent,
        "databaseVersion": sent.get("databaseVersion", "MYSQL_8_0"),
        "region": region,
        "settings": settings.settled(kept),
    }
    changes.refuse_unlawful(wanted)
    version, name = wanted["databaseVersion"], wanted["name"]
    return {
        "backendType": "SECOND_GEN",
        "connectionName": f"{call.project}:{region}:{name}",
        "createTime": time_text(cloud.world.clock.now()),
        "databaseInstalledVersion": catalog.installed_version(version),
        "gceZone": wanted["settings"]["locationPreference"].get("zone") or catalog.zone_in(region),
        "geminiConfig": {
            "activeQueryEnabled": False,
            "entitled": False,
            "googleVacuumMgmtEnabled": False,
            "indexAdvisorEnabled": False,
            "oomSessionCancelEnabled": True,
        },
        "includeReplicasForMajorVersionUpgrade": False,
        "instanceType": "CLOUD_SQL_INSTANCE",
        "maintenanceVersion": catalog.maintenance_version(version),
        "project": call.project,
        "satisfiesPzi": True,
        "serviceAccountEmailAddress": service_agent(cloud.project.number, name),
        "sqlNetworkArchitecture": "NEW_NETWORK_ARCHITECTURE",
        "state": "PENDING_CREATE",
        "upgradableDatabaseVersions": catalog.upgrades(version),
        **wanted,
        "settings": settings.settled(kept, cloud.behaviour.dropped_settings),
    }


def _with_edition(sent: Json) -> Json:
    """Return what is sent with the edition that Google takes where none is: ENTERPRISE_PLUS from PostgreSQL 16 on.

    Source: terraform-provider-google, thread 20498.
    """
    version, chosen = sent.get("databaseVersion"), sent.get("settings") or {}
    is_new = version in catalog.VERSIONS and catalog.major(version) >= _FIRST_OF_PLUS
    return (
        sent if chosen.get("edition") or not is_new else {**sent, "settings": {**chosen, "edition": "ENTERPRISE_PLUS"}}
    )


def _edition_of(tier: str) -> str:
    return "ENTERPRISE_PLUS" if tier.startswith("db-perf-optimized-") else "ENTERPRISE"


def have(cloud: Cloud, shown: Json, password: str, source: Instance | None = None) -> None:
    """Have a new instance, with the users and databases of its source where it has one.

    Raises:
        Refusal: The operation that deletes the former one of its name is open.
    """
    instance = Instance(
        uid=new_uid(),
        project=shown["project"],
        shown=shown,
        password=password,
        users={ADMINISTRATOR: User(name=ADMINISTRATOR)} if source is None else source.users,
        databases={"postgres": DatabaseOf(name="postgres")} if source is None else source.databases,
    )
    if cloud.operations.open_of(instance.key) is not None:
        raise name_taken(reserved=True)
    cloud.world.put(instance)


# Changing


def patch(cloud: Cloud, call: Call) -> Json:
    """Change what is sent, and nothing else. An empty body changes nothing, by an operation (recorded)."""
    present = _changing(cloud, call)
    sent = settings.chosen(call.body)
    chosen = sent.get("settings") or {}
    changes.refuse_stale(present.shown, chosen, required=False)
    return _change(cloud, call, present, settings.merged(present.shown, {**sent, "settings": chosen}))


def update(cloud: Cloud, call: Call) -> Json:
    """Replace all settings; what is not sent goes back to its default, the disk's size and the zone stay."""
    present = _changing(cloud, call)
    sent = settings.chosen(call.body)
    chosen, before = sent.pop("settings", None) or {}, present.shown["settings"]
    changes.refuse_stale(present.shown, chosen, required=True)
    edition = chosen.get("edition") or before.get("edition", "ENTERPRISE")
    usual = settings.defaults(edition, catalog.zone_in(present.shown["region"]))
    stays = {name: before[name] for name in ("dataDiskSizeGb", "dataDiskType", "locationPreference")}
    wanted = settings.merged(present.shown, sent)
    return _change(cloud, call, present, {**wanted, "settings": settings.merged({**usual, **stays}, chosen)})


def _changing(cloud: Cloud, call: Call) -> Instance:
    instance = cloud.world.instance(call.project, call.instance)
    for unknown in sorted(_NOT_SIMULATED & call.body.keys()):
        raise not_simulated(f"The field {unknown} of an instance")
    _refuse_busy(cloud, instance)
    return cloud.world.changeable(call.project, call.instance)


def _refuse_busy(cloud: Cloud, instance: Instance) -> None:
    """Refuse beside an open operation, before anything else of the request is looked at."""
    if cloud.operations.open_of(instance.key) is not None:
        raise in_progress(cloud.behaviour.in_progress_status)


def _change(cloud: Cloud, call: Call, present: Instance, wanted: Json) -> Json:
    before = present.shown["settings"]
    edition = wanted["settings"].get("edition") or before.get("edition", "ENTERPRISE")
    if edition != before.get("edition", edition):
        chosen = settings.merged(wanted["settings"], settings.of_edition(edition, before))
        wanted = {**wanted, "settings": settings.merged(chosen, settings.chosen(call.body).get("settings") or {})}
    # What a null cleared is as if it had never been sent.
    usual = settings.defaults(edition, catalog.zone_in(present.shown["region"]))
    kept = settings.settled(settings.merged(usual, wanted["settings"]), cloud.behaviour.dropped_settings)
    wanted = {**wanted, "settings": {**kept, "settingsVersion": str(int(before["settingsVersion"]) + 1)}}
    changes.refuse_change(present.shown, wanted)
    effect = changes.effect_of(present.shown, wanted)
    seconds = changes.LENGTH_S[effect]
    return started(cloud, call, present.name, Kind("UPDATE", seconds), wanted=wanted, does=effect)


def restart(cloud: Cloud, call: Call) -> Json:
    """Restart a running instance."""
    refuse_not_running(cloud, call)
    return started(cloud, call, call.instance, Kind("RESTART", RESTART_S))


def failover(cloud: Cloud, call: Call) -> Json:
    """Let the standby of a regional instance take over."""
    instance = refuse_not_running(cloud, call)
    if instance.shown["settings"]["availabilityType"] != "REGIONAL":
        raise invalid("The instance is not configured for high availability.")
    version = call.body.get("failoverContext", {}).get("settingsVersion")
    changes.refuse_stale(instance.shown, {"settingsVersion": version}, required=False)
    return started(cloud, call, call.instance, Kind("FAILOVER", FAILOVER_S))


def refuse_not_running(cloud: Cloud, call: Call) -> Instance:
    """Return the instance of a call.

    Raises:
        Refusal: It is stopped, or at work.
    """
    instance = cloud.world.instance(call.project, call.instance)
    _refuse_busy(cloud, instance)
    instance = cloud.world.changeable(call.project, call.instance)
    if instance.is_stopped:
        raise not_running()
    return instance


# Deleting


def delete(cloud: Cloud, call: Call) -> Json:
    """Delete an instance, with a final backup where the call or its settings ask for one."""
    instance = cloud.world.instance(call.project, call.instance)
    _refuse_busy(cloud, instance)
    kept = instance.shown["settings"]
    if kept.get("deletionProtectionEnabled"):
        raise invalid(
            "The instance is protected. Please disable the deletion protection and try again. To disable deletion "
            "protection, update the instance settings with deletionProtectionEnabled set to false."
        )
    if instance.state not in _DELETABLE:
        raise wrong_state()
    final = _final_backup(cloud, call, instance)
    fails = final is not None and any(fnmatchcase(instance.name, item) for item in cloud.behaviour.failing_backups)
    answer = started(
        cloud,
        call,
        instance.name,
        Kind("DELETE", DELETE_S),
        error=BACKUP_FAILED if fails else None,
        final=final.key if final is not None else "",
    )
    cloud.world.put(instance.shows(state="PENDING_DELETE"))
    if final is not None:
        cloud.world.put_backup(final)
    return answer


def _final_backup(cloud: Cloud, call: Call, instance: Instance) -> Backup | None:
    usual = instance.shown["settings"].get("finalBackupConfig", {})
    by_settings = bool(usual.get("enabled")) and "enableFinalBackup" not in call.parameters
    wanted = by_settings or call.is_true("enableFinalBackup")
    if not wanted:
        return None
    now = cloud.world.clock.now()
    days = call.number("finalBackupTtlDays", int(usual.get("retentionDays", 30)))
    if not 1 <= days <= 365:  # noqa: PLR2004 - the reference's own bound
        raise invalid("finalBackupTtlDays must be between 1 and 365.")
    return Backup(
        id=cloud.world.new_backup_id(),
        project=instance.project,
        instance=instance.name,
        kind="FINAL",
        description=call.parameters.get("finalBackupDescription", ""),
        region=instance.shown["region"],
        version=instance.shown["databaseVersion"],
        at=now,
        expires_at=now + timedelta(days=days),
        settings=backed_up(instance),
        users=instance.users,
        databases=instance.databases,
    )


def backed_up(instance: Instance) -> Json:
    """Return what a backup keeps of an instance beside its data: all that it showed, but where it could be reached."""
    return {name: value for name, value in instance.shown.items() if name not in {"ipAddresses", "serverCaCert"}}


# What happens by itself


def resized(instance: Instance, gib: int) -> Instance:
    """Return an instance whose disk grew by itself (storageAutoResize)."""
    return instance.shows(settings={**instance.shown["settings"], "dataDiskSizeGb": str(gib)})


def changed_behind(instance: Instance, change: Json) -> Instance:
    """Return an instance that somebody else changed: another settingsVersion."""
    merged = settings.merged(instance.shown, change)
    version = int(instance.shown["settings"]["settingsVersion"]) + 1
    kept = settings.settled({**merged["settings"], "settingsVersion": str(version)})
    return msgspec.structs.replace(instance, shown={**merged, "settings": kept})
