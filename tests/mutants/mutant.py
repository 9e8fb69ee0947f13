"""One planted bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module: `old` stands there once and becomes `new`; `file` is its path from the root."""

    name: str
    file: str
    old: str
    new: str
