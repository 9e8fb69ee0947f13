"""What holds for every test: how hypothesis searches, and how often Python looks for garbage."""

import gc
import os

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


def pytest_collection_finish() -> None:
    """Take what was collected out of what is looked through for garbage; the little of it that is some stays."""
    gc.freeze()
