"""The control plane of the platform that tests share; see tests/support/shared.py."""

from __future__ import annotations

from tests.support.shared import plane

__all__ = ["plane"]
