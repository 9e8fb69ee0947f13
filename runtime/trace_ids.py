"""The ids of a trace, which every process computes for itself. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

HOUR_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose trace a pass is part of: an owner's uid, and whether the pass is over the owner itself."""

    uid: str
    is_owner: bool


def ids_of(subject: Subject, now: float) -> tuple[int, int]:
    """Return the id of an owner's trace at a time in seconds (16 bytes), and that of its first span (8 bytes)."""
    digest = hashlib.sha256(f"{subject.uid}/{int(now // HOUR_SECONDS)}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
