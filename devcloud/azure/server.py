"""The simulated Azure as a server: `serving` within a program, `running` beside a test."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from devcloud.azure.entra.directory import CLIENT_ID, CLIENT_SECRET, SUBSCRIPTION, TENANT, default_directory
from devcloud.azure.simulator import Simulator
from devcloud.azure.state.catalog import FIRST_LOCATION
from devcloud.azure.state.model import Group
from devcloud.simulator import server
from devcloud.simulator.clock import Clock
from devcloud.simulator.dataplane import DataPlane, NoDatabases
from devcloud.simulator.server import AUTHORITY, new_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run it.

    Attributes:
        host: The loop-back address.
        port: The TCP port; 0 is a free one.
        client_id: Of the first application, Owner of the subscription.
        client_secret: Its secret.
        groups: Names of resource groups that the subscription has from the start, in `FIRST_LOCATION`.
        durations: What the length of every operation is multiplied by.
        speed: How many simulated seconds pass in a real one.
        databases: What is behind the servers.
        tls: A folder with the authority of the API's certificate; None serves plain HTTP.
        state: A file that keeps everything beyond the process; None keeps nothing.
        control_token: What `/_control` asks for, a new one by default; empty closes it.
    """

    host: str = "127.0.0.1"
    port: int = 0
    client_id: str = CLIENT_ID
    client_secret: str = field(default=CLIENT_SECRET, repr=False)
    groups: tuple[str, ...] = ()
    durations: float = 1.0
    speed: float = 1.0
    databases: DataPlane = field(default_factory=NoDatabases)
    tls: Path | None = None
    state: Path | None = None
    control_token: str = field(default_factory=new_token, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server.

    Attributes:
        url: Of ARM, of Entra and of the metadata service alike.
        tenant: The tenant of the subscription.
        subscription: The one that there is at first.
        credentials: The first application's client id and secret.
        control_token: What `/_control` asks for.
        authority: The certificate of whoever signs that of the API; None without TLS.
    """

    url: str
    tenant: str
    subscription: str
    credentials: tuple[str, str] = field(repr=False)
    control_token: str = field(repr=False)
    authority: Path | None


@contextlib.asynccontextmanager
async def serving(options: Options) -> AsyncIterator[Served]:
    """Serve until the block ends.

    Raises:
        OSError: The port is taken.
        DevcloudError: The state file is none.
    """
    clock = Clock(durations=options.durations, speed=options.speed)
    directory = default_directory(client_id=options.client_id, secret=options.client_secret)
    scheme = "http" if options.tls is None else "https"
    frame = server.Options(
        host=options.host,
        port=options.port,
        tls=options.tls,
        state=options.state,
        control_token=options.control_token,
    )
    simulator = Simulator(clock, directory, options.databases, scheme=scheme)
    for name in options.groups:
        simulator.cloud.resources.keep_group(Group(subscription=SUBSCRIPTION, name=name, location=FIRST_LOCATION))
    async with server.serving(simulator, frame) as url:
        yield Served(
            url=url,
            tenant=TENANT,
            subscription=SUBSCRIPTION,
            credentials=(options.client_id, options.client_secret),
            control_token=options.control_token,
            authority=None if options.tls is None else options.tls / f"{AUTHORITY}.crt",
        )


@contextlib.contextmanager
def running(options: Options) -> Iterator[Served]:
    """Serve from a thread of its own until the block ends, for programs without an event loop."""
    with server.running(lambda: serving(options), name="azure simulator") as served:
        yield served
