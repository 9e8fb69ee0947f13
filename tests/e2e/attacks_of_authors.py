"""What a Composition's author cannot compose, as in tests/security/test_compositions.py, on Fairlead's own pods.

Run by `make e2e` after the audit of what the pods ask for.
"""

from __future__ import annotations

# ruff: noqa: F401 - pytest runs what is imported
import pytest

from tests.security.conftest import alice, platform
from tests.security.test_compositions import (
    judged,
    test_a_config_map_of_ours_is_no_environment,
    test_a_kind_that_gives_power_is_not_composed,
    test_a_status_that_a_composition_writes_out_is_dropped_where_the_field_is_ours,
    test_metadata_of_ours_is_not_for_templates,
    test_the_platforms_role_reads_no_secret,
    test_what_an_object_is_is_written_out,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
