"""The control plane of tests that ask it alone: the shared one, with nobody at work who would answer in their place."""

from __future__ import annotations

import pytest

from devcloud.controlplane.plane import Plane
from tests.support.shared import alone
from tests.support.system import System

__all__ = ["alone"]


@pytest.fixture(scope="module")
def plane(alone: System) -> Plane:
    """Return the platform's control plane."""
    return alone.plane
