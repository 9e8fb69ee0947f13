"""Programs that judge what we ship, each built once from a Go module of its own into our cache."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from devcloud.controlplane import build
from devcloud.locks import exclusive
from devcloud.paths import cache_home

_HERE = Path(__file__).parent


def program(name: str) -> Path:
    """Return the one `tool` of the module in the folder of that name; the first call on a machine builds it.

    That takes minutes. Raises DevcloudError when it cannot be built.
    """
    return asyncio.run(_ensure(name))


async def _ensure(name: str) -> Path:
    module = _HERE / name
    digest = hashlib.sha256(b"".join((module / file).read_bytes() for file in ("go.mod", "go.sum"))).hexdigest()
    folder = cache_home() / f"{name}-{digest[:12]}"
    async with exclusive(
        folder.with_suffix(".lock"), waiting=f"{name}: another process builds it; waiting for it", progress=print
    ):
        if not (folder / name).exists():
            draft = folder.with_suffix(".draft")
            await build.build(module, draft, folder.with_suffix(".build"), print, title=name)
            draft.rename(folder)
    return folder / name
