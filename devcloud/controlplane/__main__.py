"""`python -m devcloud.controlplane`: have the control plane's programs ready, with a line a step."""

import asyncio
import sys
import time

from devcloud.controlplane import ensure, find
from devcloud.errors import DevcloudError


def main() -> int:
    """Get the programs; return the exit code: 0, 1 when that failed, 130 when it was interrupted."""
    if find() is not None:
        return 0
    start = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {line}", flush=True)

    try:
        asyncio.run(ensure(progress))
    except DevcloudError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what is built so far is kept for the next time", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
