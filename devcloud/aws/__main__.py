"""`python -m devcloud.aws`: the simulated RDS and STS as a program."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from devcloud.aws import databases
from devcloud.aws.dataplane import DataPlane, NoDatabases
from devcloud.aws.iam.principals import ACCESS_KEY, ACCOUNT, SECRET_KEY
from devcloud.aws.server import Options, serving
from devcloud.errors import DevcloudError


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devcloud.aws", description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0", help="host:port; port 0 is a free one")
    parser.add_argument("--account", default=ACCOUNT, help="twelve digits")
    parser.add_argument("--access-key", default=ACCESS_KEY, help="the first user's access key id")
    parser.add_argument("--secret-key-file", type=Path, help="a file with that user's secret")
    parser.add_argument("--durations", type=float, default=1.0, help="what the length of operations is multiplied by")
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds in a real one")
    parser.add_argument("--databases", type=Path, help="a folder for real databases; without it there are none")
    parser.add_argument("--octet", type=int, help="the second number of their addresses, in a /16 leased by the caller")
    parser.add_argument("--durable", action="store_true", help="sync the databases to disk")
    parser.add_argument("--data-plane", choices=("lazy", "eager"), default="lazy", help="eager: started at creation")
    parser.add_argument("--state", type=Path, help="a file that keeps everything beyond the process")
    parser.add_argument("--control-token-file", type=Path, help="a file with what /_control asks for; none closes it")
    parser.add_argument("--pod-token-file", type=Path, help="a file with what /_eks asks for; none closes it")
    arguments = parser.parse_args()
    if (arguments.databases is None) != (arguments.octet is None):
        parser.error("--databases and --octet go together")
    return arguments


@asynccontextmanager
async def _data_plane(arguments: argparse.Namespace) -> AsyncIterator[DataPlane]:
    if arguments.databases is None:
        yield NoDatabases()
        return
    options = databases.Options(
        folder=arguments.databases,
        octet=arguments.octet,
        durable=arguments.durable,
        eager=arguments.data_plane == "eager",
    )
    async with databases.open_databases(options) as data_plane:
        yield data_plane


def _text_of(file: Path | None) -> str:
    return file.read_text(encoding="utf-8").strip() if file is not None else ""


async def _serve(arguments: argparse.Namespace) -> None:
    host, _, port = arguments.listen.rpartition(":")
    secret = _text_of(arguments.secret_key_file) or SECRET_KEY
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with contextlib.AsyncExitStack() as stack:
        data_plane = await stack.enter_async_context(_data_plane(arguments))
        options = Options(
            host=host,
            port=int(port),
            account=arguments.account,
            access_key_id=arguments.access_key,
            secret_access_key=secret,
            durations=arguments.durations,
            speed=arguments.speed,
            databases=data_plane,
            state=arguments.state,
            control_token=_text_of(arguments.control_token_file),
            pod_token=_text_of(arguments.pod_token_file),
        )
        served = await stack.enter_async_context(serving(options))
        print(f"aws: listening on {served.url}", flush=True)
        await ended.wait()


if __name__ == "__main__":
    try:
        asyncio.run(_serve(_parsed()))
    except (OSError, DevcloudError) as error:
        sys.exit(f"aws: {error}")
