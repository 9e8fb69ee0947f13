"""`python -m devcloud.aws`: the simulated RDS and STS as a program."""

import argparse
from pathlib import Path

from devcloud.aws.databases import RDS
from devcloud.aws.iam.principals import ACCESS_KEY, ACCOUNT, SECRET_KEY
from devcloud.aws.server import Options, serving
from devcloud.simulator import program
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.program import Arguments, Program


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("aws", __doc__)
    parser.add_argument("--account", default=ACCOUNT, help="twelve digits")
    parser.add_argument("--access-key", default=ACCESS_KEY, help="the first user's access key id")
    parser.add_argument("--secret-key-file", type=Path, help="a file with that user's secret")
    parser.add_argument("--pod-token-file", type=Path, help="a file with what /_eks asks for; none closes it")
    return parser


def _options(arguments: Arguments, own: argparse.Namespace, databases: DataPlane) -> Options:
    return arguments.options(
        Options,
        databases,
        account=own.account,
        access_key_id=own.access_key,
        secret_access_key=program.text_of(own.secret_key_file) or SECRET_KEY,
        pod_token=program.text_of(own.pod_token_file),
    )


if __name__ == "__main__":
    program.run(Program("aws", _parser(), RDS, _options, serving))
