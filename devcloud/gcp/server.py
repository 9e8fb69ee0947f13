"""The simulated Cloud SQL as a server: `serving` within a program, `running` beside a test."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from devcloud.gcp.iam.identities import Binding, Identities
from devcloud.gcp.simulator import Simulator
from devcloud.gcp.state.model import Project
from devcloud.paths import write_private
from devcloud.simulator import server
from devcloud.simulator.clock import Clock
from devcloud.simulator.dataplane import DataPlane, NoDatabases
from devcloud.simulator.server import new_token

PROJECT, NUMBER = "fairlead-devcloud", "123456789012"
ACCOUNT = f"fairlead@{PROJECT}.iam.gserviceaccount.com"
ROLE = "roles/owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run it.

    Attributes:
        host: The loop-back address.
        port: The TCP port; 0 is a free one.
        project: The id of the first project.
        account: Its service account, with every permission until it is bound otherwise.
        durations: What the length of every operation is multiplied by.
        speed: How many simulated seconds pass in a real one.
        databases: What is behind the instances.
        tls: A folder with the authority of the API's certificate; None serves without TLS.
        state: A file that keeps everything beyond the process; None keeps nothing.
        control_token: What `/_control` asks for, a new one by default; empty closes it.
        key_file: Where a key of that account is written, as Google's JSON, unless one that counts is there.
    """

    host: str = "127.0.0.1"
    port: int = 0
    project: str = PROJECT
    account: str = ACCOUNT
    durations: float = 1.0
    speed: float = 1.0
    databases: DataPlane = field(default_factory=NoDatabases)
    tls: Path | None = None
    state: Path | None = None
    control_token: str = field(default_factory=new_token, repr=False)
    key_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, its first project and service account, the token of the control API."""

    url: str
    project: str
    account: str
    control_token: str = field(repr=False)


@contextlib.asynccontextmanager
async def serving(options: Options) -> AsyncIterator[Served]:
    """Serve until the block ends.

    Raises:
        OSError: The port is taken.
        DevcloudError: The state file is none.
    """
    identities = Identities()
    identities.accounts.add(options.account)
    identities.bind(Binding(project=options.project, member=options.account, roles=(ROLE,)))
    simulator = Simulator(Clock(durations=options.durations, speed=options.speed), identities, options.databases)
    simulator.world.projects[options.project] = Project(id=options.project, number=NUMBER)
    frame = server.Options(
        host=options.host,
        port=options.port,
        tls=options.tls,
        state=options.state,
        control_token=options.control_token,
    )
    async with server.serving(simulator, frame) as url:
        if options.key_file is not None:
            _ensure_key(options.key_file, identities, options, url)
        yield Served(url, options.project, options.account, options.control_token)


def _ensure_key(file: Path, identities: Identities, options: Options, url: str) -> None:
    """Write a key of the first account unless the file holds one that counts.

    The file may be of a process that was killed before it kept what it knew.
    """
    try:
        content = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (FileNotFoundError, msgspec.DecodeError):
        content = {}
    if content.get("private_key_id") in identities.keys:
        return
    key = identities.new_key(options.account, options.project)
    write_private(file, msgspec.json.encode({**key, "token_uri": f"{url}/token"}))


@contextlib.contextmanager
def running(options: Options) -> Iterator[Served]:
    """Serve from a thread of its own until the block ends, for programs without an event loop."""
    with server.running(lambda: serving(options), name="gcp simulator") as served:
        yield served
