"""A process on the runtime that makes made-up mutating calls while it leads, and logs when each began and ended.

`python -m tests.apiserver.runtime.caller_process NAMESPACE HEALTH_PORT [DURATION RENEW_DEADLINE RETRY]`; instants are
of the machine's monotonic clock, so that those of several processes can be compared.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import timedelta

import structlog

from runtime.controller import Controller, Source
from runtime.kube import Selection
from runtime.lease import LeaseSettings
from runtime.objects import CONFIG_MAPS, Key
from runtime.results import Result
from runtime.serve import ProcessContext, ProcessSettings, main

CALL_S = 0.1
_CALLS_PER_PASS = 10
_log = structlog.get_logger("caller")


async def build(context: ProcessContext) -> Sequence[Controller]:
    async def reconcile(key: Key) -> Result:
        for _ in range(_CALLS_PER_PASS):
            leadership = context.leadership
            if leadership is None or not leadership.holds(timedelta(seconds=CALL_S)):
                break
            begun = time.monotonic()
            await asyncio.sleep(CALL_S)
            _log.info("call", by=context.identity, about=key.name, begun=begun, ended=time.monotonic())
        return Result(requeue_after=timedelta(milliseconds=10))

    selection = Selection(namespace=context.settings.namespace, labels="call=yes")
    informer = context.cache.informer(CONFIG_MAPS, selection=selection)
    # As a process does that looks at the cluster before it knows which controllers it needs.
    await context.cache.wait_synced(timedelta(seconds=1))
    controller = Controller("caller", reconcile)
    controller.source(Source(informer, primary=True))
    return [controller]


if __name__ == "__main__":
    namespace, port, *lease = sys.argv[1:]
    duration, renew_deadline, retry = (timedelta(seconds=float(seconds)) for seconds in lease or ("3", "2", "0.5"))
    sys.exit(
        main(
            ProcessSettings(
                name="caller",
                namespace=namespace,
                health_port=int(port),
                packages=("caller",),
                lease=LeaseSettings(duration=duration, renew_deadline=renew_deadline, retry=retry),
            ),
            build,
        )
    )
