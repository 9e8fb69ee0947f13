"""The mutants that people wrote, each taking away a protection: listed.toml has them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from tests.mutants.mutant import Mutant

_FILE: Final = Path(__file__).with_name("listed.toml")


def listed() -> list[Mutant]:
    """Return them in the order of the file."""
    return [Mutant(**row) for row in tomllib.loads(_FILE.read_text(encoding="utf-8"))["mutants"]]
