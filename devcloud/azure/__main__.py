"""`python -m devcloud.azure`: the simulated Azure as a program."""

import argparse
from pathlib import Path

from devcloud.azure.databases import AZURE
from devcloud.azure.entra.directory import CLIENT_ID, CLIENT_SECRET
from devcloud.azure.server import Options, serving
from devcloud.simulator import program
from devcloud.simulator.dataplane import DataPlane
from devcloud.simulator.program import Arguments, Program


def _parser() -> argparse.ArgumentParser:
    parser = program.new_parser("azure", __doc__)
    parser.add_argument("--client-id", default=CLIENT_ID, help="the first application's client id")
    parser.add_argument("--client-secret-file", type=Path, help="a file with that application's secret")
    parser.add_argument("--resource-group", action="append", default=[], help="one that is there from the start; again")
    return parser


def _options(arguments: Arguments, own: argparse.Namespace, databases: DataPlane) -> Options:
    return arguments.options(
        Options,
        databases,
        client_id=own.client_id,
        client_secret=program.text_of(own.client_secret_file) or CLIENT_SECRET,
        groups=tuple(own.resource_group),
    )


if __name__ == "__main__":
    program.run(Program("azure", _parser(), AZURE, _options, serving))
