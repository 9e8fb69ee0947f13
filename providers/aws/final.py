"""Names of final snapshots. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 255
"""Of a snapshot's identifier (DeleteDBInstance, FinalDBSnapshotIdentifier)."""
_PREFIX = "fl-final"
_MARK_LENGTH = 8
_NUMBER_LENGTH = 5


def stem_of(name: str, incarnation: str, prefix: str | None) -> str:
    """Return what the final snapshots of one incarnation, and of no other, begin with."""
    mark = hashlib.sha256(incarnation.encode()).hexdigest()[:_MARK_LENGTH]
    room = LONGEST - _MARK_LENGTH - _NUMBER_LENGTH
    stem = re.sub(r"-{2,}", "-", f"{prefix or _PREFIX}-{name}")[:room].rstrip("-")
    return f"{stem}-{mark}"


def name_for(stem: str, taken: Iterable[str]) -> str:
    """Return the first of the stem's names that no snapshot has; an earlier one is not what is there now."""
    present, number, name = set(taken), 1, stem
    while name in present:
        number += 1
        name = f"{stem}-{number}"
    return name
