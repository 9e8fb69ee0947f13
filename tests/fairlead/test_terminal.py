"""A terminal shows what a tenant wrote, and obeys none of it: looked at through a pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

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


def _on_a_terminal(*command: str) -> str:
    """Run a command whose output is a terminal; return what reached the screen."""
    ours, theirs = pty.openpty()
    environment = dict(os.environ) | {"TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(
        (sys.executable, "-c", *command), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:
                # The end of a terminal whose other side is closed (Linux).
                break
            seen += part
        process.wait(60)
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


_TRACED = """
import sys
from datetime import UTC, datetime
from fairlead.output import show_json, show_tree
from fairlead.tree import json_of, tree_of
from tests.fairlead.test_terminal import EVIL
paused = {"type": "Synced", "status": "False", "reason": "Paused", "message": EVIL}
drift = [{"path": EVIL, "desired": EVIL, "observed": "1", "action": "Held"}]
meta = {"name": "orders", "namespace": "shop"}
claim = {"apiVersion": "database.fairlead.dev/v1alpha1", "kind": "PostgreSQLInstance", "metadata": meta,
         "status": {"conditions": [paused], "composition": {"name": EVIL}, "drift": drift}}
child = {"apiVersion": "v1", "kind": EVIL, "metadata": {"name": EVIL}, "status": {"phase": EVIL, "externalName": EVIL}}
tree = tree_of(claim, [(EVIL, EVIL, child)], None, datetime.now(UTC))
(show_json if sys.argv[1:] == ["json"] else lambda _: show_tree(tree))(json_of(tree))
"""


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_traced_claim_does_nothing_to_a_terminal(output: str) -> None:
    seen = _on_a_terminal(_TRACED, output)

    assert "orders" in seen
    assert _OBEYED.findall(seen) == []
    if output == "text":
        assert SHOWN in seen
    else:
        assert EVIL in msgspec.json.decode(seen)["tree"]["message"]


@pytest.mark.parametrize("command", ["validate", "render"])
def test_a_file_of_a_tenant_does_nothing_to_a_terminal(command: str, tmp_path: Path) -> None:
    file = tmp_path / "claim.json"
    file.write_text(json.dumps(_CLAIM))

    seen = _on_a_terminal("from fairlead.cli import main; main()", command, str(file))

    assert "databaseName" in seen or "start" in seen
    assert _OBEYED.findall(seen) == []


def test_a_name_that_is_none_is_refused_without_doing_anything_to_a_terminal() -> None:
    seen = _on_a_terminal("from fairlead.cli import main; main()", "explain", EVIL)

    assert "start" in seen
    assert _OBEYED.findall(seen) == []
