"""`python -m providers <cloud>`: one provider process."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from providers.process import Times, build_for, provider_of
from runtime.lease import LeaseSettings
from runtime.serve import ProcessSettings, main


def _arguments() -> argparse.ArgumentParser:
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
        ("resync", 600, "each resource is looked at this often"),
        ("sweep", 30, "each account is listed this often"),
        ("grace", 60, "a database that is not found is believed lost after this"),
        ("settle", 60, "a slow cloud may show nothing of a change that it accepted for this long"),
        ("rotation-grace", 3600, "a former login works for this long after a rotation"),
    ):
        parser.add_argument(f"--{name}", type=float, default=seconds, metavar="SECONDS", help=meaning)
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


def run(arguments: list[str]) -> int:
    """Run one provider until a signal; return its exit status."""
    options = _arguments().parse_args(arguments)
    provider = provider_of(options.cloud)
    seconds = {
        name: timedelta(seconds=value) for name, value in vars(options).items() if isinstance(value, int | float)
    }
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
    )
    # With the default lease 20 s and 5 s: who takes over from a killed process waits in proportion to its lease.
    share = min(1.0, settings.lease.duration / LeaseSettings().duration)
    times = Times(
        resync=seconds["resync"],
        sweep=seconds["sweep"],
        grace=seconds["grace"],
        call_budget=seconds.get("call_budget", share * timedelta(seconds=20)),
        skew=share * timedelta(seconds=5),
        rotation_grace=seconds["rotation_grace"],
        settle=seconds["settle"],
    )
    return main(settings, build_for(provider, times, endpoints=tuple(options.endpoint_override)))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
