"""`python -m providers <cloud>`: one provider process."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

import runtime.log_library  # noqa: F401 - before what logs

# isort: split

from apis.metrics import BUILD_INFO
from providers.process import build_for, provider_of, times_of
from runtime.lease import LeaseSettings
from runtime.serve import ProcessSettings, main, version_of


def arguments_parser() -> argparse.ArgumentParser:
    """Return the parser of a provider's command line."""
    parser = argparse.ArgumentParser(prog="python -m providers", description=__doc__)
    parser.add_argument("cloud", help="whose resources to reconcile: the name of a folder of providers/")
    parser.add_argument("--kubeconfig", type=Path, help="else $KUBECONFIG, else the Pod's own account")
    parser.add_argument(
        "--namespace", help="of the Lease and of the ProviderConfigs' Secrets; default fairlead-<cloud>"
    )
    parser.add_argument("--health-port", type=int, default=8081)
    parser.add_argument("--health-host", default="127.0.0.1")
    parser.add_argument("--no-elect", action="store_true", help="lead without a Lease: for one process alone")
    parser.add_argument("--log-level", default="INFO")
    for name, seconds, meaning in (
        ("lease-duration", 12, "a silent leader is replaced after this"),
        ("lease-renew-deadline", 8, "a leader that cannot renew stops after this"),
        ("lease-retry", 2, "between two renewals"),
        ("resync", None, "each resource is reconciled this often"),
        ("sweep", None, "each account is listed this often"),
        ("grace", 60, "a database that is not found is believed lost after this"),
        ("settle", None, "a slow cloud may show nothing of a change that it accepted for this long"),
        ("rotation-grace", 3600, "a former login works for this long after a rotation"),
    ):
        default = "the cloud's own" if seconds is None else f"{seconds}"
        parser.add_argument(
            f"--{name}", type=float, default=seconds, metavar="SECONDS", help=f"{meaning}; default {default}"
        )
    parser.add_argument(
        "--call-budget",
        type=float,
        metavar="SECONDS",
        help="calls of a pass start within this; default 20, or less for a shorter lease",
    )
    parser.add_argument(
        "--endpoint-override",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="a host that a ProviderConfig may name as its endpoint; may be given more than once",
    )
    return parser


def durations(options: argparse.Namespace) -> dict[str, timedelta]:
    """Return the options that are times; one without a value is left out."""
    return {name: timedelta(seconds=value) for name, value in vars(options).items() if isinstance(value, int | float)}


def run(arguments: list[str]) -> int:
    """Run one provider until a signal; return its exit status."""
    options = arguments_parser().parse_args(arguments)
    provider = provider_of(options.cloud)
    seconds = durations(options)
    settings = ProcessSettings(
        name=f"fairlead-provider-{provider.cloud}",
        namespace=options.namespace or f"fairlead-{provider.cloud}",
        kubeconfig=options.kubeconfig,
        health_host=options.health_host,
        health_port=options.health_port,
        lease=LeaseSettings(seconds["lease_duration"], seconds["lease_renew_deadline"], seconds["lease_retry"]),
        elect=not options.no_elect,
        log_level=options.log_level,
        packages=("providers",),
        version=version_of("fairlead"),
    )
    times = times_of(seconds, provider.intervals)
    BUILD_INFO.labels(settings.name, settings.version).set(1)
    return main(settings, build_for(provider, times, endpoints=tuple(options.endpoint_override)))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
