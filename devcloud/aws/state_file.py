"""All that the simulated RDS knows in one file, so that it outlives its process, however that ends."""

import typing
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from devcloud.aws.iam.principals import Key, Role
from devcloud.aws.lifecycle.steps import Became, Do, End, Record, Step
from devcloud.aws.region import Region
from devcloud.aws.simulator import Simulator
from devcloud.aws.state.model import AutomatedBackup, Event, Instance, ParameterGroup, Snapshot, SubnetGroup
from devcloud.errors import DevcloudError
from devcloud.paths import write_private

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


class _Saved(msgspec.Struct, frozen=True, kw_only=True):
    now: datetime
    keys: dict[str, Key]
    roles: dict[str, Role]
    regions: tuple[_Region, ...]


class StateFile:
    """Where a simulator's state is written whenever it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: tuple[int, ...] = ()
        self._encoded: dict[str, tuple[Record, msgspec.Raw]] = {}

    def load(self, simulator: Simulator) -> None:
        """Give a new simulator what the file holds, and hand its databases the work that was under way.

        Raises:
            DevcloudError: The file is not one of these.
        """
        if not self._path.exists():
            return
        try:
            saved = msgspec.json.decode(self._path.read_bytes(), type=_Saved)
            records = {
                (saved_region.account, saved_region.name): {
                    name: _record(raw) for name, raw in saved_region.instances.items()
                }
                for saved_region in saved.regions
            }
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise DevcloudError(f"{self._path} is no state of a simulated RDS ({error}); delete it") from None
        simulator.clock.advance(max(0.0, (saved.now - simulator.clock.now()).total_seconds()))
        # The first user's key is as this process was started with.
        simulator.principals.keys = {**saved.keys, **simulator.principals.keys}
        simulator.principals.roles.update(saved.roles)
        for saved_region in saved.regions:
            region = simulator.region(saved_region.account, saved_region.name)
            region.snapshots.update(saved_region.snapshots)
            region.data_keys.update(saved_region.data_keys)
            region.retained.update(saved_region.retained)
            region.subnet_groups.update(saved_region.subnet_groups)
            region.parameter_groups.update(saved_region.parameter_groups)
            region.events.extend(saved_region.events)
            for record in records[saved_region.account, saved_region.name].values():
                _resume(simulator, region, record)

    def save(self, simulator: Simulator) -> None:
        """Write what changed since the last time."""
        at = (simulator.changes, *(region.changes for region in simulator.regions.values()))
        if at == self._written:
            return
        saved = _Saved(
            now=simulator.clock.now(),
            keys=simulator.principals.keys,
            roles=simulator.principals.roles,
            regions=tuple(self._region(region) for region in simulator.regions.values()),
        )
        write_private(self._path, msgspec.json.encode(saved))
        self._written = at

    def _region(self, region: Region) -> _Region:
        return _Region(
            account=region.account,
            name=region.name,
            instances={name: self._encode(record) for name, record in region.instances.items()},
            snapshots=region.snapshots,
            data_keys=region.data_keys,
            retained=region.retained,
            subnet_groups=region.subnet_groups,
            parameter_groups=region.parameter_groups,
            events=tuple(region.events)[-_EVENTS_SAVED:],
        )

    def _encode(self, record: Record) -> msgspec.Raw:
        """Return a record's JSON; records never change, so each is encoded once."""
        key = record.shown.dbi_resource_id
        made = self._encoded.get(key)
        if made is None or made[0] is not record:
            made = (record, msgspec.Raw(msgspec.json.encode(record)))
            self._encoded[key] = made
        return made[1]


def _resume(simulator: Simulator, region: Region, record: Record) -> None:
    if record.address is not None:
        simulator.jobs.again(record)
    under = record.under
    region.put(record)
    if under is not None and under.work is not None and under.step.work is not None:
        simulator.jobs.work(region, Do(record, under.step.work, under.work))


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
