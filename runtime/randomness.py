"""Chance of a process: everything in it that draws a number asks here.

A process keeps that of the operating system; who needs a run that can be repeated hands in another by `use`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_JITTER = random.Random()  # noqa: S311  # jitter alone
_SECRET = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where chance comes from: `jitter` spreads waits, of `secret` are passwords, keys and names that are unique."""

    jitter: random.Random = _JITTER
    secret: random.Random = _SECRET


OF_THE_SYSTEM = Sources()
_sources = OF_THE_SYSTEM


def use(sources: Sources) -> None:
    """Take the chance of the whole process from these, from now on."""
    global _sources  # noqa: PLW0603 - a process has one chance
    _sources = sources


def chance() -> float:
    """Return a number in [0, 1), for jitter."""
    return _sources.jitter.random()


def token_bytes(count: int) -> bytes:
    """Return bytes that nobody can guess."""
    return _sources.secret.randbytes(count)


def token_hex(count: int) -> str:
    """Return as many bytes that nobody can guess, two digits each."""
    return _sources.secret.randbytes(count).hex()


def choice(members: Sequence[T]) -> T:
    """Return one of these, which nobody can guess."""
    return _sources.secret.choice(members)
