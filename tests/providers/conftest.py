"""What holds for every test of providers: how a defect of ours is drawn in the log, and that no retry waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import structlog

from providers.external import retries
from runtime.backoff import Backoff


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> None:
    """Draw a traceback as Python does: with every local variable in a frame it takes a second of processor time."""
    *others, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, renderer])


@pytest.fixture(autouse=True)
def retries_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = Backoff(timedelta(0), timedelta(0))
    monkeypatch.setattr(retries, "READS", replace(retries.READS, backoff=at_once))
