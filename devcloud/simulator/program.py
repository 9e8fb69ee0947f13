"""`python -m devcloud.<cloud>`: the arguments of all simulated clouds, and a program that serves until a signal."""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from devcloud.errors import DevcloudError
from devcloud.simulator import databases
from devcloud.simulator.databases import Engine
from devcloud.simulator.dataplane import DataPlane, NoDatabases

OptionsT = TypeVar("OptionsT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What every cloud's program takes from its command line.

    Attributes:
        host: Where it listens.
        port: The TCP port; 0 is a free one.
        durations: What the length of operations is multiplied by.
        speed: Simulated seconds in a real one.
        databases: How its databases are run; None is without.
        tls: A folder with the authority of the API's certificate; None serves without TLS.
        state: A file that keeps everything beyond the process.
        control_token: What `/_control` asks for; empty closes it.
    """

    host: str
    port: int
    durations: float
    speed: float
    databases: databases.Options | None
    tls: Path | None
    state: Path | None
    control_token: str

    def options(self, kind: Callable[..., OptionsT], databases: DataPlane, **own: object) -> OptionsT:
        """Return the options of a cloud's server: what all clouds have, and its own."""
        return kind(
            host=self.host,
            port=self.port,
            durations=self.durations,
            speed=self.speed,
            databases=databases,
            tls=self.tls,
            state=self.state,
            control_token=self.control_token,
            **own,
        )


class Served(Protocol):
    """A running server."""

    @property
    def url(self) -> str:
        """Where it is reached."""


@dataclass(frozen=True, slots=True)
class Program(Generic[OptionsT]):
    """One cloud's program.

    Attributes:
        cloud: Begins each line of the program.
        parser: Of its command line.
        engine: How its databases are made.
        options: Returns the server's options, by what all clouds have and by the cloud's own arguments.
        serving: Serves for the length of its block.
    """

    cloud: str
    parser: argparse.ArgumentParser
    engine: Engine
    options: Callable[[Arguments, argparse.Namespace, DataPlane], OptionsT]
    serving: Callable[[OptionsT], AbstractAsyncContextManager[Served]]


def new_parser(cloud: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all clouds have; a cloud adds its own."""
    parser = argparse.ArgumentParser(prog=f"python -m devcloud.{cloud}", description=description)
    parser.add_argument("--listen", default="127.0.0.1:0", help="host:port; port 0 is a free one")
    parser.add_argument("--durations", type=float, default=1.0, help="what the length of operations is multiplied by")
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds in a real one")
    parser.add_argument("--databases", type=Path, help="a folder for real databases; without it there are none")
    parser.add_argument("--octet", type=int, help="the second number of their addresses, in a /16 leased by the caller")
    parser.add_argument("--durable", action="store_true", help="sync the databases to disk")
    parser.add_argument("--data-plane", choices=("lazy", "eager"), default="lazy", help="eager: started at creation")
    parser.add_argument(
        "--tls", type=Path, help="a folder with the authority of the API's certificate; without it HTTP"
    )
    parser.add_argument("--state", type=Path, help="a file that keeps everything beyond the process")
    parser.add_argument("--control-token-file", type=Path, help="a file with what /_control asks for; none closes it")
    return parser


def _parsed(parser: argparse.ArgumentParser) -> tuple[Arguments, argparse.Namespace]:
    values = parser.parse_args()
    if (values.databases is None) != (values.octet is None):
        parser.error("--databases and --octet go together")
    host, _, port = values.listen.rpartition(":")
    options = None
    if values.databases is not None:
        options = databases.Options(
            folder=values.databases,
            octet=values.octet,
            durable=values.durable,
            eager=values.data_plane == "eager",
        )
    arguments = Arguments(
        host=host,
        port=int(port),
        durations=values.durations,
        speed=values.speed,
        databases=options,
        tls=values.tls,
        state=values.state,
        control_token=text_of(values.control_token_file),
    )
    return arguments, values


def text_of(file: Path | None) -> str:
    """Return what a file of a secret holds, nothing for no file."""
    return file.read_text(encoding="utf-8").strip() if file is not None else ""


@asynccontextmanager
async def _data_plane(engine: Engine, options: databases.Options | None) -> AsyncIterator[DataPlane]:
    """Have the databases of a cloud for the length of a block, or none."""
    if options is None:
        yield NoDatabases()
        return
    async with databases.open_databases(engine, options) as opened:
        yield opened


def run(program: Program[OptionsT]) -> None:
    """Serve until SIGINT or SIGTERM; end with one line when it cannot begin."""
    try:
        arguments, own = _parsed(program.parser)
        asyncio.run(_until_signalled(program, arguments, own))
    except (OSError, DevcloudError) as error:
        sys.exit(f"{program.cloud}: {error}")


async def _until_signalled(program: Program[OptionsT], arguments: Arguments, own: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with (
        _data_plane(program.engine, arguments.databases) as opened,
        program.serving(program.options(arguments, own, opened)) as served,
    ):
        print(f"{program.cloud}: listening on {served.url}", flush=True)
        await ended.wait()
