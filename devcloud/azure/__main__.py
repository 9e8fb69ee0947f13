"""`python -m devcloud.azure`: the simulated Azure as a program."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from devcloud.azure.databases import AZURE
from devcloud.azure.entra.directory import CLIENT_ID, CLIENT_SECRET
from devcloud.azure.server import Options, serving
from devcloud.simulator import program
from devcloud.simulator.program import Arguments


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("azure", __doc__)
    parser.add_argument("--client-id", default=CLIENT_ID, help="the first application's client id")
    parser.add_argument("--client-secret-file", type=Path, help="a file with that application's secret")
    parser.add_argument(
        "--tls", type=Path, help="a folder with the authority of the API's certificate; without it HTTP"
    )
    return parser


@asynccontextmanager
async def _serve(arguments: Arguments, own: argparse.Namespace) -> AsyncIterator[str]:
    async with program.data_plane(AZURE, arguments.databases) as databases:
        options = Options(
            host=arguments.host,
            port=arguments.port,
            client_id=own.client_id,
            client_secret=program.text_of(own.client_secret_file) or CLIENT_SECRET,
            durations=arguments.durations,
            speed=arguments.speed,
            databases=databases,
            tls=own.tls,
            state=arguments.state,
            control_token=arguments.control_token,
        )
        async with serving(options) as served:
            yield served.url


if __name__ == "__main__":
    program.run("azure", _parser(), _serve)
