"""Our programs as real processes: started, stopped, killed, frozen, and read from their logs."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import aiohttp

from tests.support.waiting import eventually


class Program:
    """One program of ours, `python -m <module>`, under a kubeconfig; it dies with the test process.

    Args:
        arguments: After `python -m`: the module and its arguments.
        log: The file that collects what it prints.
        kubeconfig: KUBECONFIG of the process: a ServiceAccount's, never the administrator's.
        environment: More variables.
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        *,
        log: Path,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = arguments
        self._environment = dict(environment or {})
        if kubeconfig is not None:
            self._environment["KUBECONFIG"] = str(kubeconfig)
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"

        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        assert not self.is_running, "started already"

        setpriv = shutil.which("setpriv")
        assert setpriv is not None, "util-linux is missing"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(setpriv, "--pdeathsig", "KILL", "--", sys.executable, "-m", *self._arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(os.environ) | self._environment,
                start_new_session=True,
            )

    async def kill9(self) -> None:
        """End it as a power cut would."""
        await self._end(signal.SIGKILL)

    async def terminate(self, *, limit_s: float = 30.0) -> int:
        """Ask it to end; return its exit code."""
        return await self._end(signal.SIGTERM, limit_s=limit_s)

    async def exit_code(self, *, limit_s: float = 60.0) -> int:
        """Wait until it ends by itself."""
        assert self._process is not None, "not started"

        return await asyncio.wait_for(self._process.wait(), limit_s)

    def freeze(self) -> None:
        """SIGSTOP: it holds what it holds and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def until_log(self, part: str, *, limit_s: float = 60.0) -> None:
        async def is_printed() -> bool:
            assert self.is_running or part in self.text(), f"ended without saying {part!r}: {self.text()[-2000:]}"

            return part in self.text()

        await eventually(is_printed, f"{self._arguments} says {part!r}", limit_s=limit_s)

    async def until_healthy(self, port: int, path: str = "/readyz", *, limit_s: float = 180.0) -> None:
        last = ""

        async def healthy() -> bool:
            nonlocal last
            assert self.is_running, f"ended: {self.text()[-2000:]}"

            try:
                async with (
                    aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
                    session.get(f"http://127.0.0.1:{port}{path}") as answer,
                ):
                    last = await answer.text()
                    return answer.status == 200
            except (aiohttp.ClientError, TimeoutError) as error:
                last = repr(error)
                return False

        try:
            await eventually(healthy, f"{self._arguments} answers {path}", limit_s=limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {last}; its log ends: {self.text()[-1500:]}") from None

    async def _end(self, number: signal.Signals, *, limit_s: float = 30.0) -> int:
        assert self._process is not None, "not started"

        if self._process.returncode is None:
            self._process.send_signal(number)
        try:
            return await asyncio.wait_for(self._process.wait(), limit_s)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            raise AssertionError(f"{self._arguments} ignored {number.name} for {limit_s:g} s") from None


def running_program(programs: Iterable[Program], name: str) -> Program:
    """Return the one program that runs and whose log bears the name."""
    (program,) = (program for program in programs if program.is_running and program.log.stem.endswith(name))
    return program
