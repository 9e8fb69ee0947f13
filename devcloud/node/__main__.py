"""`python -m devcloud.node`: say what of Debian's packages is missing, else have a node's programs ready."""

import asyncio
import sys

from devcloud.errors import DevcloudError
from devcloud.node import ensure, refuse_unless_possible


def main() -> int:
    """Get the programs; return the exit code: 0, 1 when that failed, 2 when no node can run here."""
    try:
        refuse_unless_possible()
    except DevcloudError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        asyncio.run(ensure(lambda line: print(line, flush=True)))
    except DevcloudError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
