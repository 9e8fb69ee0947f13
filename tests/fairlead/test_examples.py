"""The files in examples/ are what the pages show, and the commands of the pages take them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.cli import run
from fairlead.exits import Exit

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = _ROOT / "examples"
_PAGES = [_ROOT / "README.md", _ROOT / "docs" / "getting-started.md"]


def _blocks() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (_ROOT / "docs" / "getting-started.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("command", ["validate", "render"])
def test_the_claim_is_taken(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, str(_EXAMPLES / "orders.yaml")]) == Exit.DONE, capsys.readouterr().err


def test_the_page_shows_the_files() -> None:
    files = [path.read_text() for path in sorted(_EXAMPLES.glob("*.yaml"))]
    shown = [block.partition("\n")[2] if block.startswith("# examples/") else block for block in _blocks()]

    assert len(shown) == 2
    for block in shown:
        lines = [line for line in block.splitlines() if line.strip()]
        assert any(all(line in text.splitlines() for line in lines) for text in files), block


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_yaml_file_that_a_page_has_people_use_is_there(page: Path) -> None:
    named = re.findall(r"(?:fairlead \w+|apply -f) (\S+\.yaml)", page.read_text())

    assert named
    assert [name for name in named if not (_ROOT / name).exists()] == []
