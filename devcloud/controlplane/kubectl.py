"""The control plane's own kubectl, as a library: devcloud's one way to talk to the API server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from devcloud.errors import DevcloudError


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl under one kubeconfig."""

    program: Path
    kubeconfig: Path

    async def run(self, *arguments: str, standard_input: str | None = None, limit_s: float = 60.0) -> str:
        """Run one command and return what it printed.

        Raises:
            DevcloudError: It failed, or took longer than the limit; the text is kubectl's own.
        """
        # What it learns of the API server is this plane's own, and none of the user's ~/.kube.
        cache = f"--cache-dir={self.kubeconfig.parent / 'cache'}"
        command = (str(self.program), f"--kubeconfig={self.kubeconfig}", cache, *arguments)
        sink = asyncio.subprocess.PIPE
        source = asyncio.subprocess.DEVNULL if standard_input is None else sink
        async with _running(command, source) as child:
            sent = None if standard_input is None else standard_input.encode()
            try:
                # Not wait_for: in Python 3.11 it forgets a cancellation that comes with the result.
                async with asyncio.timeout(limit_s):
                    output, errors = await child.communicate(sent)
            except TimeoutError as error:
                raise DevcloudError(f"kubectl {arguments[0]} did not end within {limit_s:g} s") from error
        if child.returncode != 0:
            raise DevcloudError(f"kubectl {' '.join(arguments)} failed: {errors.decode(errors='replace').strip()}")
        return output.decode()

    async def answers(self, path: str) -> bool:
        """Return whether a GET of a raw path succeeds."""
        try:
            await self.run("get", "--raw", path, "--request-timeout=2s", limit_s=10.0)
        except DevcloudError:
            return False
        return True


@contextlib.asynccontextmanager
async def _running(command: tuple[str, ...], source: int) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        *command, stdin=source, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
