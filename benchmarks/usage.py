"""What a process and its descendants use: processor time and memory, from /proc (proc(5))."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.5
_KIB_PER_MIB = 1024


@dataclass(slots=True)
class Usage:
    """Processor time in seconds over a span, and the largest memory seen in it, in MiB.

    Memory is the sum of the proportional set sizes: pages that forked processes share count once.
    """

    cpu_seconds: float = 0.0
    peak_mib: float = 0.0


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    pids = [pid]
    for parent in pids:
        # A child is listed with the thread that started it.
        for listing in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                pids.extend(int(child) for child in listing.read_text().split())
    return pids


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants so far."""
    return sum(_cpu_of(process) for process in tree(pid))


def cpu_by_program(pid: int) -> dict[str, float]:
    """Return the processor time so far of a process and its descendants, in seconds by program (proc(5), comm)."""
    used: dict[str, float] = {}
    for process in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            program = Path(f"/proc/{process}/comm").read_text().strip()
            used[program] = used.get(program, 0.0) + _cpu_of(process)
    return used


def memory_mib(pid: int) -> float:
    """Return the memory of a process and its descendants now."""
    return sum(_pss_kib_of(process) for process in tree(pid)) / _KIB_PER_MIB


def memory_by_process(pid: int) -> list[float]:
    """Return the memory of a process and each of its descendants now, in MiB, the process itself first."""
    sizes = (_pss_kib_of(process) for process in tree(pid))
    return [size / _KIB_PER_MIB for size in sizes if size]


@asynccontextmanager
async def measured(pid: int) -> AsyncIterator[Usage]:
    """Measure a process tree while the body runs."""
    usage = Usage(peak_mib=memory_mib(pid))
    began = cpu_seconds(pid)

    async def sample() -> None:
        while True:
            usage.peak_mib = max(usage.peak_mib, await asyncio.to_thread(memory_mib, pid))
            await asyncio.sleep(_SAMPLE_SECONDS)

    sampling = asyncio.create_task(sample())
    try:
        yield usage
    finally:
        sampling.cancel()
        usage.peak_mib = max(usage.peak_mib, memory_mib(pid))
        usage.cpu_seconds = cpu_seconds(pid) - began


def _cpu_of(pid: int) -> float:
    try:
        # The command's name may hold spaces and parentheses; the numbers begin behind its last one.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # utime, stime, and those of children that ended: fields 14 to 17, the state being field 3.
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_SECOND


def _pss_kib_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
