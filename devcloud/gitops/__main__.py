"""`python -m devcloud.gitops`: have the programs of Flux and Argo CD ready."""

import asyncio
import sys

from devcloud.errors import DevcloudError
from devcloud.gitops import ensure_argocd, ensure_flux, ensure_kstatus
from devcloud.locks import Progress


async def _ensure(progress: Progress) -> None:
    await ensure_kstatus(progress)
    await ensure_flux(progress)
    await ensure_argocd(progress)


def main() -> int:
    """Get the programs; return the exit code: 0, or 1 when that failed."""
    try:
        asyncio.run(_ensure(lambda line: print(line, flush=True)))
    except DevcloudError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
