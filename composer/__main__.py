"""The composer's process: `python -m composer`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from composer.workers.server import TemplateServer

if TYPE_CHECKING:
    from composer.workers.pool import RenderPool
    from runtime.controller import Controller
    from runtime.serve import ProcessContext

NAME = "fairlead-composer"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the process's flags."""
    made = argparse.ArgumentParser(prog="python -m composer", description="Composes claims into cloud resources.")
    made.add_argument("--kubeconfig", type=Path, help="default: $KUBECONFIG, else the pod's own account")
    made.add_argument("--namespace", default="fairlead-system", help="of the Lease and of the environments")
    made.add_argument("--lease-duration", type=float, default=12.0, metavar="SECONDS")
    made.add_argument("--lease-renew-deadline", type=float, default=8.0, metavar="SECONDS")
    made.add_argument("--lease-retry", type=float, default=2.0, metavar="SECONDS")
    made.add_argument("--no-elect", action="store_true", help="lead without a Lease; for one process alone")
    made.add_argument("--health-host", default="127.0.0.1", help="address of /healthz, /readyz and /metrics")
    made.add_argument("--health-port", type=int, default=8081)
    made.add_argument("--resync", type=float, default=600.0, metavar="SECONDS", help="look at every claim again")
    made.add_argument("--unsafe-render", action="store_true", help="render templates without seccomp")
    made.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the composer until a signal ends it."""
    options = parser().parse_args(arguments)
    # Forked first: no connection, credential or thread exists yet that a template could reach, and next to nothing is
    # loaded that workers would carry.
    server = TemplateServer(is_confined=not options.unsafe_render)
    import runtime.log_library  # noqa: PLC0415, F401 - after the fork, and before what logs

    # isort: split
    from composer.workers.pool import ConfinementError, RenderPool  # noqa: PLC0415 - after the fork, see above

    pool = RenderPool(server=server)
    try:
        pool.prove()
    except ConfinementError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return _serve(options, pool)


def _serve(options: argparse.Namespace, pool: RenderPool) -> int:
    # After the fork: the Kubernetes client is nothing for the template server.
    from apis.metrics import BUILD_INFO  # noqa: PLC0415 - after the fork, see above
    from composer.process import build  # noqa: PLC0415 - after the fork, see above
    from runtime import serve  # noqa: PLC0415 - after the fork, see above
    from runtime.lease import LeaseSettings  # noqa: PLC0415 - after the fork, see above

    async def controllers(context: ProcessContext) -> Sequence[Controller]:
        return await build(context, pool, resync=timedelta(seconds=options.resync))

    settings = serve.ProcessSettings(
        name=NAME,
        packages=("composer",),
        namespace=options.namespace,
        kubeconfig=options.kubeconfig,
        health_host=options.health_host,
        health_port=options.health_port,
        lease=LeaseSettings(
            duration=timedelta(seconds=options.lease_duration),
            renew_deadline=timedelta(seconds=options.lease_renew_deadline),
            retry=timedelta(seconds=options.lease_retry),
        ),
        elect=not options.no_elect,
        installation=os.environ.get("FAIRLEAD_INSTALLATION", ""),
        log_level=options.log_level,
        version=serve.version_of("fairlead"),
    )
    BUILD_INFO.labels(NAME, settings.version).set(1)
    return serve.main(settings, controllers)


if __name__ == "__main__":
    sys.exit(main())
