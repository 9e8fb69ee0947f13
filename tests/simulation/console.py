"""A person's console inside a simulation: the commands of a page, carried out on the loop that is at work."""

from __future__ import annotations

import asyncio
import base64
import re
import shlex
from collections.abc import Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli import run
from fairlead.printing import wrapped
from fairlead.yaml_files import documents_in, dump
from runtime.objects import SECRETS
from tests.simulation.takeover import ENOUGH_S, PASSWORD, Team

_BLOCKS: Final = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


_HASH: Final = re.compile(r"\b[0-9a-f]{16}\b")
_UID: Final = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_AGREED: Final = re.compile(r"--agreed (\S+)")


# What other tools do for themselves.
_BY_OTHERS: Final = (["terraform", "state"], ["terraform", "import"], ["kubectl", "create"])


class _Awaited(BaseException):
    """A command came to its one coroutine, which is awaited outside of it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page with the lines that the page shows after it."""

    command: str
    lines: tuple[str, ...]

    def agrees(self, output: str) -> bool:
        """Return whether a command printed these lines; one of three dots stands for any."""
        escaped = [".*" if line.strip() == "..." else re.escape(without_numbers(line)) for line in self.lines]
        return re.fullmatch("\n".join(escaped), without_numbers(output).rstrip("\n"), re.DOTALL) is not None


def without_numbers(text: str) -> str:
    """Return a text in which each hash and each uid is the same."""
    return _UID.sub(lambda uid: re.sub(r"\w", "0", uid[0]), _HASH.sub("0" * 16, text))


def blocks_of(page: Path) -> list[tuple[Shown, ...]]:
    """Return the console blocks of a page, each as its commands."""
    blocks = []
    for block in _BLOCKS.findall(page.read_text(encoding="utf-8")):
        parts = [part.splitlines() for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
        blocks.append(tuple(Shown(lines[0], tuple(lines[1:])) for lines in parts))
    return blocks


@dataclass
class Console:
    """A person's shell in a folder. `files` are what commands of other programs print, by their first two words.

    `agreement` is the hash that was shown last, which a person copies.
    """

    team: Team
    folder: Path
    files: dict[str, str]
    monkeypatch: pytest.MonkeyPatch
    agreement: str = ""

    async def enter(self, line: str) -> str:
        """Carry out one line, as far as pages have such lines; return what it prints, errors too."""
        words = shlex.split(_AGREED.sub(f"--agreed {self.agreement}", line), comments=True)
        file = words[words.index(">") + 1] if ">" in words else ""
        words = words[: words.index(">")] if file else words
        printed, errors = "", ""
        if words[0] == "fairlead":
            printed, errors = await self._fairlead(words[1:])
        elif words[:2] == ["kubectl", "apply"]:
            await self._apply(self.folder / words[3])
        elif words[:3] == ["kubectl", "create", "secret"]:
            self._make_secret(words[4], words[words.index("-n") + 1])
        elif words[:2] == ["kubectl", "delete"]:
            await self.team.delete(words[2], words[words.index("-n") + 1])
        elif words[:2] not in _BY_OTHERS:
            printed = self.files[" ".join(words[:2])]
        if shown := _AGREED.search(printed):
            self.agreement = shown[1]
        if not file:
            return printed + errors
        (self.folder / file).write_text(printed, encoding="utf-8")
        return errors

    async def _fairlead(self, words: list[str]) -> tuple[str, str]:
        """Run the command up to its coroutine, await that here, and run it again with the answer."""
        pending: list[Coroutine[Any, Any, Any]] = []

        def take(coroutine: Coroutine[Any, Any, Any]) -> Any:
            pending.append(coroutine)
            raise _Awaited

        self.monkeypatch.chdir(self.folder)
        try:
            return self._printed(words, take)
        except _Awaited:
            task = asyncio.ensure_future(pending[0])
            await asyncio.wait((task,))

        def answer(coroutine: Coroutine[Any, Any, Any]) -> Any:
            coroutine.close()
            return task.result()

        return self._printed(words, answer)

    def _printed(self, words: list[str], run_coroutine: Callable[..., Any]) -> tuple[str, str]:
        printed, errors = StringIO(), StringIO()
        with self.monkeypatch.context() as patches, redirect_stdout(printed), redirect_stderr(errors):
            patches.setattr(asyncio, "run", run_coroutine)
            run(words)
        return printed.getvalue(), errors.getvalue()

    async def _apply(self, path: Path) -> None:
        for document in [document for file in _files(path) for document in documents_in(file)]:
            await self.team.apply(dump(document.content))
        await asyncio.sleep(ENOUGH_S)

    def _make_secret(self, name: str, namespace: str) -> None:
        data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
        meta = {"name": name, "namespace": namespace}
        self.team.platform.server.put(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})


def _files(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else [path]


_COMMAND: Final = re.compile(r"\s*(to agree:|kubectl |terraform )")


def at_columns(output: str, columns: int) -> str:
    """Return what a terminal of a width shows of it; commands stay in one line."""
    lines = output.splitlines()
    return "".join(f"{line if _COMMAND.match(line) else wrapped(line, columns)}\n" for line in lines)
