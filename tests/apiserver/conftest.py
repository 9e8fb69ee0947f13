"""The platform of tests/support/shared.py; tests that ask the API server alone share its control plane."""

from __future__ import annotations

from tests.support.shared import alone, running, system

__all__ = ["alone", "running", "system"]
