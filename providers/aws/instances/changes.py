"""What each field of an instance does to its users when it changes, and how RDS takes it. Pure.

RDS User Guide, "Settings for DB instances" (when a change is made, and whether it interrupts), and ModifyDBInstance of
the API Reference: with ApplyImmediately the *whole* queue of pending changes is made, whoever put it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from providers.aws.instances import states
from providers.aws.instances.facts import Facts
from providers.aws.models import RDSInstanceParameters
from providers.external.cloud_api.versions import covers, major_of
from providers.external.observation import Change, Class, Observed, Queue, Value
from providers.external.sql.alternating import is_of_roles

Seen = Observed[RDSInstanceParameters, Facts]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one field goes to ModifyDBInstance: its parameter, what it does, whether the window's queue can hold it."""

    parameter: str
    kind: Class = Class.ONLINE
    queues: bool = False


RULES: Mapping[str, Rule] = {
    "dbInstanceClass": Rule("DBInstanceClass", Class.RESTART, queues=True),
    "allocatedStorage": Rule("AllocatedStorage", queues=True),
    "engineVersion": Rule("EngineVersion", Class.RESTART, queues=True),
    "maxAllocatedStorage": Rule("MaxAllocatedStorage"),
    "storageType": Rule("StorageType", queues=True),
    "iops": Rule("Iops", queues=True),
    "storageThroughput": Rule("StorageThroughput", queues=True),
    "port": Rule("DBPortNumber", Class.LOCKOUT),
    "multiAZ": Rule("MultiAZ", queues=True),
    "dbSubnetGroupName": Rule("DBSubnetGroupName", Class.RESTART, queues=True),
    "vpcSecurityGroupIds": Rule("VpcSecurityGroupIds", Class.LOCKOUT),
    "publiclyAccessible": Rule("PubliclyAccessible", Class.LOCKOUT),
    "networkType": Rule("NetworkType", Class.LOCKOUT),
    "dbParameterGroupName": Rule("DBParameterGroupName"),
    "optionGroupName": Rule("OptionGroupName"),
    "backupRetentionPeriod": Rule("BackupRetentionPeriod"),
    "preferredBackupWindow": Rule("PreferredBackupWindow"),
    "preferredMaintenanceWindow": Rule("PreferredMaintenanceWindow"),
    "autoMinorVersionUpgrade": Rule("AutoMinorVersionUpgrade"),
    "caCertificateIdentifier": Rule("CACertificateIdentifier", Class.RESTART, queues=True),
    "enableIAMDatabaseAuthentication": Rule("EnableIAMDatabaseAuthentication", queues=True),
    "enableCloudwatchLogsExports": Rule("CloudwatchLogsExportConfiguration"),
    "enablePerformanceInsights": Rule("EnablePerformanceInsights"),
    "performanceInsightsRetentionPeriod": Rule("PerformanceInsightsRetentionPeriod"),
    "databaseInsightsMode": Rule("DatabaseInsightsMode"),
    "monitoringInterval": Rule("MonitoringInterval"),
    "monitoringRoleArn": Rule("MonitoringRoleArn"),
    "copyTagsToSnapshot": Rule("CopyTagsToSnapshot"),
    "deletionProtection": Rule("DeletionProtection"),
}
_MAGNETIC = "standard"
# "Amazon RDS DB instance storage": PostgreSQL on gp3 has a fixed rate below this size.
_GP3_CHOOSES_GIB = 400


def classify(change: Change, observed: Seen) -> Change:
    """Return a change with its class, its place in RDS's queue, and why it cannot be sent as things are."""
    facts = observed.facts
    if _is_of_a_tag(change) or change.queue is Queue.CANCEL or is_of_logins(change):
        return change
    name, rule = change.path[0], _special(change)
    veto = states.veto(facts.status, name)
    queue = Queue.NONE
    if rule.queues:
        waits = _holds(change, facts.pending.get(name))
        queue = Queue.WAITING if waits else Queue.OPEN
    # The group of another major version is refused for an instance that is not upgraded by the same call.
    along = ("engineVersion",) if name == "dbParameterGroupName" and facts.upgrading else ()
    return replace(change, kind=rule.kind, queue=queue, veto=veto or _refused(change, facts), along=along)


def outage(change: Change, observed: Seen) -> str:
    """Return for how long a change that interrupts does so.

    "Multi-AZ DB instance deployments": 60 to 120 s for a failover. "Upgrading a DB instance engine version": primary
    and standby are upgraded at the same time.
    """
    if change.path[0] == "engineVersion":
        return "until the upgrade has ended, a standby's too"
    return "60 to 120 s, a failover" if observed.spec.multi_az else "minutes: no standby takes over"


def _is_of_a_tag(change: Change) -> bool:
    return change.path[0] == "tags"


def is_of_logins(change: Change) -> bool:
    """Return whether a change is about roles or the administrator's password, and not a field of ModifyDBInstance."""
    return is_of_roles(change) or change.path[0] == "administrator"


def _special(change: Change) -> Rule:
    rule = RULES[change.path[0]]
    match change.path[0], change.want, change.have:
        case "backupRetentionPeriod", 0, _:
            return replace(rule, kind=Class.LOSS, queues=True)
        case "backupRetentionPeriod", _, 0:
            return replace(rule, kind=Class.RESTART, queues=True)
        case "engineVersion", str(want), str(have) if major_of(want) != major_of(have):
            return replace(rule, kind=Class.LOSS)
        case "storageType", want, have if _MAGNETIC in {want, have}:
            return replace(rule, kind=Class.RESTART)
        case _:
            return rule


def _refused(change: Change, facts: Facts) -> tuple[str, str] | None:
    match change.path[0], change.want, change.have:
        case "engineVersion", str(want), str(have) if _number(want) < _number(have):
            return "InvalidValue", f"engineVersion {want} is older than {have}, which runs; RDS makes no downgrade"
        case "engineVersion", str(want), str(have) if major_of(want) != major_of(have) and not facts.allow_major:
            text = f"from {have} to {want} is a major upgrade; set allowMajorVersionUpgrade to true to have it"
            return "HeldChange", text
        case _:
            return None


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))


def _holds(change: Change, waiting: Value) -> bool:
    if change.path == ("engineVersion",) and isinstance(change.want, str) and isinstance(waiting, str):
        return covers(change.want, waiting)
    if change.path == ("allocatedStorage",) and isinstance(change.want, int) and isinstance(waiting, int):
        return waiting >= change.want
    if isinstance(change.want, str) and isinstance(waiting, str):
        return change.want.lower() == waiting.lower()
    return waiting is not None and waiting == change.want


def request(spec: RDSInstanceParameters, observed: Seen, changes: Iterable[Change]) -> dict[str, Any] | None:
    """Return the parameters of the one ModifyDBInstance that the changes take; None when they are of tags alone.

    What empties the queue and what is handed to it never go together (providers.managed.decisions.decide_update); if
    they did, what only waits for the window would be left for the next pass, not made along with the rest.
    """
    fields = [change for change in changes if not _is_of_a_tag(change) and not is_of_logins(change)]
    flushes = any(change.queue in {Queue.OPEN, Queue.WAITING} and not change.deferred for change in fields)
    group = [change for change in fields if not (flushes and change.deferred)]
    return _request(spec, observed, group, now=flushes) if group else None


def _request(spec: RDSInstanceParameters, observed: Seen, changes: Iterable[Change], *, now: bool) -> dict[str, Any]:
    facts = observed.facts
    parameters: dict[str, Any] = {"DBInstanceIdentifier": observed.name, "ApplyImmediately": now}
    changes = tuple(changes)
    rate = _rate_along(spec, observed, changes)
    for change in changes:
        name = change.path[0]
        rule = RULES[name]
        parameters[rule.parameter] = list(change.want) if isinstance(change.want, tuple) else change.want
        match name:
            case "enableCloudwatchLogsExports":
                parameters[rule.parameter] = _exports(change)
            case "monitoringInterval" if spec.monitoring_role_arn is not None:
                parameters["MonitoringRoleArn"] = spec.monitoring_role_arn
            case "allocatedStorage" if rate is not None:
                parameters["Iops"] = rate
            case "storageType" | "iops":
                # RDS wants size and rate together (ModifyDBInstance, Iops).
                parameters.setdefault("AllocatedStorage", max(spec.allocated_storage, facts.allocated_storage))
            case "engineVersion" if facts.allow_major:
                parameters["AllowMajorVersionUpgrade"] = True
    return parameters


def _rate_along(spec: RDSInstanceParameters, observed: Seen, changes: Iterable[Change]) -> int | None:
    """Return the IOPS that a growth must name: of io1 and io2, and of gp3 from where they can be chosen.

    The storage is judged as the request makes it: the rate of another kind of storage does not ride along.
    """
    wants = {change.path[0]: change.want for change in changes}
    kind = wants.get("storageType", observed.spec.storage_type)
    is_same = kind == observed.spec.storage_type
    chosen = kind in {"io1", "io2"} or (
        kind == "gp3" and is_same and observed.facts.allocated_storage >= _GP3_CHOOSES_GIB
    )
    return (spec.iops or (observed.spec.iops if is_same or kind != "gp3" else None)) if chosen else None


def _exports(change: Change) -> dict[str, list[str]]:
    want = set(change.want) if isinstance(change.want, tuple) else set()
    have = set(change.have) if isinstance(change.have, tuple) else set()
    logs = {"EnableLogTypes": sorted(want - have), "DisableLogTypes": sorted(have - want)}
    return {key: names for key, names in logs.items() if names}
