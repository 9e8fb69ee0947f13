"""A server or a database in a cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thing:
    """The kind that would manage it, and its name in the cloud."""

    kind: str
    name: str
