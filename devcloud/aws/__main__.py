"""`python -m devcloud.aws`: the simulated RDS and STS as a program."""

import argparse
import asyncio
import signal
from pathlib import Path

from devcloud.aws.dataplane import NoDatabases
from devcloud.aws.principals import ACCESS_KEY, ACCOUNT, SECRET_KEY
from devcloud.aws.server import Options, serving


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devcloud.aws", description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0", help="host:port; port 0 is a free one")
    parser.add_argument("--account", default=ACCOUNT, help="twelve digits")
    parser.add_argument("--access-key", default=ACCESS_KEY, help="the first user's access key id")
    parser.add_argument("--secret-key-file", type=Path, help="a file with that user's secret")
    parser.add_argument("--durations", type=float, default=1.0, help="what the length of operations is multiplied by")
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds in a real one")
    return parser.parse_args()


async def _serve(given: argparse.Namespace) -> None:
    host, _, port = given.listen.rpartition(":")
    secret = given.secret_key_file.read_text(encoding="utf-8").strip() if given.secret_key_file else SECRET_KEY
    databases = NoDatabases()
    options = Options(
        host=host,
        port=int(port),
        account=given.account,
        access_key_id=given.access_key,
        secret_access_key=secret,
        durations=given.durations,
        speed=given.speed,
        databases=databases,
    )
    ended = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    async with serving(options) as served:
        print(f"aws: listening on {served.url}", flush=True)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve(_parsed()))
