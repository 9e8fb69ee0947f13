"""A terminal shows what a tenant wrote, and obeys none of it: looked at through a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from fairlead.cli import run
from fairlead.output import show_json, show_tree
from fairlead.terminal import has_colours
from fairlead.tree import Node, json_of, tree_of

# Clear the screen, a title, the clipboard, an 8-bit control, an override of the writing direction, a bell, a return.
EVIL = "start\x1b[2J\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x9b31m\u202edlrow\u2066 \r\b\x0eend\u200f"
SHOWN = "start[2J]0;owned]52;c;ZXZpbA==31mdlrow"
# A terminal sends each line feed with a carriage return.
_OBEYED = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CLAIM = {
    "apiVersion": "database.fairlead.dev/v1alpha1",
    "kind": "PostgreSQLInstance",
    "metadata": {"name": "orders", "namespace": "shop"},
    "spec": {"version": "16", "size": "small", "databaseName": EVIL},
}


def _on_a_terminal(program: Callable[[], object]) -> str:
    """Run a program of ours whose output is a terminal; return what reached the screen."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        seen = reader.submit(_everything, ours)
        with os.fdopen(theirs, "w", encoding="utf-8") as screen, redirect_stdout(screen), redirect_stderr(screen):
            program()
        text = seen.result(60)
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def _everything(descriptor: int) -> bytes:
    seen = b""
    while True:
        try:
            seen += os.read(descriptor, 1 << 16)
        except OSError:
            # The end of a terminal whose other side is closed (Linux).
            return seen


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a terminal without colours and wide enough."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")


def _traced() -> Node:
    paused = {"type": "Synced", "status": "False", "reason": "Paused", "message": EVIL}
    drift = [{"path": EVIL, "desired": EVIL, "observed": "1", "action": "Held"}]
    status = {"conditions": [paused], "composition": {"name": EVIL}, "drift": drift}
    claim = {**_CLAIM, "status": status}
    child = {
        "apiVersion": "v1",
        "kind": EVIL,
        "metadata": {"name": EVIL},
        "status": {"phase": EVIL, "externalName": EVIL},
    }
    return tree_of(claim, [(EVIL, EVIL, child)], None, datetime.now(UTC))


def test_a_traced_claim_as_text_does_nothing_to_a_terminal() -> None:
    seen = _on_a_terminal(lambda: show_tree(_traced()))

    assert "orders" in seen
    assert SHOWN in seen
    assert _OBEYED.findall(seen) == []


def test_a_traced_claim_as_json_does_nothing_to_a_terminal() -> None:
    seen = _on_a_terminal(lambda: show_json(json_of(_traced())))

    assert _OBEYED.findall(seen) == []
    assert EVIL in msgspec.json.decode(seen)["tree"]["message"]


@pytest.mark.parametrize("command", ["validate", "render"])
def test_a_file_of_a_tenant_does_nothing_to_a_terminal(command: str, tmp_path: Path) -> None:
    file = tmp_path / "claim.json"
    file.write_text(json.dumps(_CLAIM))

    seen = _on_a_terminal(lambda: run([command, str(file)]))

    assert "databaseName" in seen or "start" in seen
    assert _OBEYED.findall(seen) == []


def test_a_name_that_is_none_is_refused_without_doing_anything_to_a_terminal() -> None:
    seen = _on_a_terminal(lambda: run(["explain", EVIL]))

    assert "start" in seen
    assert _OBEYED.findall(seen) == []


class _Screen(StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "variables", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"CLICOLOR": "0"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"CLICOLOR_FORCE": "0"}, False),
        (True, {"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True),
        (True, {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, is_terminal: bool, coloured: bool
) -> None:
    for name in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert has_colours(_Screen(is_terminal=is_terminal)) is coloured
