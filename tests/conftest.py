"""What holds for every test: how hypothesis searches."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("wide", parent=settings.get_profile("steady"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

pytest_plugins = ["tests.support.fixtures", "tests.support.shared_platform", "tests.support.longest_first"]
