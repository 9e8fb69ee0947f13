"""How the queue of pending values is emptied: the steps that make each of them true, in RDS's order. Pure.

After "Settings for DB instances" of the RDS User Guide, which says of each setting whether it restarts the instance.
"""

from collections.abc import Iterator

from devcloud.aws.lifecycle.steps import Addressed, Became, Optimizing, Record, Step
from devcloud.aws.state import catalog
from devcloud.aws.state.model import CertificateDetails, Instance, OptionStatus, ParameterStatus, Pending
from devcloud.simulator.work import MoveTo, Reboot, Upgrade

_STORAGE = ("allocated_storage", "storage_type", "iops", "storage_throughput")


def flush(record: Record) -> tuple[Step, ...]:
    """Return the steps that make all pending values true, in the order in which RDS applies them."""
    pending = record.shown.pending_modified_values
    return tuple(
        step
        for steps in (_online(record.shown, pending), _storage(record.shown, pending), _restarting(record, pending))
        for step in steps
    )


def _online(shown: Instance, pending: Pending) -> Iterator[Step]:
    names = ("license_model", "backup_retention_period", "dedicated_log_volume")
    fields: dict[str, object] = {name: value for name in names if (value := getattr(pending, name)) is not None}
    if fields:
        yield Step(status="modifying", seconds=30, ends=(Became(shown=fields, clears=tuple(fields)),))
    if pending.multi_az is not None:
        began, ended = (24, 25) if pending.multi_az else (30, 29)
        after: dict[str, object] = {
            "multi_az": pending.multi_az,
            "secondary_availability_zone": standby(shown, pending),
        }
        became = Became(shown=after, clears=("multi_az",))
        yield Step(status="modifying", seconds=180, ends=(became,), began=(began,), ended=(ended,))
    iam = pending.iam_database_authentication_enabled
    if iam is not None:
        name = "iam_database_authentication_enabled"
        yield Step(
            status="configuring-iam-database-auth", seconds=30, ends=(Became(shown={name: iam}, clears=(name,)),)
        )


def standby(shown: Instance, pending: Pending) -> str | None:
    """Return the zone of a Multi-AZ instance's standby: another one of its subnet group."""
    zones = {subnet.subnet_availability_zone.name for subnet in shown.db_subnet_group.subnets}
    return min(zones - {shown.availability_zone}, default=None) if pending.multi_az else None


def _storage(shown: Instance, pending: Pending) -> Iterator[Step]:
    fields: dict[str, object] = {name: value for name in _STORAGE if (value := getattr(pending, name)) is not None}
    if not fields:
        return
    kind = pending.storage_type or shown.storage_type
    gib = pending.allocated_storage or shown.allocated_storage
    iops, throughput = catalog.rates(
        kind, gib, iops=pending.iops or shown.iops, throughput=pending.storage_throughput or shown.storage_throughput
    )
    if kind == "gp3" and gib >= catalog.GP3_LARGE_GIB:
        # Above the threshold the base is larger than below it.
        iops, throughput = max(iops or 0, 12_000), max(throughput or 0, 500)
    after: dict[str, object] = {
        "allocated_storage": gib,
        "storage_type": kind,
        "iops": iops,
        "storage_throughput": throughput,
    }
    freed: dict[str, object] = {"resting": "available", "resting_until": None}
    ends = (Became(shown=after, clears=_STORAGE, hidden=freed), Optimizing())
    yield Step(status="modifying", seconds=90, ends=ends, began=(18,), ended=(17,))


def _restarting(record: Record, pending: Pending) -> Iterator[Step]:
    shown = record.shown
    if pending.db_instance_class is not None:
        became = Became(shown={"db_instance_class": pending.db_instance_class}, clears=("db_instance_class",))
        yield Step(status="modifying", seconds=240, began=(12,))
        yield Step(status="modifying", seconds=30, work=Reboot(), ends=(became,), began=(4,), ended=(6, 14))
    if pending.engine_version is not None:
        yield from _upgrade(shown, pending.engine_version)
    if pending.ca_certificate_identifier is not None:
        yield _certificate(shown, pending.ca_certificate_identifier)
    if pending.db_subnet_group_name is not None and record.next_subnet_group is not None:
        became = Became(
            shown={"db_subnet_group": record.next_subnet_group},
            clears=("db_subnet_group_name",),
            hidden={"next_subnet_group": None},
        )
        yield Step(status="moving-to-vpc", seconds=120, work=Reboot(), ends=(became,))
    if pending.db_instance_identifier is not None:
        yield from _renamed(shown, pending.db_instance_identifier)


def _upgrade(shown: Instance, version: str) -> Iterator[Step]:
    after: dict[str, object] = {"engine_version": version}
    present = shown.db_parameter_groups[0].db_parameter_group_name
    if catalog.major(version) != catalog.major(shown.engine_version):
        family = f"{catalog.ENGINE}{catalog.major(version)}"
        after["option_group_memberships"] = (OptionStatus(option_group_name=catalog.option_group(version)),)
        if present.startswith("default."):
            after["db_parameter_groups"] = (ParameterStatus(db_parameter_group_name=f"default.{family}"),)
    became = Became(shown=after, clears=("engine_version",))
    yield Step(status="upgrading", seconds=300, began=(267,))
    yield Step(status="upgrading", seconds=30, work=Upgrade(version), ends=(became,), began=(266,), ended=(6, 268))


def _certificate(shown: Instance, name: str) -> Step:
    after: dict[str, object] = {"ca_certificate_identifier": name}
    if shown.certificate_details is not None:
        valid_till = shown.certificate_details.valid_till
        after["certificate_details"] = CertificateDetails(ca_identifier=name, valid_till=valid_till)
    return Step(status="modifying", seconds=30, ends=(Became(shown=after, clears=("ca_certificate_identifier",)),))


def _renamed(shown: Instance, identifier: str) -> Iterator[Step]:
    arn = shown.db_instance_arn.rsplit(":", 1)[0] + f":{identifier}"
    became = Became(
        shown={"db_instance_identifier": identifier, "db_instance_arn": arn}, clears=("db_instance_identifier",)
    )
    move = MoveTo(identifier, port_of(shown))
    yield Step(status="renaming", seconds=60, work=move, ends=(became, Addressed()), ended=(6,))


def port_of(shown: Instance) -> int:
    """Return the port at which an instance answers, 0 before its creation."""
    return shown.endpoint.port if shown.endpoint else 0
