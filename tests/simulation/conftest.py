"""The control plane of tests/support/shared.py, for the comparison of the API server in memory with a real one."""

from __future__ import annotations

from tests.support.shared import plane

__all__ = ["plane"]
