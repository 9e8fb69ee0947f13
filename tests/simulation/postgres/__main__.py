"""`python -m tests.simulation.postgres --sequences N --seed S`: the server in memory against a real PostgreSQL.

Exit status 1 where they differ.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from devcloud import addresses, onprem
from devcloud.daemons import Lifetime
from tests.simulation.postgres.comparing import compared, comparison


def main() -> int:
    """Run sequences; say in which both differ, and how."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.postgres", description=__doc__)
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one sequence by its number")
    arguments = parser.parse_args()
    numbers = range(arguments.sequences) if arguments.only is None else (arguments.only,)
    return asyncio.run(_run([f"{arguments.seed}:{number}" for number in numbers]))


async def _run(seeds: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-postgres-"))
    lease = addresses.lease()
    options = onprem.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)
    differing = 0
    try:
        server = await onprem.start(options, lease)
        began = time.monotonic()
        async with comparison(server) as of:
            async for seed, difference in compared(of, seeds):
                if difference is not None:
                    differing += 1
                    sys.stdout.write(f"{seed}\n{difference}\n")
                    sys.stdout.flush()
        seconds = time.monotonic() - began
        sys.stdout.write(f"{len(seeds)} sequences, {differing} of them differ, {seconds:.1f} s\n")
    finally:
        await onprem.stop(folder, grace_s=5.0, is_temporary=True)
        lease.release()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
