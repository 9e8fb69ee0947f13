"""Random walks of claims whose databases are instances of a simulated RDS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import psycopg

from tests.support.api import JsonObject
from tests.support.aws import AWS_CONFIG, RDS_INSTANCE, Aws
from tests.support.home import Home, furnish
from tests.support.kinds import CLAIM, Kind, claim, is_ready
from tests.support.processes import Program
from tests.support.walk_events import API_OUTAGES, KILLS, NOTHING, Event
from tests.support.walk_oracle import EVERY_S, Oracle
from tests.support.walk_world import PROVIDER, Inhabitant, World, behind_one_line

_RESYNC_S = 10.0
_QUICK = ("--sweep=1", f"--resync={_RESYNC_S}", "--grace=3", "--settle=2", "--rotation-grace=10")
_CLASSES = {"small": "db.t4g.medium", "medium": "db.m7g.large", "large": "db.m7g.xlarge", "xlarge": "db.m7g.2xlarge"}
_RETENTION = 7
# After storage has grown RDS works on for hours; the instance is used and changed meanwhile (RDS User Guide, "DB
# instance status").
_AT_REST = ("available", "storage-optimization")
_FAULT_SAMPLES = 4
FAULT_S = _FAULT_SAMPLES * EVERY_S
LOGIN_CHECKS = {"Administrator": "Auto", "Alternating": "Required"}
"""How a new password is proven, by what applications log in as."""


@dataclass(frozen=True, slots=True)
class AwsCloud:
    """The account's instances, by the name of their host."""

    unreachable: str = ""
    instances: dict[str, JsonObject] = field(default_factory=dict)

    def gap(self, claim: JsonObject, binding: dict[str, str]) -> str:
        instance, spec = self.instances.get(binding["host"]), claim["spec"]
        if instance is None:
            return f"no instance at {binding['host']}"
        days = spec.get("backup", {}).get("retentionDays", _RETENTION)
        gaps = []
        if instance["DBInstanceStatus"] not in _AT_REST:
            gaps.append(f"status {instance['DBInstanceStatus']}")
        if instance["BackupRetentionPeriod"] != days:
            gaps.append(f"retention {instance['BackupRetentionPeriod']}, asked for {days}")
        if instance["DBInstanceClass"] != _CLASSES[spec["size"]]:
            gaps.append(f"class {instance['DBInstanceClass']}, asked for {_CLASSES[spec['size']]}")
        return "; ".join(gaps)


@dataclass(slots=True, kw_only=True)
class AwsWorld(World):
    """A simulated RDS beside the rig.

    Attributes:
        homes: What was planted, by claim.
        identifiers: The name of each claim's instance.
        resources: Its DbiResourceId.
    """

    aws: Aws
    homes: dict[str, Home] = field(default_factory=dict)
    identifiers: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)

    @property
    def child_kind(self) -> Kind:
        return RDS_INSTANCE

    async def launch_provider(self, *flags: str) -> Program:
        return await self.aws.start_provider(*flags, *_QUICK)

    async def make_logins(self, logins: str) -> None:
        """Choose what applications log in as: `Administrator`, which RDS makes, or `Alternating`, two made by SQL."""
        await self.system.edit(
            AWS_CONFIG, "", "default", {"spec": {"loginCheck": LOGIN_CHECKS[logins], "logins": logins}}
        )

    async def look(self) -> AwsCloud:
        try:
            instances = await self.aws.instances()
        except (aiohttp.ClientError, TimeoutError):
            return AwsCloud("the simulator does not answer")
        return AwsCloud(
            "", {instance["Endpoint"]["Address"]: instance for instance in instances if instance.get("Endpoint")}
        )

    async def move_in(self, walkers: Sequence[Inhabitant]) -> None:
        self.identifiers.clear()
        for walker in walkers:
            await self.system.create(CLAIM, claim(walker.namespace, walker.name, deletionPolicy="Delete"))
        await self.until_all(CLAIM, walkers[0].namespace, [walker.name for walker in walkers], is_ready)
        room = asyncio.Semaphore(4)

        async def plant(walker: Inhabitant) -> None:
            async with room:
                self.homes[walker.name] = await furnish(self.system, walker.namespace, walker.name)
                child = await self.child(walker)
                assert child is not None
                self.identifiers[walker.name] = child["metadata"]["annotations"]["fairlead.dev/external-name"]

        await asyncio.gather(*(plant(walker) for walker in walkers))
        resources = {
            instance["DBInstanceIdentifier"]: str(instance["DbiResourceId"]) for instance in await self.aws.instances()
        }
        self.resources = {name: resources[identifier] for name, identifier in self.identifiers.items()}

    async def losses(self, walkers: Iterable[Inhabitant]) -> list[str]:
        wrong = []
        instances = {
            instance["DBInstanceIdentifier"]: str(instance["DbiResourceId"]) for instance in await self.aws.instances()
        }
        for walker in walkers:
            home, identifier = self.homes[walker.name], self.identifiers[walker.name]
            if instances.get(identifier) != self.resources[walker.name]:
                wrong.append(f"{walker.name}: another instance than at the start")
            try:
                if await home.rows() != [home.row]:
                    wrong.append(f"{walker.name}: the planted row is gone")
            except psycopg.Error as error:
                wrong.append(f"{walker.name}: no login reads the planted row: {str(error).strip()[-120:]}")
        return wrong


@asynccontextmanager
async def aws_world(aws: Aws) -> AsyncIterator[AwsWorld]:
    """Start composer and AWS's provider beside a simulator, both behind one line to the API server."""
    async with behind_one_line(aws.system, {PROVIDER: ("fairlead-aws", "fairlead-provider-aws")}) as (line, ways):
        world = AwsWorld(
            system=aws.system,
            line=line,
            kubeconfigs=ways,
            labels={"cloud": "aws"},
            aws=aws,
            # A look that falls into a fault of RDS learns nothing, of logins neither.
            resync_s=_RESYNC_S + FAULT_S,
        )
        try:
            await world.start()
            await aws.system.until(AWS_CONFIG, "", "default", is_ready)
            yield world
        finally:
            await world.end()


def _fault(kind: str, **settings: object) -> Event:
    @asynccontextmanager
    async def happen(world: World, oracle: Oracle) -> AsyncIterator[None]:
        assert isinstance(world, AwsWorld)
        yield
        # The acts of people come first: they are calls as well.
        await world.aws.fault("*", kind, times=None, **settings)
        try:
            await oracle.samples_more(_FAULT_SAMPLES)
        finally:
            await world.aws.heal()

    return Event(f"RDS: {settings.get('code', kind)}", happen)


@asynccontextmanager
async def _throttled(world: World, oracle: Oracle) -> AsyncIterator[None]:
    assert isinstance(world, AwsWorld)
    yield
    await world.aws.behave(throttle={"read_per_s": 2, "write_per_s": 0.5, "burst": 2})
    try:
        await oracle.samples_more(_FAULT_SAMPLES)
    finally:
        await world.aws.behave(throttle=None)


@asynccontextmanager
async def _lagging(world: World, oracle: Oracle) -> AsyncIterator[None]:
    assert isinstance(world, AwsWorld)
    await world.aws.behave(list_lag_s=600.0, get_lag_s=300.0)
    try:
        yield
        await oracle.samples_more(_FAULT_SAMPLES)
    finally:
        await world.aws.behave(list_lag_s=0.0, get_lag_s=0.0)


EVENTS_AWS = (
    NOTHING,
    *KILLS,
    *API_OUTAGES,
    _fault("error", code="InternalFailure"),
    _fault("error", code="ServiceUnavailable"),
    _fault("drop"),
    Event("RDS throttles", _throttled),
    Event("RDS lags", _lagging),
)
