"""What the simulated RDS keeps beyond its process, and how it goes on from there."""

import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from devcloud.aws.accounts import Accounts
from devcloud.aws.iam.principals import Key, Role
from devcloud.aws.lifecycle.steps import Became, Do, End, Record, Step
from devcloud.aws.region import Region
from devcloud.aws.state.model import AutomatedBackup, Event, Instance, ParameterGroup, Snapshot, SubnetGroup
from devcloud.simulator.service import Saved
from devcloud.simulator.state_file import EncodedOnce

_EVENTS_SAVED = 200


class _Region(msgspec.Struct, frozen=True, kw_only=True):
    account: str
    name: str
    instances: dict[str, msgspec.Raw]
    snapshots: dict[str, Snapshot]
    data_keys: dict[str, str]
    retained: dict[str, AutomatedBackup]
    subnet_groups: dict[str, SubnetGroup]
    parameter_groups: dict[str, ParameterGroup]
    events: tuple[Event, ...]


class AwsSaved(Saved, frozen=True, kw_only=True):
    """All of it."""

    keys: dict[str, Key]
    roles: dict[str, Role]
    regions: tuple[_Region, ...]


def restore(accounts: Accounts, saved: AwsSaved) -> None:
    """Give new accounts what a file holds, and hand the databases the work that was under way.

    Raises:
        msgspec.ValidationError: A record is none; nothing was changed.
    """
    records = {
        (saved_region.account, saved_region.name): {name: _record(raw) for name, raw in saved_region.instances.items()}
        for saved_region in saved.regions
    }
    # The first user's key is as this process was started with.
    accounts.principals.keys = {**saved.keys, **accounts.principals.keys}
    accounts.principals.roles.update(saved.roles)
    for saved_region in saved.regions:
        region = accounts.region(saved_region.account, saved_region.name)
        region.snapshots.update(saved_region.snapshots)
        region.data_keys.update(saved_region.data_keys)
        region.retained.update(saved_region.retained)
        region.subnet_groups.update(saved_region.subnet_groups)
        region.parameter_groups.update(saved_region.parameter_groups)
        region.events.extend(saved_region.events)
        for record in records[saved_region.account, saved_region.name].values():
            _resume(accounts, region, record)


def saved(accounts: Accounts, records: EncodedOnce[Record]) -> AwsSaved:
    """Return what is kept of all accounts."""
    return AwsSaved(
        now=accounts.clock.now(),
        keys=accounts.principals.keys,
        roles=accounts.principals.roles,
        regions=tuple(_saved_region(region, records) for region in accounts.regions.values()),
    )


def _saved_region(region: Region, records: EncodedOnce[Record]) -> _Region:
    return _Region(
        account=region.account,
        name=region.name,
        instances={
            name: records.encode(record.shown.dbi_resource_id, record) for name, record in region.instances.items()
        },
        snapshots=region.snapshots,
        data_keys=region.data_keys,
        retained=region.retained,
        subnet_groups=region.subnet_groups,
        parameter_groups=region.parameter_groups,
        events=tuple(region.events)[-_EVENTS_SAVED:],
    )


def _resume(accounts: Accounts, region: Region, record: Record) -> None:
    if record.address is not None:
        accounts.jobs.again(record)
    under = record.under
    region.put(record)
    if under is not None and under.work is not None and under.step.work is not None:
        accounts.jobs.work(region, Do(record, under.step.work, under.work))


def _record(raw: msgspec.Raw) -> Record:
    record = msgspec.json.decode(raw, type=Record)
    under = record.under
    if under is not None:
        under = msgspec.structs.replace(under, step=_step(under.step))
    return msgspec.structs.replace(record, under=under, agenda=tuple(_step(step) for step in record.agenda))


def _step(step: Step) -> Step:
    return msgspec.structs.replace(step, ends=tuple(_end(end) for end in step.ends))


def _end(end: End) -> End:
    """Give the values of a `Became` their types, which stand with the fields that they are for."""
    if not isinstance(end, Became):
        return end
    return msgspec.structs.replace(end, shown=_typed(end.shown, Instance), hidden=_typed(end.hidden, Record))


def _typed(values: Mapping[str, object], kind: type[Instance | Record]) -> dict[str, object]:
    hints: dict[str, Any] = typing.get_type_hints(kind)
    return {name: msgspec.convert(value, hints[name]) for name, value in values.items()}
