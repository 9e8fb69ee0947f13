"""Where the stories of the demo play, on one platform (`devcloud.stories.Stage`)."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from devcloud.up import Environment
from fairlead import platform, psql
from fairlead.exits import CommandError
from fairlead.kube_options import Server
from fairlead.layout import Style
from fairlead.output import show_line
from fairlead.trace import trace
from fairlead.tree_view import Form, lines_of
from runtime.errors import ApiError
from runtime.objects import Object, loads
from runtime.text import readable

NAMESPACE = "demo"
_POLL_S = 0.2
Answer = TypeVar("Answer")


class Stage:
    """One run of the demo on one platform.

    Attributes:
        namespace: Where the story plays now.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.namespace = NAMESPACE
        self._start = time.monotonic()
        self._chapter = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the platform was up."""
        return time.monotonic() - self._start

    def chapter(self, title: str) -> None:
        """Begin the next part of the story. Raises CancelledError where an interrupt was asked for and got lost."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        self._chapter += 1
        show_line(f"\n{self._chapter}. {title}  [{self.elapsed_s:.0f} s]", Style.BOLD)

    def say(self, text: str) -> None:
        """Print a sentence of the story."""
        show_line(f"   {text}", Style.CYAN)

    def show(self, text: str, *, prefix: str = "   | ", style: str = "plain") -> None:
        """Print what a program printed; `style` is the name of a `Style`."""
        for line in text.rstrip().splitlines():
            show_line(f"{prefix}{readable(line)}", Style[style.upper()])

    async def kubectl(self, *arguments: str, document: str | None = None) -> str:
        """Type a kubectl command, with a manifest on standard input, and show both and the answer."""
        self.show(f"$ {shlex.join(('kubectl', *arguments))}", prefix="   ")
        if document is not None:
            self.show(document, prefix="   > ", style="dim")
        answer = await self._environment.plane.kubectl.run(*arguments, standard_input=document)
        self.show(answer)
        return answer

    async def prepare(self) -> None:
        """Type `fairlead prepare` for the namespace: what a platform team does once for each that has claims."""
        self.show(f"$ fairlead prepare {self.namespace}", prefix="   ")
        await platform.prepare((self.namespace,))

    async def quietly(self, *arguments: str) -> str:
        """Run kubectl without a word."""
        return await self._environment.plane.kubectl.run(*arguments, limit_s=120.0)

    async def find(self, kind: str, name: str) -> Object | None:
        """Read one object of the namespace, None when it is absent."""
        answer = await self.quietly(
            "get", kind, name, f"--namespace={self.namespace}", "--ignore-not-found", "--output=json"
        )
        return loads(answer.encode()) if answer else None

    async def psql(self, claim: str, statement: str) -> str:
        """Open a claim's database with its Secret and run a statement; show and return what psql printed.

        Raises CommandError when psql fails.
        """
        self.show(f'$ fairlead psql {claim} -n {self.namespace} -- -c "{statement}"', prefix="   ")
        answer, errors, code = await self.try_psql(claim, statement)
        self.show(answer)
        if code != 0:
            raise CommandError(f"psql of {claim} failed: {errors.strip()}")
        return answer

    async def try_psql(self, claim: str, statement: str) -> tuple[str, str, int]:
        """Run psql without a word; return its output, its errors and its exit code."""
        server = Server(self._environment.plane.kubeconfig)
        login = await psql.login_of(claim, namespace=self.namespace, server=server)
        ended = await asyncio.to_thread(psql.capture, login, ["--tuples-only", "--no-align", "--command", statement])
        return ended.stdout, ended.stderr, ended.returncode

    async def trace(self, claim: str) -> None:
        """Type `fairlead trace` and show its tree."""
        self.show(f"$ fairlead trace {claim} -n {self.namespace} --all", prefix="   ")
        tree = await trace(claim, namespace=self.namespace, server=Server(self._environment.plane.kubeconfig))
        for line, is_cause in lines_of(tree, Form(all=True)):
            self.show(line, style="alarm" if is_cause else "plain")

    async def until(
        self, goal: str, probe: Callable[[], Awaitable[Answer | None]], *, claim: str, limit_s: float = 60.0
    ) -> Answer:
        """Wait until a probe about a claim finds something and return it.

        Raises CommandError that says what did not come, and where the logs are, after the claim's trace was shown.
        """
        begin = time.monotonic()
        while True:
            seen = await probe()
            if seen:
                self.say(f"seen after {time.monotonic() - begin:.1f} s: {goal}")
                return seen
            if time.monotonic() - begin > limit_s:
                with suppress(CommandError, ApiError):
                    await self.trace(claim)
                ours = (name for name in self._environment.logs if name == "composer" or name.startswith("provider-"))
                logs = ", ".join(str(self._environment.logs[name]) for name in ours)
                raise CommandError(f"not seen within {limit_s:g} s: {goal}; the logs are {logs}")
            await asyncio.sleep(_POLL_S)
