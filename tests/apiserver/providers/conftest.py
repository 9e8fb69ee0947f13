"""The platform of tests/support/rigs.py; resources stand alone, without a claim."""

from __future__ import annotations

from tests.support.rigs import namespace, running, system

__all__ = ["namespace", "running", "system"]
