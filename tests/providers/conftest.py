"""What holds for every test of providers: how a defect of ours is drawn in the log."""

from __future__ import annotations

import pytest
import structlog


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> None:
    """Draw a traceback as Python does: with every local variable in a frame it takes a second of processor time."""
    *others, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, renderer])
