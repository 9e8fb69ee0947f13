"""The library that logs, loaded without what it would only need for people."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("first", "loaded"),
    [
        ("import runtime.log_library", "False True"),
        ("import rich.console, runtime.log_library", "True False"),  # who has it keeps it
    ],
)
def test_a_process_loads_structlog_without_rich_and_may_load_rich_later(first: str, loaded: str) -> None:
    script = f"""
import sys
{first}
print('rich' in sys.modules, 'structlog' in sys.modules)
import structlog, rich.console
structlog.get_logger('a').info('it logs')
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert answer.stdout.splitlines()[0] == loaded
    assert "it logs" in answer.stdout
