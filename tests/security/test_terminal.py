"""What a tenant writes reaches a terminal as text alone, and no condition carries what a terminal would obey."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from tests.security.builders import at_once, expect
from tests.support.kinds import CLAIM, in_trouble
from tests.support.system import System
from tests.support.tenants import Person
from tests.support.terminals import read_terminal

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_ESC, _BEL, _CSI = "\x1b", "\x07", "\x9b"
_REASONS = {
    "clear": f"{_ESC}[2J{_ESC}[H cleared",
    "title": f"{_ESC}]0;owned{_BEL} titled",
    "clipboard": f"{_ESC}]52;c;cm0gLXJmIH4={_BEL} copied",
    "c1": f"{_CSI}2J cleared by C1",
    "bidi": "\u202eyldneirf\u202c \u2066isolated\u2069 \u200f",
    "lines": "first\r\nforged: Ready=True\u2028forged: too\x85forged: three",
    "delete": "hidden\x08\x08\x08\x7f",
    "bell": f"{_ESC} and {_BEL} alone",
    "override": "\u202eyldneirf alone",
}
_KEPT = {"\n", "\t"}
_MARK = "-- the next claim --"
_TRACES = f"""
import sys
from fairlead.cli import run
for name in sys.argv[2:]:
    print({_MARK!r}, flush=True)
    code = run(["trace", "pgi/" + name, "--namespace", "mallory", "--kubeconfig", sys.argv[1]])
    assert code in {{0, 5, 6}}, code
"""


def _obeyed(text: str) -> list[str]:
    """Return the signs of a text that a terminal obeys instead of showing them."""
    return [
        hex(ord(sign))
        for sign in text
        if sign not in _KEPT
        and (
            ord(sign) < 0x20
            or 0x7F <= ord(sign) < 0xA0
            or sign in "\u2028\u2029\u200e\u200f\u061c"
            or 0x202A <= ord(sign) <= 0x202E
            or 0x2066 <= ord(sign) <= 0x2069
        )
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(running: System, mallory: Person) -> dict[str, BaseException | None]:
    """Return which texts were obeyed or missing: all are written beside each other, then traced one by one."""
    written = await at_once({form: _is_written_as_text(running, mallory, form) for form in _REASONS})
    shown = await _traced(running.plane.kubeconfig, [_name(form) for form in _REASONS])
    parts = dict(zip(_REASONS, shown.split(_MARK)[1:], strict=True))
    traced = await at_once({form: _is_shown_as_text(part, form) for form, part in parts.items()})
    return {form: written[form] or traced[form] for form in _REASONS}


def _name(form: str) -> str:
    return f"shown-{form}"


async def _is_written_as_text(running: System, mallory: Person, form: str) -> None:
    name = _name(form)
    await mallory.claim(name)
    await mallory.annotate(name, paused="true", paused_reason=_REASONS[form])
    paused = await running.until(CLAIM, "mallory", name, in_trouble("Paused"))

    messages = [entry["message"] for entry in paused["status"]["conditions"]]
    assert [signs for message in messages if (signs := _obeyed(message))] == []
    assert [message for message in messages if "\n" in message] == []


async def _is_shown_as_text(shown: str, form: str) -> None:
    assert _name(form) in shown
    assert _obeyed(shown.replace("\r\n", "\n")) == []
    # What goes on of a text is set in deeper than what begins.
    assert [line for line in shown.splitlines() if re.match(r"[│ ]?[├└─ ]{0,3}forged", line)] == []


@pytest.mark.parametrize("form", _REASONS)
async def test_a_tenants_text_is_no_command_to_a_terminal(outcomes: dict[str, BaseException | None], form: str) -> None:
    expect(outcomes[form])


async def _traced(kubeconfig: Path, names: list[str]) -> str:
    """Run `fairlead trace` for claims on a terminal that knows no colours; return what it got, a mark before each."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _TRACES, str(kubeconfig), *names),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=dict(os.environ) | {"TERM": "dumb"},
    )
    os.close(theirs)
    content = await asyncio.to_thread(read_terminal, ours)
    assert await process.wait() == 0, content
    return content.decode()
