"""The simulated RDS in the process, called by the provider's own client classes on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import pytest

from apis.teardown import Policy
from devcloud.aws.platform import ACCOUNT, REGION
from fairlead.simulation import virtual_time
from fairlead.simulation.calls import NOBODY, PROVIDER, STRANGER, Weather
from fairlead.simulation.process_life import ProcessLife
from fairlead.simulation.rds import CREDENTIALS, Rds
from fairlead.simulation.rds_transport import connector
from providers.aws.config import ProviderConfigSpec
from providers.aws.instances.changes import classify
from providers.aws.instances.client import InstanceClients, instance_clients
from providers.aws.instances.facts import Facts
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Fence, FenceClosed, Target
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Present
from providers.external.ownership import Owner
from runtime import clock
from runtime.errors import Failure

T = TypeVar("T")
OWNER = Owner("home", "uid-1", "0123456789abcdef", "team", "orders", "server", "uid-of-team")
SPEC = RDSInstanceParameters(
    db_instance_class="db.t4g.medium", allocated_storage=20, engine_version="16", master_username="orders_app",
    db_name="orders", backup_retention_period=7,
)  # fmt: skip
TARGET = Target("fl-orders", SPEC, OWNER, "hash")
CONFIG = msgspec.convert(
    {
        "region": REGION,
        "accountID": ACCOUNT,
        "credentials": {"source": "Secret", "secretRef": {"name": "key"}},
        "allowedNamespaces": {"selector": {}},
    },
    ProviderConfigSpec,
)
PASSWORD = "Sufficient-1-Sufficient"
LOGIN = ("orders_app", PASSWORD, "orders")


@dataclass
class World:
    """A cloud, a process of the provider that lives until it is killed, and its clients."""

    cloud: Rds
    clients: InstanceClients
    life: ProcessLife

    def fence(self, seconds: float = 60) -> Fence:
        return Fence(clock.monotonic() + seconds, lambda: True, clock.monotonic)

    async def made(self, target: Target[RDSInstanceParameters] = TARGET) -> None:
        await self.clients.external.create(target, Credential("orders_app", PASSWORD), self.fence())
        await asyncio.sleep(600)

    async def seen(self) -> Observed[RDSInstanceParameters, Facts]:
        observation = await self.clients.external.observe(TARGET)
        assert isinstance(observation, Present)
        return observation.observed

    def actions(self) -> list[tuple[str, str, str]]:
        return [(made.principal, made.action, made.server) for made in self.cloud.history]


def lived(act: Callable[[World], Awaitable[T]]) -> T:
    """Do something in a world of its own, on virtual time."""

    async def main() -> T:
        cloud, life = Rds(lambda *_words: None, virtual_time.chance_of("1:0", "cloud")), ProcessLife()
        connect = connector(cloud, life)
        async with AsyncExitStack() as stack:
            account = await stack.enter_async_context(connect(CONFIG, {"key": CREDENTIALS}))
            running = asyncio.create_task(cloud.run())
            stack.callback(running.cancel)
            return await act(World(cloud, instance_clients(account), life))

    return virtual_time.run("1:0", main)


def test_instance_is_made_changed_and_deleted() -> None:
    async def act(world: World) -> None:
        await world.made()
        assert world.cloud.admits("fl-orders", *LOGIN)
        assert not world.cloud.admits("fl-orders", "orders_app", "another", "orders")

        more = replace(TARGET, spec=msgspec.structs.replace(SPEC, allocated_storage=40))
        seen = await world.seen()
        change = classify(Change(("allocatedStorage",), 40, 20), seen)
        await world.clients.external.update(more, seen, (change,), world.fence())
        await asyncio.sleep(1200)
        assert (await world.seen()).facts.allocated_storage == 40

        await world.clients.external.delete(TARGET, await world.seen(), Policy.DELETE, world.fence())
        await asyncio.sleep(1200)
        assert isinstance(await world.clients.external.observe(TARGET), Absent)
        assert world.actions() == [
            (PROVIDER, "servers.create", "fl-orders"),
            (PROVIDER, "servers.change", "fl-orders"),
            (PROVIDER, "servers.delete", "fl-orders"),
        ]
        assert world.cloud.left() == set()

    lived(act)


def test_password_takes_the_place_of_the_former_one() -> None:
    async def act(world: World) -> None:
        await world.made()
        login = Credential("orders_app", "Another-1-Another")
        await world.clients.logins.set(TARGET, await world.seen(), login, world.fence())
        await asyncio.sleep(60)

        assert world.cloud.admits("fl-orders", "orders_app", login.password, "orders")
        assert not world.cloud.admits("fl-orders", *LOGIN)

    lived(act)


def test_snapshot_restores_its_databases_and_its_login() -> None:
    async def act(world: World) -> None:
        await world.made()
        ask = world.cloud.ask
        assert ask("CreateDBSnapshot", DBInstanceIdentifier="fl-orders", DBSnapshotIdentifier="kept").endswith("200")
        await asyncio.sleep(600)
        assert world.cloud.backups() == ["kept"]
        assert ask("DeleteDBInstance", DBInstanceIdentifier="fl-orders", SkipFinalSnapshot=True).endswith("200")
        await asyncio.sleep(600)
        ask("RestoreDBInstanceFromDBSnapshot", DBInstanceIdentifier="other", DBSnapshotIdentifier="kept")
        await asyncio.sleep(1200)

        assert world.cloud.admits("other", *LOGIN)
        assert world.actions()[1:] == [
            (STRANGER, "backups.create", "backup:kept"),
            (STRANGER, "servers.delete", "fl-orders"),
            (STRANGER, "servers.create", "other"),
        ]

    lived(act)


def test_replaced_instance_has_another_incarnation_and_no_tags() -> None:
    async def act(world: World) -> None:
        await world.made()
        before = await world.seen()
        world.cloud.steer("fl-orders", replace=True)
        await asyncio.sleep(60)
        after = await world.seen()

        assert (before.incarnation != after.incarnation, dict(after.facts.tags)) == (True, {})
        assert world.actions()[-1] == (NOBODY, "servers.replace", "fl-orders")

    lived(act)


@pytest.mark.parametrize(
    ("weather", "arrives"),
    [
        (Weather(cut_before=1.0), False),
        (Weather(write_cut=1.0), False),
        (Weather(unavailable=1.0), False),
        (Weather(throttled=1.0), False),
        (Weather(cut_after=1.0), True),
    ],
    ids=["cut before", "a write is cut", "503", "throttled", "cut after"],
)
def test_create_fails_on_the_way(weather: Weather, *, arrives: bool) -> None:
    async def act(world: World) -> bool:
        world.cloud.weather = weather
        with pytest.raises(Failure):
            await world.made()
        return "fl-orders" in world.cloud.left()

    assert lived(act) is arrives


def test_absence_for_once_is_answered_for_what_is_there() -> None:
    async def act(world: World) -> None:
        await world.made()
        world.cloud.weather = Weather(absent=1.0)
        assert isinstance(await world.clients.external.observe(TARGET), Absent)
        world.cloud.weather = Weather()
        assert (await world.seen()).name == "fl-orders"

    lived(act)


def test_fence_that_closed_on_the_way_stops_a_request() -> None:
    async def act(world: World) -> None:
        with pytest.raises(FenceClosed):
            await world.clients.external.create(TARGET, Credential("orders_app", PASSWORD), world.fence(0.001))
        assert world.cloud.left() == set()

    lived(act)


def test_request_of_a_killed_process_never_arrives() -> None:
    async def act(world: World) -> None:
        sent = asyncio.create_task(world.made())
        world.life.is_over = True
        await asyncio.sleep(3600)
        assert (sent.done(), world.cloud.left()) == (False, set())
        sent.cancel()

    lived(act)


def test_group_of_an_instances_name_is_another_thing() -> None:
    async def act(world: World) -> None:
        world.cloud.ask(
            "CreateDBParameterGroup", DBParameterGroupName="fl-orders", DBParameterGroupFamily="postgres16",
            Description="a group",
        )  # fmt: skip
        await world.made()

        assert world.cloud.left() == {"fl-orders", "parameters:fl-orders"}
        assert world.actions() == [
            (STRANGER, "parameters.create", "parameters:fl-orders"),
            (PROVIDER, "servers.create", "fl-orders"),
        ]
        assert world.cloud.runs("parameters:fl-orders")

    lived(act)
