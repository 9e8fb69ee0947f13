"""`python -m devcloud.gcp`: the simulated Cloud SQL as a program."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from devcloud.gcp.databases import CLOUD_SQL
from devcloud.gcp.server import ACCOUNT, PROJECT, Options, serving
from devcloud.simulator import program
from devcloud.simulator.program import Arguments


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("gcp", __doc__)
    parser.add_argument("--project", default=PROJECT, help="the id of the first project")
    parser.add_argument("--account", default=ACCOUNT, help="the service account that may do everything in it")
    parser.add_argument("--key-file", type=Path, help="where a key of that account is written, when there is none yet")
    return parser


@asynccontextmanager
async def _serve(arguments: Arguments, own: argparse.Namespace) -> AsyncIterator[str]:
    async with program.data_plane(CLOUD_SQL, arguments.databases) as databases:
        options = Options(
            host=arguments.host,
            port=arguments.port,
            project=own.project,
            account=own.account,
            durations=arguments.durations,
            speed=arguments.speed,
            databases=databases,
            state=arguments.state,
            control_token=arguments.control_token,
            key_file=own.key_file,
        )
        async with serving(options) as served:
            yield served.url


if __name__ == "__main__":
    program.run("gcp", _parser(), _serve)
