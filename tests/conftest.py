"""What holds for every test: how hypothesis searches, and how often Python looks for garbage."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("wide", parent=settings.get_profile("steady"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A run holds a million objects that live to its end: to look through them at the usual pace is a fifth of its work.
gc.set_threshold(50_000, 20, 50)

pytest_plugins = [
    "tests.support.fixtures",
    "tests.support.shared_platform",
    "tests.support.longest_first",
    "tests.support.run_summary",
]


def pytest_configure(config: pytest.Config) -> None:
    """Let tests of processes pass that come upon what an earlier one left of a connection.

    A simulated cloud that ends cuts connections; what is left of one is collected as garbage minutes later, in a test
    that has nothing to do with it. The tests of `make check` show connections of ours that nobody closes.
    """
    if config.option.markexpr and "not " not in config.option.markexpr:
        for resource in ("transport", "<socket"):
            config.addinivalue_line("filterwarnings", f"ignore:unclosed {resource}:ResourceWarning")


def pytest_collection_finish() -> None:
    """Take what was collected out of what is looked through for garbage; the little of it that is some stays."""
    gc.freeze()
