"""`python -m devcloud.gcp`: the simulated Cloud SQL as a program."""

import argparse
from pathlib import Path

from devcloud.gcp.databases import CLOUD_SQL
from devcloud.gcp.server import ACCOUNT, PROJECT, Options, serving
from devcloud.simulator import program
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.program import Arguments, Program


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("gcp", __doc__)
    parser.add_argument("--project", default=PROJECT, help="the id of the first project")
    parser.add_argument("--account", default=ACCOUNT, help="the service account that may do everything in it")
    parser.add_argument(
        "--key-file", type=Path, help="where a key of that account is written, unless one that counts is there"
    )
    return parser


def _options(arguments: Arguments, own: argparse.Namespace, databases: DataPlane) -> Options:
    return arguments.options(Options, databases, project=own.project, account=own.account, key_file=own.key_file)


if __name__ == "__main__":
    program.run(Program("gcp", _parser(), CLOUD_SQL, _options, serving))
