"""`python -m devcloud.aws`: the simulated RDS and STS as a program."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from devcloud.aws.databases import RDS
from devcloud.aws.iam.principals import ACCESS_KEY, ACCOUNT, SECRET_KEY
from devcloud.aws.server import Options, serving
from devcloud.simulator import program
from devcloud.simulator.program import Arguments


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("aws", __doc__)
    parser.add_argument("--account", default=ACCOUNT, help="twelve digits")
    parser.add_argument("--access-key", default=ACCESS_KEY, help="the first user's access key id")
    parser.add_argument("--secret-key-file", type=Path, help="a file with that user's secret")
    parser.add_argument("--pod-token-file", type=Path, help="a file with what /_eks asks for; none closes it")
    return parser


@asynccontextmanager
async def _serve(arguments: Arguments, own: argparse.Namespace) -> AsyncIterator[str]:
    async with program.data_plane(RDS, arguments.databases) as databases:
        options = Options(
            host=arguments.host,
            port=arguments.port,
            account=own.account,
            access_key_id=own.access_key,
            secret_access_key=program.text_of(own.secret_key_file) or SECRET_KEY,
            durations=arguments.durations,
            speed=arguments.speed,
            databases=databases,
            state=arguments.state,
            control_token=arguments.control_token,
            pod_token=program.text_of(own.pod_token_file),
        )
        async with serving(options) as served:
            yield served.url


if __name__ == "__main__":
    program.run("aws", _parser(), _serve)
