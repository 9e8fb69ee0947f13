"""Files that an import writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairlead.exits import CommandError, Exit


@dataclass(frozen=True, slots=True)
class Written:
    """One file: its name, its text, and what is to be said of it."""

    file: str
    text: str
    remarks: tuple[str, ...] = ()


def save(folder: Path, files: Iterable[Written]) -> list[str]:
    """Write files into a folder that may be there; return their paths. Raises CommandError for one that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for written in files:
        path = folder / written.file
        if path.exists() and path.read_text(encoding="utf-8") != written.text:
            text = f"{path} is there and differs from what would be written; remove it, or name another folder"
            raise CommandError(text, exit_code=Exit.REFUSED)
        path.write_text(written.text, encoding="utf-8")
        paths.append(str(path))
    return paths
