"""Runs the programs that send a phase's requests raw, and measures them as the phase was measured."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

from benchmarks import engine_phase
from benchmarks.engine_phase import Phase
from tests.support.system import System

_PROCESSES: Final = 2
# As long as the composer must have written nothing before its phase is over.
_REST_SECONDS: Final = 1.5


class Floor:
    """Programs that wait for a phase to send; each has its share of the claims."""

    def __init__(self, programs: list[asyncio.subprocess.Process], claims: int) -> None:
        self._programs = programs
        self._claims = claims

    @classmethod
    @asynccontextmanager
    async def started(cls, system: System, namespace: str, claims: int) -> AsyncIterator[Self]:
        """Have the programs at hand for the length of a block."""
        share = claims // _PROCESSES
        programs = []
        for number in range(_PROCESSES):
            arguments = (str(system.plane.kubeconfig), namespace, str(number * share), str(share))
            programs.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "benchmarks.engine_floor", *arguments),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            )
        floor = cls(programs, share * _PROCESSES)
        await floor._lines()
        try:
            yield floor
        finally:
            for program in programs:
                # Its end ends the program; without an input `communicate` leaves it open.
                await program.communicate(b"")

    async def send(self, name: str) -> Phase:
        """Send a phase's requests; return what it took."""
        async with engine_phase.measured_raw(name, self._claims, rest_seconds=_REST_SECONDS) as phase:
            for program in self._programs:
                if program.stdin is None:
                    raise RuntimeError("started without a pipe")
                program.stdin.write(f"{name}\n".encode())
            phase.seconds = max(float(line) for line in await self._lines())
        return phase

    async def _lines(self) -> list[str]:
        """Return the next line of each program."""
        lines = []
        for program in self._programs:
            if program.stdout is None:
                raise RuntimeError("started without a pipe")
            line = (await program.stdout.readline()).decode().strip()
            if not line:
                raise RuntimeError(f"the sender of raw requests ended with status {await program.wait()}")
            lines.append(line)
        return lines
