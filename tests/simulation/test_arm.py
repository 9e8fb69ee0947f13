"""The simulated Azure in the process, called by the provider's own client classes on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import msgspec
import pytest

from apis.teardown import Policy
from devcloud.azure.entra.directory import SUBSCRIPTION
from fairlead.simulation import virtual_time
from fairlead.simulation.arm import CREDENTIALS, SERVERS, Azure
from fairlead.simulation.arm_transport import connector
from fairlead.simulation.calls import PROVIDER, STRANGER, Made, Weather
from fairlead.simulation.process_life import ProcessLife
from providers.azure.arm import AzureAccount
from providers.azure.children.kinds import ServerDatabases
from providers.azure.config import ProviderConfigSpec
from providers.azure.models import FlexibleServerDatabaseParameters, FlexibleServerParameters
from providers.azure.servers.changes import classify
from providers.azure.servers.client import clients
from providers.azure.servers.facts import Facts
from providers.external.client import Clients, Fence, Operation, Target
from providers.external.credential import Credential
from providers.external.observation import Absent, Change, Observed, Present
from providers.external.ownership import Owner
from runtime import clock
from runtime.errors import Failure, Throttled, Transient

T = TypeVar("T")
OWNER = Owner("home", "uid-1", "0123456789abcdef", "team", "orders", "server", "uid-of-team")
SERVER = Target(
    "databases/orders",
    FlexibleServerParameters(
        resource_group_name="databases", location="uksouth", administrator_login="orders_app", version="16",
        sku_name="Standard_D2ds_v5", sku_tier="GeneralPurpose", storage_size_gb=64,
    ),
    OWNER, "hash", own_password="Own-Password-1",
)  # fmt: skip
DATABASE = Target("databases/orders/app", FlexibleServerDatabaseParameters(name="app"), OWNER, "hash")
CONFIG = msgspec.convert(
    {
        "subscriptionID": SUBSCRIPTION,
        "credentials": {"source": "ClientSecret", "secretRef": {"name": "client"}},
        "allowedNamespaces": {"selector": {}},
    },
    ProviderConfigSpec,
)
PASSWORD = "Sufficient-1-Sufficient"


@dataclass
class World:
    """A cloud, a process of the provider that lives until it is killed, and its clients."""

    cloud: Azure
    account: AzureAccount
    servers: Clients[FlexibleServerParameters, Facts]
    databases: ServerDatabases
    life: ProcessLife

    def fence(self) -> Fence:
        return Fence(clock.monotonic() + 60, lambda: True, clock.monotonic)

    async def ended(self, operation: Operation | None) -> None:
        """Poll an operation to its end."""
        assert operation is not None
        assert self.servers.operations is not None
        while not await self.servers.operations.poll(operation):  # noqa: ASYNC110 - as the reconciler does
            await asyncio.sleep(5)

    async def made(self) -> None:
        await self.ended(await self.servers.external.create(SERVER, Credential("orders_app", PASSWORD), self.fence()))

    async def seen(
        self, target: Target[FlexibleServerParameters] = SERVER
    ) -> Observed[FlexibleServerParameters, Facts]:
        observation = await self.servers.external.observe(target)
        assert isinstance(observation, Present)
        return observation.observed

    def resource_id(self) -> str:
        return self.cloud.resources.servers["orders"].resource_id

    def actions(self) -> list[tuple[str, str, bool]]:
        return [(made.principal, made.action, made.had) for made in self.cloud.history]


def lived(act: Callable[[World], Awaitable[T]]) -> T:
    """Do something in a world of its own, on virtual time."""

    async def main() -> T:
        cloud, life = Azure(lambda *_words: None, virtual_time.chance_of("1:0", "cloud")), ProcessLife()
        connect = connector(cloud, life)
        async with AsyncExitStack() as stack:
            account = await stack.enter_async_context(connect(CONFIG, {"client": CREDENTIALS}))
            running = asyncio.create_task(cloud.run())
            stack.callback(running.cancel)
            return await act(World(cloud, account, clients(account), ServerDatabases(account), life))

    return virtual_time.run("1:0", main)


def test_server_is_made_changed_and_deleted() -> None:
    async def act(world: World) -> None:
        await world.made()
        seen = await world.seen()
        assert (seen.usable, seen.owner, seen.spec.storage_size_gb) == (True, OWNER, 64)
        assert world.cloud.logins.admits(world.resource_id(), "orders_app", PASSWORD, "postgres")

        change = classify(Change(("storageSizeGB",), 128, 64), seen)
        target = Target(SERVER.name, msgspec.structs.replace(SERVER.spec, storage_size_gb=128), OWNER, "hash")
        await world.ended(await world.servers.external.update(target, seen, (change,), world.fence()))
        assert (await world.seen(target)).spec.storage_size_gb == 128

        await world.ended(await world.servers.external.delete(SERVER, seen, Policy.DELETE, world.fence()))
        assert isinstance(await world.servers.external.observe(SERVER), Absent)
        assert world.actions() == [
            (PROVIDER, "servers.create", False),
            (PROVIDER, "servers.change", True),
            (PROVIDER, "servers.delete", True),
        ]

    lived(act)


def test_database_that_is_made_twice_is_one() -> None:
    async def act(world: World) -> None:
        await world.made()
        await world.ended(await world.databases.create(DATABASE, Credential("", ""), world.fence()))
        made = world.cloud.logins.servers[world.resource_id()].databases["app"]
        assert isinstance(await world.databases.observe(DATABASE), Present)

        again = world.cloud.ask("PUT", f"{SERVERS}/orders/databases/app", {"properties": {}})
        await asyncio.sleep(60)
        assert again.status == 202
        assert world.cloud.logins.servers[world.resource_id()].databases["app"] == made
        assert world.actions()[1:] == [(PROVIDER, "databases.create", False), (STRANGER, "databases.create", True)]

        observation = await world.databases.observe(DATABASE)
        assert isinstance(observation, Present)
        deletion = world.databases.delete(DATABASE, observation.observed, Policy.DELETE, world.fence())
        await world.ended(await deletion)
        assert isinstance(await world.databases.observe(DATABASE), Absent)
        assert "app" not in world.cloud.logins.servers[world.resource_id()].databases

    lived(act)


def test_password_that_arm_was_given_last_is_the_only_one() -> None:
    async def act(world: World) -> None:
        await world.made()
        logins, changed = world.servers.logins, Credential("orders_app", "Another-1-Another")
        assert logins is not None
        await world.ended(await logins.set(SERVER, await world.seen(), changed, world.fence()))
        passwords = (PASSWORD, changed.password)
        admits = partial(world.cloud.logins.admits, world.resource_id(), "orders_app", database="postgres")
        assert [admits(password=password) for password in passwords] == [False, True]

    lived(act)


def test_change_of_a_busy_server_is_accepted_and_no_part_of_the_history() -> None:
    async def act(world: World) -> None:
        await world.made()
        world.cloud.ask("PUT", f"{SERVERS}/orders/databases/first", {"properties": {}})
        second = world.cloud.ask("PUT", f"{SERVERS}/orders/databases/second", {"properties": {}})
        await asyncio.sleep(60)

        assert second.status == 202
        assert [made.name for made in world.cloud.history] == ["", "first"]
        assert {"first", "second"} & set(world.cloud.resources.servers["orders"].databases) == {"first"}

    lived(act)


FAULTS: tuple[tuple[str, Weather, type[Failure], int], ...] = (
    ("a request that is cut", Weather(cut_before=1.0), Transient, 0),
    ("a write that is cut before its effect", Weather(write_cut=1.0), Transient, 0),
    ("a write whose answer is cut", Weather(cut_after=1.0), Transient, 1),
    ("a service that is away", Weather(unavailable=1.0), Transient, 0),
    ("a throttled request", Weather(throttled=1.0), Throttled, 0),
)


@pytest.mark.parametrize(("weather", "failure", "effects"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_fault_on_the_way(weather: Weather, failure: type[Failure], effects: int) -> None:
    async def act(world: World) -> None:
        await world.made()
        seen = await world.seen()
        world.cloud.weather = weather
        with pytest.raises(failure):
            await world.servers.external.delete(SERVER, seen, Policy.DELETE, world.fence())
        assert len(world.actions()) == 1 + effects

    lived(act)


def test_server_that_is_there_is_answered_as_absent_in_some_weather() -> None:
    async def act(world: World) -> None:
        await world.made()
        recorded = replace(SERVER, incarnation=(await world.seen()).incarnation)
        world.cloud.weather = Weather(absent=1.0)
        with pytest.raises(Transient, match="was not found, and is listed"):
            await world.servers.external.observe(recorded)

    lived(act)


def test_killed_process_sends_nothing_more() -> None:
    async def act(world: World) -> None:
        await world.made()
        seen, world.life.is_over = await world.seen(), True
        deletion = world.servers.external.delete(SERVER, seen, Policy.DELETE, world.fence())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(deletion, 3600)
        assert len(world.actions()) == 1

    lived(act)


def test_server_that_was_replaced_is_another_one_and_empty() -> None:
    async def act(world: World) -> None:
        await world.made()
        before, seen = world.resource_id(), await world.seen()
        world.cloud.steer("orders", replace=True)
        steered, again = clock.monotonic(), await world.seen()

        assert (again.incarnation == seen.incarnation, again.owner) == (False, None)
        assert world.resource_id() != before
        assert not world.cloud.logins.admits(world.resource_id(), "orders_app", PASSWORD, "postgres")
        assert world.cloud.history[-1] == Made(steered, "", "servers.replace", "orders", "", had=True)

    lived(act)


def test_same_seed_is_the_same_run() -> None:
    def traced() -> str:
        trace = virtual_time.Trace()

        async def act(world: World) -> None:
            world.cloud.emit = trace.add
            await world.made()
            await world.ended(await world.databases.create(DATABASE, Credential("", ""), world.fence()))

        lived(act)
        return trace.hash

    assert traced() == traced()
