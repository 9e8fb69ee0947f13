"""A control plane of its own for a benchmark, with Fairlead installed for all clouds, gone again afterwards."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import uvloop

from devcloud.controlplane import ensure
from tests.support.system import System, rig

MeasuredT = TypeVar("MeasuredT")
_CLOUDS = Path(__file__).resolve().parents[1] / "deploy" / "kustomize" / "clouds"


def on_a_plane(measure: Callable[[System], Awaitable[MeasuredT]]) -> MeasuredT:
    """Return what `measure` finds on a fresh control plane with a PostgreSQL server."""
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_on_a_plane(Path(folder), measure))


async def _on_a_plane(folder: Path, measure: Callable[[System], Awaitable[MeasuredT]]) -> MeasuredT:
    programs = await ensure(print)
    async with rig(folder, programs) as system:
        # The Compositions of all clouds are there, so the composer has the rights that they need.
        for cloud in sorted(_CLOUDS.iterdir()):
            await system.kubectl.run("apply", "--server-side", "--kustomize", str(cloud))
        return await measure(system)
