"""A platform whose etcd goes back to a snapshot of its disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from devcloud.controlplane import plane as planes
from devcloud.daemons import Lifetime
from tests.support.staff import Staff
from tests.support.system import System


@asynccontextmanager
async def etcd_goes_back(staff: Staff) -> AsyncIterator[None]:
    """Take a snapshot of etcd's disk; after the block restore it, and restart both processes, as after any restore."""
    system = staff.system
    etcd, snapshot = system.plane.folder / "etcd", system.folder / "snapshot"
    await asyncio.to_thread(_copy_while_frozen, system.plane.folder, etcd, snapshot)
    yield
    await staff.stop()
    await planes.stop(system.plane.folder, grace_s=10.0)
    await asyncio.to_thread(shutil.rmtree, etcd)
    await asyncio.to_thread(snapshot.rename, etcd)
    await _start_plane(system)
    # A database that is not there is believed lost soon.
    await replace(staff, provider_flags=(*staff.provider_flags, "--grace=2")).complete()


def _copy_while_frozen(plane: Path, etcd: Path, copy: Path) -> None:
    """Copy etcd's folder as a snapshot of its volume would: at one moment, while it runs."""
    identity = planes.members(plane)["etcd"]
    assert identity is not None
    os.kill(identity.pid, signal.SIGSTOP)
    try:
        shutil.copytree(etcd, copy)
    finally:
        os.kill(identity.pid, signal.SIGCONT)


async def _start_plane(system: System) -> None:
    options = planes.Options(folder=system.plane.folder, lifetime=Lifetime.WITH_PARENT, durable=False)
    plane = await planes.start(options, system.plane.programs)
    assert plane.server == system.plane.server
