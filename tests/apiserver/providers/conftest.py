"""Namespaces on the platform; resources stand alone, without a claim."""

from __future__ import annotations

from tests.support.shared import namespace

__all__ = ["namespace"]
